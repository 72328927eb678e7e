//! The one door from a payload to the disk: only a [`Redacted`] value reaches spool, reducer, store and spans.
//! Content has no field in [`Event`], so what this module still has to make safe are the names: capped and without
//! control characters. May not do I/O; decided in `docs/adr/0002-redact-before-the-spool.md`.

mod account;
mod assign;
mod bytes;
mod content;
mod decode;
mod flags;
mod harmless;
mod json;
mod names;
pub mod rules;
mod scan;
mod shapes;
mod sink;
mod steps;
mod tokens;
mod view;

use std::ops::Deref;

pub use content::{CONTENT_CHARS, REDACTED, Raw, Shape, Text, content};

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

/// Caps every name of an event and takes control characters out of it.
#[must_use]
pub fn event(mut event: Event) -> Redacted<Event> {
    event.conversation = name(&event.conversation, CONVERSATION_CHARS);
    event.model = event.model.and_then(|model| optional_name(&model));
    match &mut event.action {
        Action::PreToolUse(step) | Action::PostToolUse(step) => {
            step.tool = step.tool.take().and_then(|tool| optional_name(&tool));
        }
        Action::Stop(stop) => stop.reason = stop.reason.take().and_then(|reason| optional_name(&reason)),
        Action::SessionStart | Action::PreInvocation(_) | Action::PostInvocation(_) => {}
    }
    Redacted(event)
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
