//! The agents whose hooks we serve: one folder and one line in [`HOSTS`] each.
//! A host knows its payloads and its replies; it may not know spool, sender or export. No I/O.

use crate::event::{Event, Wanted};
use crate::redact::Raw;

pub mod antigravity;

/// Every agent we know, by the word after `hook` on the command line.
pub const HOSTS: &[&dyn Host] = &[&antigravity::Antigravity];

/// An agent that runs us as its hook.
pub trait Host: Sync + std::panic::RefUnwindSafe {
    /// The word after `hook` on the command line.
    fn id(&self) -> &'static str;

    /// The exact bytes the agent must read on our stdout. Depends on the command line alone.
    fn reply(&self, event: &str, reply_option: Option<&str>) -> &'static [u8];

    /// Starts reading the payload of an event; None for an event we do not model.
    fn scan(&self, event: &str) -> Option<Box<dyn Scan>>;

    /// Whether a process of this name can be the agent.
    fn is_agent(&self, process_name: &str) -> bool;
}

/// Reads one payload piece by piece, in bounded memory.
pub trait Scan {
    /// Asks for content, too; none is kept else. Before the first [`feed`](Self::feed).
    fn want(&mut self, wanted: Wanted);

    /// Takes the next bytes. Nothing is expected after [`Progress::Complete`] or [`Progress::Invalid`].
    fn feed(&mut self, bytes: &[u8]) -> Progress;

    /// What the payload said.
    ///
    /// # Errors
    /// When it was no payload or named no conversation; the reason is counted.
    fn finish(self: Box<Self>) -> Result<Seen, Rejection>;
}

/// How far a [`Scan`] has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The payload goes on.
    More,
    /// The closing brace of the payload was read.
    Complete,
    /// This cannot be a payload.
    Invalid,
}

/// What a payload said, with what only the hook process may look at.
#[derive(Debug)]
pub struct Seen {
    /// What may go on, once redacted.
    pub event: Event<Raw>,
    /// `workspacePaths`, for FI_HOOK_EXCLUDE_PATHS; never leaves the hook process.
    pub workspaces: Vec<String>,
}

/// Why a payload gives no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// Not one byte came.
    Empty,
    /// It does not start as a JSON object, or breaks JSON's rules where we look.
    NotAnObject,
    /// It stopped before its closing brace.
    Truncated,
    /// It has no `conversationId`.
    NoConversation,
}

impl Rejection {
    /// The counter's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "payload_empty",
            Self::NotAnObject => "payload_not_an_object",
            Self::Truncated => "payload_truncated",
            Self::NoConversation => "payload_without_conversation",
        }
    }
}

/// Finds a host by the word on the command line.
#[must_use]
pub fn find(id: &str) -> Option<&'static dyn Host> {
    HOSTS.iter().copied().find(|host| host.id() == id)
}
