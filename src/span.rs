//! The span model and store row: plain data, one shape for every exporter.
//! Content stands in it as [`Text`] only. Knows no OpenTelemetry crate: `SpanData` is built in `export` only, so an SDK release changes one file.
//! Decided in `docs/adr/0003-own-span-model.md` and `docs/adr/0041-opt-in-content.md`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::redact::Text;

/// One closed span, or one snapshot of a session root that is still open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The trace: one per conversation.
    pub trace_id: TraceId,
    /// Derived, so that the same events always give the same span.
    pub span_id: SpanId,
    /// None for the session root only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SpanId>,
    /// Which part of a conversation this is.
    pub role: Role,
    /// What back ends show.
    pub name: String,
    /// Nanoseconds since 1970, never 0.
    pub start_ns: u64,
    /// Nanoseconds since 1970, never before `start_ns`.
    pub end_ns: u64,
    /// OK only where success was observed.
    pub status: Status,
    /// Keys are those of `semconv`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
    /// In order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<SpanEvent>,
    /// To spans of this or another trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<SpanLink>,
}

/// The part of a conversation that a span stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The conversation: the root.
    Session,
    /// One user message up to Stop.
    Turn,
    /// PreInvocation to PostInvocation; the only one of OTel kind CLIENT.
    ModelCall,
    /// PreToolUse to PostToolUse.
    Tool,
}

/// The outcome of what a span stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not known, or still open.
    Unset,
    /// Success was observed.
    Ok,
    /// An error was observed; the text is content, so None unless the user opted in.
    Error(Option<Text>),
}

/// An attribute value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A fraction.
    Double(f64),
    /// A string.
    Text(String),
    /// A list of strings.
    Texts(Vec<String>),
    /// What was said, asked or answered. A string to every receiver; apart here, so that it comes from `redact` only and
    /// can be taken out again.
    Content(Text),
}

impl Span {
    /// Whether the user's content is in it.
    #[must_use]
    pub fn has_content(&self) -> bool {
        matches!(self.status, Status::Error(Some(_)))
            || self.attributes.values().any(|value| matches!(value, Value::Content(_)))
    }

    /// Takes the content out; what says of which kind it was stays.
    pub fn forget_content(&mut self) {
        if let Status::Error(text) = &mut self.status {
            *text = None;
        }
        self.attributes.retain(|_, value| !matches!(value, Value::Content(_)));
    }
}

/// Something that happened at one instant of a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanEvent {
    /// What happened.
    pub name: String,
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// Keys are those of `semconv`; Future AGI keeps only name and time of an event.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
}

/// A reference to another span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanLink {
    /// The other span's trace.
    pub trace_id: TraceId,
    /// The other span.
    pub span_id: SpanId,
    /// Why the link is there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::Content(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl $name {
            /// Reads lower- or upper-case hex digits; None for another length or an all-zero id, which OTLP forbids.
            #[must_use]
            pub fn from_hex(text: &str) -> Option<Self> {
                if text.len() != $bytes * 2 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return None;
                }
                let mut bytes = [0u8; $bytes];
                for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
                    *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
                }
                bytes.iter().any(|b| *b != 0).then_some(Self(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("not a hex id of the right length"))
            }
        }
    };
}

hex_id!(
    /// A trace id; printed as 32 hex digits.
    TraceId,
    16
);
hex_id!(
    /// A span id; printed as 16 hex digits.
    SpanId,
    8
);
