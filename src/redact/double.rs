//! Arguments as agy 1.0.0 sends them: each is JSON in a string. May not do I/O, and makes `Raw` of `Raw` only.
//! Decided in `docs/adr/0041-opt-in-content.md`.

use std::fmt::{self, Write};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Raw;

/// How a string in a string begins.
const SIGN: &[u8] = b"\"\\\"";

/// The arguments with each member decoded, if all of them are JSON in strings and at least one is a string in a string.
/// Later versions send values as they are, so that a member like `"12"` alone is no sign of it.
///
/// Looked for first without `serde_json`: its errors ask `memchr` for their place, and that the processor for what it can
/// do, which costs more than the rest of the hook under a hypervisor.
pub(super) fn decode(raw: &Raw) -> Option<Raw> {
    raw.bytes().windows(SIGN.len()).find(|window| *window == SIGN)?;
    let Members(members) = serde_json::from_slice(raw.bytes()).ok()?;
    members.iter().find(|(_, value)| value.starts_with('"'))?;
    let mut text = String::with_capacity(raw.len());
    for (key, value) in members {
        let separator = if text.is_empty() { '{' } else { ',' };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{}:{value}", serde_json::Value::from(key));
    }
    text.push('}');
    Some(Raw::new(text.into_bytes(), true))
}

struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AllEncoded)
    }
}

struct AllEncoded;

impl<'de> Visitor<'de> for AllEncoded {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings that hold JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            let inner = serde_json::from_str::<&RawValue>(&value).map_err(|_| A::Error::custom("no JSON"))?;
            members.push((key, inner.get().to_owned()));
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_encoded_twice_throughout_is_decoded() {
        let decoded = |json: &str| decode(&Raw::new(json.as_bytes().to_vec(), true));
        for (json, expected) in [
            (r#"{"b":"\"x\\n\"","a":"true","c":" {\"k\":[1]} "}"#, Some(r#"{"b":"x\n","a":true,"c":{"k":[1]}}"#)),
            (r#"{"a":"\"x\""}"#, Some(r#"{"a":"x"}"#)),
            (r#"{"a":"\"x\"","b":"plain"}"#, None),
            (r#"{"a":"\"x\"","b":1}"#, None),
            (r#"{"a":"12","b":"true"}"#, None),
            (r#"{"CommandLine":"ls -la","Cwd":"."}"#, None),
            (r#"{"a":"\"x\""#, None),
            ("{}", None),
            (r#""{\"a\":1}""#, None),
            ("[[[", None),
        ] {
            assert_eq!(decoded(json), expected.map(|text| Raw::new(text.as_bytes().to_vec(), true)), "{json}");
        }
    }
}
