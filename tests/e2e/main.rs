//! End to end: an agent that plays conversations, its real hooks.json, the binary that users get, and receivers that
//! nobody here wrote. `tests/e2e/run.sh` provides the receivers; `docs/compatibility.md` lists what was verified.
//!
//! What must have arrived is read from the local store, whose own contents are compared with a drawing of the trace
//! (`conversation::WHOLE`); the bytes that arrived are decoded by the receiver, never by us.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

mod conversation;
mod ddapm;
mod expected;
mod future_agi;
mod jaeger;
mod otlp_json;
mod process;
mod rotel;
#[path = "../support/mod.rs"]
mod support;
