//! What a hooks.json says to agy, as far as an installer must know: whether it can be read at all, what in it is ours,
//! and which mistakes make agy drop it, all of them in silence. Pure; never changes a file's text.
//! Rules measured on agy 1.0.5 to 1.2.7.

use serde_json::{Map, Value};

use super::registration::MEMBER;

/// A hooks.json that is an object.
#[derive(Debug, Clone, PartialEq)]
pub struct HooksFile {
    members: Map<String, Value>,
}

/// Why a file cannot be a hooks.json.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// Comments, trailing commas and byte order marks are no JSON either.
    #[error("it is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// JSON, but no map of named hooks.
    #[error("it is not a JSON object of named hooks")]
    NotAnObject,
}

/// A mistake for which agy drops the file or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} {what}")]
pub struct Fault {
    /// The member, and where in it.
    pub place: String,
    /// What is wrong there.
    pub what: &'static str,
}

impl HooksFile {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// When they are not a JSON object.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        match serde_json::from_slice(bytes)? {
            Value::Object(members) => Ok(Self { members }),
            _ => Err(Unreadable::NotAnObject),
        }
    }

    /// Our member, whatever it says.
    #[must_use]
    pub fn ours(&self) -> Option<&Value> {
        self.members.get(MEMBER)
    }

    /// Whether nothing but our member is in it.
    #[must_use]
    pub fn is_ours_alone(&self) -> bool {
        self.members.len() == 1 && self.ours().is_some()
    }

    /// The first mistake in it.
    ///
    /// # Errors
    /// Names the place and the mistake.
    pub fn check(&self) -> Result<(), Fault> {
        self.members.iter().try_for_each(|(name, member)| check_member(name, member))
    }
}

fn fault(place: &str, what: &'static str) -> Result<(), Fault> {
    Err(Fault { place: place.to_owned(), what })
}

fn check_member(name: &str, member: &Value) -> Result<(), Fault> {
    let Some(entries) = member.as_object() else {
        return fault(name, "is not a map of events");
    };
    for (key, value) in entries {
        let place = format!("{name}.{key}");
        match (key.as_str(), value) {
            ("enabled", Value::Bool(_)) => {}
            ("enabled", _) => return fault(&place, "is neither true nor false"),
            ("PreToolUse" | "PostToolUse", Value::Array(groups)) => {
                each(&place, groups, check_group)?;
            }
            // Names of other agents' events are accepted and never fire (1.1.12, 1.2.7).
            (_, Value::Array(handlers)) => each(&place, handlers, check_handler)?,
            _ => return fault(&place, "is not a list"),
        }
    }
    Ok(())
}

fn each(place: &str, values: &[Value], check: fn(&str, &Value) -> Result<(), Fault>) -> Result<(), Fault> {
    values.iter().enumerate().try_for_each(|(index, value)| check(&format!("{place}[{index}]"), value))
}

fn check_group(place: &str, group: &Value) -> Result<(), Fault> {
    match group.get("hooks") {
        Some(Value::Array(handlers)) => each(&format!("{place}.hooks"), handlers, check_handler)?,
        Some(_) => return fault(place, "has hooks that are not a list"),
        None => return fault(place, "is not a matcher group: agy never runs it"),
    }
    match group.get("matcher") {
        None | Some(Value::String(_)) => Ok(()),
        Some(_) => fault(place, "has a matcher that is not a string"),
    }
}

fn check_handler(place: &str, handler: &Value) -> Result<(), Fault> {
    let Some(handler) = handler.as_object() else {
        return fault(place, "is not a handler");
    };
    if handler.contains_key("hooks") {
        return fault(place, "is a matcher group where a handler belongs");
    }
    let prompt = match handler.get("type").map(Value::as_str) {
        None | Some(Some("command")) => false,
        // Undocumented, but in agy's own description of the file (1.2.6).
        Some(Some("prompt")) => true,
        Some(_) => return fault(place, "has a type that is not \"command\""),
    };
    if !prompt && handler.get("command").and_then(Value::as_str).is_none_or(str::is_empty) {
        return fault(place, "has no command");
    }
    match handler.get("timeout") {
        None => Ok(()),
        Some(timeout) if timeout.is_u64() => Ok(()),
        Some(_) => fault(place, "has a timeout that is not a whole number of seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::antigravity::registration::{PreToolUse, Registration, ShellWord};

    fn check(text: &str) -> Result<(), String> {
        HooksFile::parse(text.as_bytes()).map_err(|error| error.to_string())?.check().map_err(|fault| fault.to_string())
    }

    #[test]
    fn what_we_write_has_no_mistake() {
        for pre_tool_use in [PreToolUse::NoReply, PreToolUse::EmptyDecision, PreToolUse::Unregistered] {
            let registration = Registration::new(&ShellWord::vendored(), pre_tool_use);
            let file = HooksFile::parse(registration.file_text().as_bytes()).unwrap();
            assert_eq!(file.check(), Ok(()));
            assert!(file.is_ours_alone());
            assert_eq!(file.ours(), Some(&registration.value()));
        }
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, expected) in [
            (r#"{}"#, None),
            (r#"{"a":{}}"#, None),
            (r#"{"a":{"enabled":false,"SessionEnd":[{"command":"x"}]}}"#, None),
            (r#"{"a":{"PreToolUse":[{"hooks":[{"command":"x","timeout":3}]}]}}"#, None),
            (r#"{"a":{"Stop":[{"type":"prompt","prompt":"x"}]}}"#, None),
            (r#"{"version":1}"#, Some("version is not a map of events")),
            (r#"{"$schema":"x","a":{}}"#, Some("$schema is not a map of events")),
            (r#"{"a":{"enabled":"yes"}}"#, Some("a.enabled is neither true nor false")),
            (r#"{"hooks":{"a":{"Stop":[]}}}"#, Some("hooks.a is not a list")),
            (
                r#"{"a":{"Stop":[{"matcher":"*","hooks":[]}]}}"#,
                Some("a.Stop[0] is a matcher group where a handler belongs"),
            ),
            (
                r#"{"a":{"PreToolUse":[{"command":"x"}]}}"#,
                Some("a.PreToolUse[0] is not a matcher group: agy never runs it"),
            ),
            (r#"{"a":{"PostToolUse":[{"hooks":{}}]}}"#, Some("a.PostToolUse[0] has hooks that are not a list")),
            (
                r#"{"a":{"PostToolUse":[{"matcher":1,"hooks":[]}]}}"#,
                Some("a.PostToolUse[0] has a matcher that is not a string"),
            ),
            (r#"{"a":{"Stop":["x"]}}"#, Some("a.Stop[0] is not a handler")),
            (r#"{"a":{"Stop":[{"command":""}]}}"#, Some("a.Stop[0] has no command")),
            (
                r#"{"a":{"Stop":[{"type":"http","command":"x"}]}}"#,
                Some(r#"a.Stop[0] has a type that is not "command""#),
            ),
            (
                r#"{"a":{"Stop":[{"command":"x","timeout":"10"}]}}"#,
                Some("a.Stop[0] has a timeout that is not a whole number of seconds"),
            ),
            (r#"[]"#, Some("it is not a JSON object of named hooks")),
        ] {
            assert_eq!(check(text).err().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_json_is_refused() {
        for text in ["", " \n", "{", "{} x", "{\"a\":{},}", "// c\n{}", "{/*c*/}", "\u{feff}{}", "{'a':{}}"] {
            assert!(check(text).unwrap_err().starts_with("it is not JSON: "), "{text:?}");
        }
        assert!(HooksFile::parse(b"{\"\xff\":{}}").is_err());
    }
}
