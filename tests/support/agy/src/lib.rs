//! A stand-in for Google's Antigravity CLI, `agy`, as far as its hook contract goes.
//!
//! The program plays a [`Script`] (what the user, the model and the tools do) or a [`Recording`], fires the hooks of the
//! `hooks.json` files it finds, obeys their replies, and writes a [`Report`]. Tests build scripts with the types here, start
//! the program with [`Agy`], and look into the report. Where sources on agy disagree, [`Behaviour`] lets a test choose.
//!
//! Command line, script and report are described in the crate's README.
//!
//! It never talks to a network, opens nothing but hooks.json files, its script and its report, and runs nothing but hooks.

pub mod behaviour;
pub mod cli;
mod command;
pub mod event;
pub mod hooks;
pub mod launch;
pub mod payload;
pub mod permission;
mod play;
pub mod reply;
pub mod report;
mod run;
pub mod script;
pub mod version;

pub use behaviour::Behaviour;
pub use event::Event;
pub use launch::{Agy, Finished};
pub use play::recording::{RecordedEvent, Recording, RecordingError};
pub use report::Report;
pub use script::Script;
pub use version::Version;

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
