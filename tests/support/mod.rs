//! What the process tests share: a private machine for the real binary, and receivers to send to.
#![expect(dead_code, reason = "each test file uses a part of this")]

pub(crate) mod sandbox;
