//! Keyed digests of content, so that equal calls can be counted without it. May not do I/O; the key is the caller's.
//! Decided in `docs/adr/0041-opt-in-content.md`.

use std::borrow::Cow;
use std::fmt::{self, Write};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::Raw;
use crate::event::{Content, Digests};

/// What agy lets the model add to every call for people to read (from 1.1.7 on, after the call): it differs between equal
/// calls.
const FOR_PEOPLE: [&str; 2] = ["toolAction", "toolSummary"];
/// Bytes of a digest: enough that two contents of one state folder never share one by chance.
const BYTES: usize = 16;

/// The key of the digests: whoever has it can test guesses, so it stays in the state folder.
#[derive(Clone)]
pub struct DigestKey([u8; 32]);

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl DigestKey {
    /// Takes a random key.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The digests of an event's arguments and error.
    pub(super) fn digests(&self, content: &Content<Raw>) -> Digests {
        Digests {
            args: content.args.as_ref().map(|raw| self.digest("args", raw)),
            error: content.error.as_ref().map(|raw| self.digest("error", raw)),
        }
    }

    /// HMAC-SHA-256 over the kind and the value in one form of writing. What cannot be read is digested as it came, and
    /// so is what was cut: two calls that begin with the same 64 KiB are equal here.
    fn digest(&self, kind: &str, raw: &Raw) -> String {
        let text = serde_json::from_slice(raw.bytes()).map_or_else(
            |_| Cow::Borrowed(raw.bytes()),
            |value| {
                let mut text = String::new();
                write_canonical(&mut text, &value, true);
                Cow::Owned(text.into_bytes())
            },
        );
        // HMAC takes keys of every length, so there is always a code.
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let code = mac.map(|mac| mac.chain_update(kind).chain_update([0]).chain_update(text).finalize().into_bytes());
        code.unwrap_or_default().iter().take(BYTES).fold(String::with_capacity(2 * BYTES), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        })
    }
}

/// Writes a value with its keys in order and without blanks. At the top, what is for people only is left out.
fn write_canonical(text: &mut String, value: &Value, top: bool) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().filter(|(key, _)| !top || !FOR_PEOPLE.contains(&key.as_str())).collect();
            members.sort_unstable_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (key, member) in members {
                let _ = write!(text, "{}:", Value::from(key.as_str()));
                write_canonical(text, member, false);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(entries) => {
            text.push('[');
            for entry in entries {
                write_canonical(text, entry, false);
                text.push(',');
            }
            text.push(']');
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
            let _ = write!(text, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(key: u8, json: &str) -> String {
        DigestKey::new([key; 32]).digest("args", &Raw::new(json.as_bytes().to_vec(), true))
    }

    #[test]
    fn equal_calls_have_equal_digests_however_they_are_written() {
        let call = digest(1, r#"{"CommandLine":"ls -la","Cwd":".","Wait":{"b":1,"a":[true]}}"#);
        assert!(call.len() == 32 && call.bytes().all(|byte| byte.is_ascii_hexdigit()), "{call}");
        for (what, json) in [
            ("order and blanks", r#" { "Wait": {"a":[ true ],"b":1}, "Cwd":".", "CommandLine":"ls -la" } "#),
            ("escapes", r#"{"CommandLine":"ls\u0020-la","Cwd":".","Wait":{"b":1,"a":[true]}}"#),
            (
                "what agy adds",
                r#"{"CommandLine":"ls -la","Cwd":".","Wait":{"b":1,"a":[true]},"toolAction":"x","toolSummary":"y"}"#,
            ),
        ] {
            assert_eq!(digest(1, json), call, "{what}");
        }
        for (what, json) in [
            ("a value", r#"{"CommandLine":"ls -l","Cwd":".","Wait":{"b":1,"a":[true]}}"#),
            ("a deeper summary", r#"{"CommandLine":"ls -la","Cwd":".","Wait":{"b":1,"a":[true],"toolSummary":"y"}}"#),
            ("a key", r#"{"Command":"ls -la","Cwd":".","Wait":{"b":1,"a":[true]}}"#),
            ("no JSON", r#"{"CommandLine":"ls -la","#),
        ] {
            assert_ne!(digest(1, json), call, "{what}");
        }
    }

    #[test]
    fn digests_depend_on_key_and_kind() {
        assert_ne!(digest(1, "\"x\""), digest(2, "\"x\""));
        let raw = Raw::new(b"\"x\"".to_vec(), true);
        let key = DigestKey::new([1; 32]);
        let both = key.digests(&Content { args: Some(raw.clone()), error: Some(raw), ..Content::none() });
        assert_ne!(both.args, both.error);
        assert_eq!(key.digests(&Content::none()), Digests::NONE);
    }

    #[test]
    fn hostile_depth_is_digested_as_it_came() {
        let deep = "[".repeat(60_000);
        assert_eq!(digest(1, &deep), digest(1, &deep));
        assert_ne!(digest(1, &deep), digest(1, &"[".repeat(59_999)));
    }
}
