//! What several test files share: a private machine for the real binary, and receivers to send to.

#![cfg(test)]
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

pub(crate) mod agent;
pub(crate) mod certificates;
pub(crate) mod chance;
pub(crate) mod confined;
pub(crate) mod crafted;
pub(crate) mod future_agi;
pub(crate) mod ledger;
pub(crate) mod lock;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod receiver;
pub(crate) mod reply;
pub(crate) mod sandbox;
pub(crate) mod server;
pub(crate) mod spans;
