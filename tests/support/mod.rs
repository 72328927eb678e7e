//! What several test files share. Each of them uses a part, so unused parts are no finding.

#![cfg(test)]
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod certificates;
pub(crate) mod proxy;
pub(crate) mod receiver;
pub(crate) mod reply;
pub(crate) mod spans;
