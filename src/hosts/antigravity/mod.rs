//! Google's Antigravity CLI (`agy`): which events it has, what its payloads hold, what its hooks must answer.
//! Facts about agy carry the version they were measured on. No I/O.

mod fields;
pub mod hooks_file;
mod payload;
pub mod registration;
pub mod reply;
mod text;
pub mod wire;

use super::{Host, Scan};

/// The events of agy's hooks (1.0.1 to 1.5); names of other agents' events are accepted by agy and never fire.
pub const EVENTS: &[&str] = &["SessionStart", "PreInvocation", "PreToolUse", "PostToolUse", "PostInvocation", "Stop"];

/// The agent `agy`, and the desktop products that read the same hook files.
#[derive(Debug)]
pub struct Antigravity;

impl Host for Antigravity {
    fn id(&self) -> &'static str {
        "antigravity"
    }

    fn reply(&self, event: &str, reply_option: Option<&str>) -> &'static [u8] {
        reply::bytes(event, reply_option)
    }

    fn scan(&self, event: &str) -> Option<Box<dyn Scan>> {
        let event = EVENTS.iter().copied().find(|known| *known == event)?;
        Some(Box::new(payload::PayloadScan::new(event)))
    }

    fn is_agent(&self, process_name: &str) -> bool {
        // The CLI is `agy`; desktop and IDE hooks are children of `language_server*` (measured on desktop 2.19.1).
        // The kernel cuts names at 15 characters.
        process_name == "agy" || process_name.starts_with("antigravity") || process_name.starts_with("language_server")
    }
}
