//! How single values are read. Pure; None always means "not a value of this kind", and the caller says so by name.
//! Decided in `docs/adr/0010-settings-precedence.md`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::{Compression, Wanted};
use crate::event::Surface;

/// The longest time limit that a request can be given.
pub(super) const LONGEST_TIMEOUT: Duration = Duration::from_secs(300);

pub(super) fn flag(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["1", "true", "yes", "on"]) {
        Some(true)
    } else if is(&["0", "false", "no", "off"]) {
        Some(false)
    } else {
        None
    }
}

/// Seconds with an optional fraction, above 0 and at most [`LONGEST_TIMEOUT`].
pub(super) fn seconds(text: &str) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    let duration = Duration::try_from_secs_f64(number).ok()?;
    (!duration.is_zero() && duration <= LONGEST_TIMEOUT).then_some(duration)
}

/// Milliseconds; 0 is the specification's "no limit", which a sender that must end takes as the longest.
pub(super) fn milliseconds(text: &str) -> Option<Duration> {
    let duration = Duration::from_millis(text.parse().ok()?);
    Some(if duration.is_zero() { LONGEST_TIMEOUT } else { duration.min(LONGEST_TIMEOUT) })
}

pub(super) fn number(text: &str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// An absolute path; `~/` is the home directory, since a quoted value keeps the shell from saying so.
pub(super) fn path(text: &str, home: Option<&str>) -> Option<PathBuf> {
    let full = match text.strip_prefix("~/") {
        Some(rest) => PathBuf::from(home.filter(|home| !home.is_empty())?).join(rest),
        None => PathBuf::from(text),
    };
    full.is_absolute().then_some(full)
}

/// Paths separated by `:` or `,`. On Windows a `:` after a drive letter is not a separator, so only `,` is one.
pub(super) fn paths(text: &str, home: Option<&str>) -> Option<Vec<String>> {
    let separators: &[char] = if cfg!(windows) { &[','] } else { &[':', ','] };
    text.split(separators)
        .map(str::trim)
        .filter(|one| !one.is_empty())
        .map(|one| path(one, home).map(|full| full.to_string_lossy().into_owned()))
        .collect()
}

pub(super) fn surfaces(text: &str) -> Option<Vec<Surface>> {
    let known = [Surface::Cli, Surface::Ide, Surface::Desktop];
    let words = || text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let found: Option<Vec<_>> =
        words().map(|word| known.into_iter().find(|one| one.as_str().eq_ignore_ascii_case(word))).collect();
    found.filter(|found| !found.is_empty())
}

/// The content that is wanted, and which words are no kind of it, counted from 1: they are not shown, since nobody knows
/// what was pasted there.
pub(super) fn wanted(text: &str) -> (Wanted, Vec<usize>) {
    match flag(text) {
        Some(true) => return (Wanted::ALL, Vec::new()),
        Some(false) => return (Wanted::default(), Vec::new()),
        None => {}
    }
    let (mut wanted, mut unknown) = (Wanted::default(), Vec::new());
    for (index, word) in text.split(',').map(str::trim).enumerate().filter(|(_, word)| !word.is_empty()) {
        match word.to_ascii_lowercase().as_str() {
            "args" => wanted.args = true,
            "errors" => wanted.errors = true,
            "prompts" => wanted.prompts = true,
            "outputs" => wanted.outputs = true,
            "results" => wanted.results = true,
            _ => unknown.push(index + 1),
        }
    }
    (wanted, unknown)
}

pub(super) fn compression(text: &str) -> Option<Compression> {
    match text.to_ascii_lowercase().as_str() {
        "none" => Some(Compression::None),
        "gzip" => Some(Compression::Gzip),
        _ => None,
    }
}

/// Percent-decodes leniently: a `%` that starts no pair of hex digits stays.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Resource attributes; None if one pair is malformed, since half of them could name another service.
pub(super) fn attributes(text: &str) -> Option<Vec<(String, String)>> {
    text.split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let name = decode(name.trim()).into_owned();
            (!name.is_empty()).then(|| (name, decode(value.trim()).into_owned()))
        })
        .collect()
}

/// Request headers, names in lower case. An error says which pair is wrong, and its name if that is a header's name;
/// never a value, which is a key as a rule.
pub(super) fn headers(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    for (index, pair) in text.split(',').map(str::trim).enumerate().filter(|(_, pair)| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(format!("pair {} has no `=`: expected name=value,name=value", index + 1));
        };
        let name = decode(name.trim());
        let Ok(name) = http::HeaderName::from_bytes(name.as_bytes()) else {
            return Err(format!(
                "the name of pair {} is no header name; a comma or `=` inside a value must be percent-encoded",
                index + 1
            ));
        };
        let value = decode(value.trim());
        if !value.is_ascii() || http::HeaderValue::from_str(&value).is_err() {
            return Err(format!("the value of `{name}` has characters that no header may have"));
        }
        headers.push((name.as_str().to_owned(), value.into_owned()));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_numbers() {
        for (text, value) in
            [("1", Some(true)), ("Yes", Some(true)), ("on", Some(true)), ("OFF", Some(false)), ("2", None)]
        {
            assert_eq!(flag(text), value, "{text}");
        }
        for (text, ms) in [("10", Some(10_000)), ("2.5", Some(2500)), ("0", None), ("-1", None), ("301", None)] {
            assert_eq!(seconds(text), ms.map(Duration::from_millis), "{text}");
        }
        for text in ["NaN", "inf", "1e99", "10s", ""] {
            assert_eq!(seconds(text), None, "{text}");
        }
        for (text, ms) in [("10000", Some(10_000)), ("0", Some(300_000)), ("999999999", Some(300_000)), ("1.5", None)] {
            assert_eq!(milliseconds(text), ms.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn paths_are_absolute() {
        let home = Some("/home/u");
        assert_eq!(path("~/x", home), Some("/home/u/x".into()));
        assert_eq!(path("~/x", None), None);
        assert_eq!(path("x", home), None);
        assert_eq!(path("$HOME/x", home), None);
        assert_eq!(paths("/a:~/b, /c", home), Some(vec!["/a".into(), "/home/u/b".into(), "/c".into()]));
        assert_eq!(paths("/a:b", home), None);
    }

    #[test]
    fn headers_are_split_at_the_first_equals_sign_and_decoded_leniently() {
        for (text, name, value) in [
            ("Authorization=Basic YTpi==", "authorization", "Basic YTpi=="),
            ("authorization=Bearer%20x", "authorization", "Bearer x"),
            (" api-key = a b ", "api-key", "a b"),
            ("k=100%", "k", "100%"),
            ("k=%zz%2C", "k", "%zz,"),
            ("k=a+b", "k", "a+b"),
            ("k=a;b", "k", "a;b"),
            ("k=", "k", ""),
            ("k=v,", "k", "v"),
        ] {
            assert_eq!(headers(text), Ok(vec![(name.to_owned(), value.to_owned())]), "{text}");
        }
        for (text, said) in [
            ("hush", "pair 1 has no `=`"),
            ("a=b,hush", "pair 2 has no `=`"),
            ("a=b,Authorization: hush=", "the name of pair 2"),
            ("=hush", "the name of pair 1"),
            ("api-key=hush%0a", "the value of `api-key`"),
            ("api-key=hüsh", "the value of `api-key`"),
        ] {
            let error = headers(text).expect_err(text);
            assert!(error.contains(said) && !error.contains("hush"), "{text}: {error}");
        }
    }

    #[test]
    fn lists_of_words() {
        assert_eq!(surfaces("cli, Desktop"), Some(vec![Surface::Cli, Surface::Desktop]));
        assert_eq!(surfaces("cli,web"), None);
        assert_eq!(surfaces(","), None);
        assert_eq!(wanted("args, Errors"), (Wanted { args: true, errors: true, ..Wanted::default() }, vec![]));
        assert_eq!(wanted("0"), (Wanted::default(), vec![]));
        assert_eq!(wanted("true"), (Wanted::ALL, vec![]));
        assert_eq!(wanted("argz,,results,1"), (Wanted { results: true, ..Wanted::default() }, vec![1, 4]));
        assert_eq!(attributes("a=b%2Cc,d=e=f"), Some(vec![("a".into(), "b,c".into()), ("d".into(), "e=f".into())]));
        assert_eq!(attributes("a=b,c"), None);
    }
}
