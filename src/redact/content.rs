//! Content a user allowed to be captured: as it came ([`Raw`]), and as it may go on ([`Text`]), which only
//! [`content`] makes of it. May not do I/O, and may not let a byte of [`Raw`] through that no rule has looked at;
//! decided in `docs/adr/0040-redaction-engine.md`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::decode;
use super::json::{self, STRINGS, Stop, walk};
use super::scan::{Around, Rules};
use super::sink::{Form, Sink};
use super::skip;

/// What stands for what was taken out.
pub const REDACTED: &str = "[REDACTED]";

/// Content as it came: the bytes of one JSON value, exactly as in the payload (a string with its quotes, an object, a
/// number), at most 64 KiB. It has no way out but [`content`].
#[derive(Clone, PartialEq, Eq)]
pub struct Raw {
    bytes: Vec<u8>,
    whole: bool,
}

impl Raw {
    /// Takes the bytes of one value. Not `whole` is one that was cut at 64 KiB, or whose payload ended within it.
    #[must_use]
    pub const fn new(bytes: Vec<u8>, whole: bool) -> Self {
        Self { bytes, whole }
    }

    /// What came, for this module's other ways to look at it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes came.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether no byte came.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} bytes{})", self.bytes.len(), if self.whole { "" } else { ", cut" })
    }
}

/// Redacted, capped content: the only kind there is behind this module.
///
/// [`content`] alone makes one of what came. Reading one back from the spool or the store takes what was redacted
/// before it was written, as [`Redacted::from_spool`](super::Redacted::from_spool) does.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    text: String,
    json: bool,
    truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rules: Vec<String>,
}

impl Text {
    /// The text, at most 4096 characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the text is JSON. A JSON value that was cut is not.
    #[must_use]
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether something is missing at the end.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The names of the rules that hit, sorted, each once; empty when none did.
    #[must_use]
    pub fn rules(&self) -> &[String] {
        &self.rules
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes, {} rules)", self.text.len(), self.rules.len())
    }
}

/// What a field holds, which says how it is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Arguments and results of tools. A string that holds JSON, as agy 1.0.0 sends it, is decoded into that.
    Json,
    /// Errors, prompts and output. A string is decoded to its text; another value stays JSON.
    Plain,
}

/// Most characters of a [`Text`].
pub const CONTENT_CHARS: usize = 4096;

/// Decodes `raw`, redacts it, and then cuts it to 4096 characters, in that order.
#[must_use]
pub fn content(raw: &Raw, shape: Shape) -> Text {
    let bytes = raw.bytes.trim_ascii();
    let mut sink = Sink::new(CONTENT_CHARS, bytes.len());
    let ended = if bytes.is_empty() {
        Err(Stop::Cut)
    } else if bytes.starts_with(b"\"") {
        string(bytes, shape, &mut sink)
    } else {
        walk(bytes, &mut sink, STRINGS).map(|()| true)
    };
    // What is no JSON where it should be is left out, from there on.
    if ended == Err(Stop::Broken) {
        sink.mark(Rules::around(Around::Unreadable));
    }
    let truncated = sink.is_full() || !raw.whole || ended.is_err();
    let json = ended == Ok(true) && !truncated;
    let rules = sink.rules().names();
    Text { text: sink.into_text(), json, truncated, rules }
}

/// Writes the text of a string. Gives whether it is JSON.
fn string(bytes: &[u8], shape: Shape, sink: &mut Sink) -> Result<bool, Stop> {
    let (end, closed) = decode::string_end(bytes, 1);
    let text = decode::string(bytes.get(1..end).unwrap_or_default());
    if shape == Shape::Json {
        match skip::check(text.as_bytes()) {
            Ok(()) => return walk(text.as_bytes(), sink, STRINGS).map(|()| closed),
            // As far as it goes.
            Err(Stop::Cut) if !closed => return walk(text.as_bytes(), sink, STRINGS).map(|()| false),
            Err(_) => {}
        }
    }
    json::leaf(&text, !closed, Form::Plain, sink, STRINGS);
    if closed { Ok(false) } else { Err(Stop::Cut) }
}
