//! Turns each conversation of Google's Antigravity CLI into one OpenTelemetry trace.
//!
//! One way through the code: stdin → `hosts` (wire) → `event` → `redact` → `spool` in the hook process; `spool` →
//! `conversation` → `store` → `export` in the detached sender. Who may use whom is a table in `tests/architecture.rs`.

pub mod capture;
pub mod cli;
pub mod commands;
pub mod config;
pub mod conversation;
pub mod demo;
pub mod event;
pub mod export;
pub mod hosts;
pub mod ids;
pub mod install;
pub mod redact;
pub mod semconv;
pub mod sender;
pub mod span;
pub mod spool;
pub mod store;
pub mod sys;
pub mod tree;
