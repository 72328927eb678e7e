//! Looks at what stands behind a value of an object of JSON, where keys have no order: `{"value": "…", "name": "API_KEY"}`. May
//! not go far, or into what is nested, so that nothing is read many times; decided in `docs/adr/0040-redaction-engine.md`.

use super::bytes::{byte, is_quote, is_space, part, run};
use super::decode;
use super::names;
use super::skip::scalar_end;

/// How many members behind a value are looked at.
const MEMBERS: usize = 2;

/// What `see` makes of the key and the text of one of the next members. Of the value at `at` itself only a string, or an
/// object without another in it, is passed over.
pub(super) fn find<T>(bytes: &[u8], at: usize, see: impl Fn(&str, &str) -> Option<T>) -> Option<T> {
    let mut end = past(bytes, at)?;
    for _ in 0..MEMBERS {
        let comma = run(bytes, end, is_space);
        let key = run(bytes, comma + 1, is_space);
        if byte(bytes, comma) != b',' || byte(bytes, key) != b'"' {
            return None;
        }
        let colon = run(bytes, string(bytes, key)?, is_space);
        let value = run(bytes, colon + 1, is_space);
        end = past(bytes, value)?;
        if byte(bytes, colon) == b':'
            && byte(bytes, value) == b'"'
            && let Some(found) = see(&text(bytes, key), &text(bytes, value))
        {
            return Some(found);
        }
    }
    None
}

/// Where the value ends that begins there.
fn past(bytes: &[u8], at: usize) -> Option<usize> {
    match byte(bytes, at) {
        b'"' => string(bytes, at),
        b'{' => flat(bytes, at),
        _ => scalar_end(bytes, at).ok(),
    }
}

fn flat(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at = run(bytes, at, |byte| !is_quote(byte) && !matches!(byte, b'{' | b'[' | b'}' | b']'));
        match byte(bytes, at) {
            b'"' => at = string(bytes, at)?,
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

fn string(bytes: &[u8], at: usize) -> Option<usize> {
    let (end, closed) = decode::string_end(bytes, at + 1);
    closed.then_some(end + 1)
}

/// The begin of the string there.
fn text(bytes: &[u8], at: usize) -> String {
    let (end, _) = decode::string_end(part(bytes, 0, at + 1 + names::MOST), at + 1);
    decode::string(part(bytes, at + 1, end))
}
