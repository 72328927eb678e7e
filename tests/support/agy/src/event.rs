//! The six events agy fires, by the names hooks.json uses.
//!
//! Knows names and shapes only; what an event carries is in `payload`, what its reply means in `reply`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An event that agy fires. Other names are accepted in hooks.json and never fire (measured 1.1.7 to 1.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Event {
    /// The first prompt of a new conversation; not on resume (1.4.2, 1.4.7).
    SessionStart,
    /// Before a model call.
    PreInvocation,
    /// Before a tool runs; its reply is the permission gate.
    PreToolUse,
    /// After a tool ran.
    PostToolUse,
    /// After a model call and its tools (measured 1.1.7, 1.4.2).
    PostInvocation,
    /// The end of an execution.
    Stop,
}

impl Event {
    /// All events, in the order in which a turn first meets them.
    pub const ALL: [Self; 6] = [
        Self::SessionStart,
        Self::PreInvocation,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostInvocation,
        Self::Stop,
    ];

    /// The name in hooks.json.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::PreInvocation => "PreInvocation",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostInvocation => "PostInvocation",
            Self::Stop => "Stop",
        }
    }

    /// The event of that name, if agy ever fires it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Whether hooks.json lists its handlers in matcher groups (tool events) and not flat (lifecycle events).
    #[must_use]
    pub const fn is_grouped(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PostToolUse)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
