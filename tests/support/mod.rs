//! What several test files share. Each of them uses a part, so unused parts are no finding.

#![expect(clippy::allow_attributes, reason = "`expect` would fail in the test file that uses everything")]
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod certificates;
pub(crate) mod proxy;
pub(crate) mod receiver;
