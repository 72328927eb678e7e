//! What the reducer is told by the settings. Parsing of words only; where they come from is `config`'s business.

use std::time::Duration;

/// The settings that shape spans; those that belong to the data are in [`Origin`](crate::event::Origin).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// FI_HOOK_SESSION_SPAN: when the session root is exported.
    pub session_span: SessionSpan,
    /// FI_HOOK_SPAN_NAMES: how spans are named.
    pub span_names: SpanNames,
    /// FI_HOOK_SESSION_IDLE_MINUTES: a session without an event for this long has ended.
    pub session_idle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            session_span: SessionSpan::Update,
            span_names: SpanNames::Friendly,
            session_idle: Duration::from_secs(60 * 60),
        }
    }
}

/// When the session root is exported: back ends differ on a span id that is sent twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionSpan {
    /// With the first spans, again at each turn's end and at the session's end.
    Update,
    /// At the session's first end, never again.
    Once,
    /// With the first spans, never again.
    First,
    /// Never: the turns are roots.
    None,
}

impl SessionSpan {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Update, Self::Once, Self::First, Self::None];

    /// Reads the word of FI_HOOK_SESSION_SPAN, in any case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str().eq_ignore_ascii_case(word.trim()))
    }

    /// The word of FI_HOOK_SESSION_SPAN.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Once => "once",
            Self::First => "first",
            Self::None => "none",
        }
    }
}

/// How spans are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanNames {
    /// `Antigravity turn`, `Model call`, `run_command`.
    Friendly,
    /// `invoke_agent antigravity`, `chat gemini-3.5-flash`, `execute_tool run_command`.
    Semconv,
}

impl SpanNames {
    /// Both, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::Friendly, Self::Semconv];

    /// Reads the word of FI_HOOK_SPAN_NAMES, in any case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|names| names.as_str().eq_ignore_ascii_case(word.trim()))
    }

    /// The word of FI_HOOK_SPAN_NAMES.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Friendly => "friendly",
            Self::Semconv => "semconv",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        assert!(SessionSpan::ALL.into_iter().all(|policy| SessionSpan::parse(policy.as_str()) == Some(policy)));
        assert!(SpanNames::ALL.into_iter().all(|names| SpanNames::parse(names.as_str()) == Some(names)));
        assert_eq!(SessionSpan::parse(" Once "), Some(SessionSpan::Once));
        assert_eq!(SessionSpan::parse("never"), None);
    }
}
