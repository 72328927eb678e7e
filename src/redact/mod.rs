//! The one door from a payload to the disk: only a [`Redacted`] value reaches spool, reducer, store and spans.
//! Names are capped and lose control characters; content comes in as [`Raw`] and goes on as [`Text`], or not at all.
//! May not do I/O; decided in `docs/adr/0002-redact-before-the-spool.md` and `docs/adr/0041-opt-in-content.md`.
//!
//! There is no other way. What was redacted can be an attribute and a status:
//!
//! ```
//! use fi_hook_to_otlp::{redact::{Raw, Shape, content}, span::{Status, Value}};
//! let text = content(&Raw::new(b"\"no\"".to_vec(), true), Shape::Plain);
//! let _ = Value::Content(text.clone());
//! let _ = Status::Error(Some(text));
//! ```
//!
//! Neither what came nor a string can:
//!
//! ```compile_fail
//! use fi_hook_to_otlp::{redact::Raw, span::Value};
//! let _ = Value::Content(Raw::new(b"\"no\"".to_vec(), true));
//! ```
//!
//! ```compile_fail
//! use fi_hook_to_otlp::span::Value;
//! let _ = Value::Content("no".to_owned());
//! ```
//!
//! ```compile_fail
//! use fi_hook_to_otlp::span::Status;
//! let _ = Status::Error(Some("no".to_owned()));
//! ```
//!
//! An event with content as it came cannot be written, and the spool takes none:
//!
//! ```
//! use fi_hook_to_otlp::event::{Action, Event};
//! let event: Event = Event::new("c".to_owned(), Action::SessionStart);
//! assert!(serde_json::to_string(&event).is_ok());
//! ```
//!
//! ```compile_fail
//! use fi_hook_to_otlp::{event::{Action, Event}, redact::Raw};
//! let event: Event<Raw> = Event::new("c".to_owned(), Action::SessionStart);
//! assert!(serde_json::to_string(&event).is_ok());
//! ```
//!
//! ```
//! use fi_hook_to_otlp::{event::{Action, Event}, redact::{Allowed, Raw, Redacted, event}};
//! let raw: Event<Raw> = Event::new("c".to_owned(), Action::SessionStart);
//! let _: Redacted<Event> = event(raw, &Allowed::default());
//! ```
//!
//! ```compile_fail
//! use fi_hook_to_otlp::{event::{Action, Event}, redact::{Raw, Redacted}};
//! let raw: Event<Raw> = Event::new("c".to_owned(), Action::SessionStart);
//! let _: Redacted<Event> = Redacted::from_spool(raw);
//! ```

mod account;
mod ahead;
mod assign;
mod bytes;
mod commands;
mod content;
mod context;
mod decode;
mod digest;
mod double;
mod flags;
mod given;
mod harmless;
mod json;
mod line;
mod manifest;
mod names;
mod pass;
pub mod rules;
mod scan;
mod shapes;
mod sink;
mod skip;
mod steps;
mod tokens;
mod view;

use std::ops::Deref;

pub use content::{CONTENT_CHARS, REDACTED, Raw, Shape, Text, content};
pub use digest::DigestKey;
pub use pass::Allowed;

use crate::event::{Action, Event};

/// Most characters that are kept of a tool name, a model name or a termination reason.
pub const NAME_CHARS: usize = 128;
/// Most characters that are kept of a conversation id; agy sends UUIDs of 36.
pub const CONVERSATION_CHARS: usize = 256;

/// A value that has been through this module. There is no other way to make one but [`from_spool`](Redacted::from_spool).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    /// Takes back a value that was redacted before it was written to the spool.
    ///
    /// For `spool::format` only; `tests/architecture.rs` lists who may call it.
    #[must_use]
    pub const fn from_spool(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Redacted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Caps every name of an event and takes control characters out of it; redacts the content that is allowed to go on, and
/// drops the rest.
#[must_use]
pub fn event(event: Event<Raw>, allowed: &Allowed) -> Redacted<Event> {
    let mut action = event.action;
    match &mut action {
        Action::PreToolUse(step) | Action::PostToolUse(step) => {
            step.tool = step.tool.take().and_then(|tool| optional_name(&tool));
        }
        Action::Stop(stop) => stop.reason = stop.reason.take().and_then(|reason| optional_name(&reason)),
        Action::SessionStart | Action::PreInvocation(_) | Action::PostInvocation(_) => {}
    }
    Redacted(Event {
        conversation: name(&event.conversation, CONVERSATION_CHARS),
        model: event.model.and_then(|model| optional_name(&model)),
        surface: event.surface,
        action,
        told: event.told.and_then(|told| pass::pass(told.content, allowed)),
    })
}

fn optional_name(text: &str) -> Option<String> {
    Some(name(text, NAME_CHARS)).filter(|kept| !kept.is_empty())
}

/// Keeps the first `most` characters that are no control or format characters, without blanks around them.
#[must_use]
pub fn name(text: &str, most: usize) -> String {
    let kept: String = text.chars().filter(|c| !c.is_control() && !is_format(*c)).take(most).collect();
    kept.trim().to_owned()
}

/// Marks that change the direction or the joining of text: they could make one name look like another.
const fn is_format(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests;
