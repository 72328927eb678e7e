//! The agy version the stand-in plays, and what each version does differently.
//!
//! Every threshold names the version a fact was seen on. Between two seen versions the change is put at the later one.
//! Holds no state and does no I/O.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A released agy version, `major.minor.patch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    major: u16,
    minor: u16,
    patch: u16,
}

/// What was given is not a version.
#[derive(Debug, thiserror::Error)]
#[error("not an agy version: {0:?}; write major.minor.patch, as in 1.4.7")]
pub struct VersionError(String);

impl Version {
    /// The newest version whose payload fields were measured (1.4.7, Debian).
    pub const LATEST_MEASURED: Self = Self::new(1, 4, 7);

    /// Makes a version from its three numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// Whether payloads carry `modelName`: absent in the 1.0.1 capture and the 1.0.5 report, present on 1.1.2.
    #[must_use]
    pub fn sends_model_name(self) -> bool {
        self >= Self::new(1, 1, 2)
    }

    /// Whether `PostToolUse` of a tool step carries `toolCall`: captured on 1.1.7 and later; the docs shape before.
    #[must_use]
    pub fn sends_tool_call_after(self) -> bool {
        self >= Self::new(1, 1, 7)
    }

    /// Whether `transcriptPath` ends in `transcript_full.jsonl`: captured on 1.1.18; `transcript.jsonl` before.
    #[must_use]
    pub fn names_full_transcript(self) -> bool {
        self >= Self::new(1, 1, 18)
    }

    /// Whether every payload carries `lastUserInput`: measured on 1.4.7; not there on 1.4.2.
    #[must_use]
    pub fn sends_last_user_input(self) -> bool {
        self >= Self::new(1, 4, 7)
    }

    /// Whether each tool argument is a JSON text inside a string: reported for 1.0.0, gone on 1.0.1.
    #[must_use]
    pub fn encodes_args_twice(self) -> bool {
        self < Self::new(1, 0, 1)
    }

    /// Whether `PostToolUse` also fires on non-tool steps and ignores its matcher: changelog 1.1.9 ended both.
    #[must_use]
    pub fn fires_post_tool_use_on_any_step(self) -> bool {
        self < Self::new(1, 1, 9)
    }

    /// Whether a hook's `overwrite` changes the arguments: measured on 1.2.6 and 1.2.7; documented as not implemented before.
    #[must_use]
    pub fn applies_overwrite(self) -> bool {
        self >= Self::new(1, 2, 6)
    }

    /// Whether a hook's `allow` skips the permission question of a headless run: yes on 1.0.15 and 1.1.7, no on 1.2.7 (vendor issue 1053).
    #[must_use]
    pub fn allow_skips_headless_question(self) -> bool {
        self < Self::new(1, 2, 7)
    }

    /// Whether a `SessionStart` reply may carry `injectSteps`: reported for 1.4.12 and 1.5.0.
    #[must_use]
    pub fn injects_at_session_start(self) -> bool {
        self >= Self::new(1, 4, 12)
    }

    /// Whether an injected step may be a `systemMessage`: reported for the hooks.md of 1.5.
    #[must_use]
    pub fn injects_system_messages(self) -> bool {
        self >= Self::new(1, 5, 0)
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError(text.to_owned());
        let mut numbers = text.split('.').map(|part| part.parse::<u16>().map_err(|_| wrong()));
        let mut next = || numbers.next().unwrap_or_else(|| Err(wrong()));
        let version = Self::new(next()?, next()?, next()?);
        if numbers.next().is_some() { Err(wrong()) } else { Ok(version) }
    }
}

impl TryFrom<String> for Version {
    type Error = VersionError;

    fn try_from(text: String) -> Result<Self, VersionError> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_and_not_by_text() {
        let old: Version = "1.1.9".parse().unwrap();
        let new: Version = "1.1.18".parse().unwrap();
        assert!(old < new);
        assert_eq!(new.to_string(), "1.1.18");
    }

    #[test]
    fn what_is_not_a_version_is_refused() {
        for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "v1.2.3", "1.2.-3"] {
            assert!(text.parse::<Version>().is_err(), "{text:?} was taken for a version");
        }
    }
}
