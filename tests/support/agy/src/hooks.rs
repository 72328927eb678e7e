//! hooks.json: which files count, what they say, and which commands an event runs.
//!
//! `file` and `matcher` are pure; `discover` reads files. Nothing here starts a process.

mod discover;
mod file;
mod listing;
mod matcher;

pub use discover::{FileState, Loaded, LoadedFile, Places, Scope, Source};
pub use file::{Action, Handler, HookFile, NamedHook, VoidFile};
pub use listing::listing;
pub use matcher::{BadMatcher, Matcher};
