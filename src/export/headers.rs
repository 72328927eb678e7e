//! The headers of a request, and the words of a receiver without them: an answer may repeat a key, a log may not.
//! Pure. Decided in `docs/adr/0015-export-transports.md`.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::{BuildError, MESSAGE_CHARS};
use crate::config::Destination;

/// A value shorter than this is no key, and taking it out would shred a message.
const SHORTEST_SECRET: usize = 4;

/// The headers that carry a destination's keys.
pub(super) fn of(destination: &Destination) -> Result<HeaderMap, BuildError> {
    let pairs: Vec<(&str, &str)> = match destination {
        Destination::FutureAgi { api_key, secret_key, .. } => {
            vec![("x-api-key", api_key.expose()), ("x-secret-key", secret_key.expose())]
        }
        Destination::Otlp { headers, .. } => {
            headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect()
        }
        Destination::None { .. } | Destination::Incomplete { .. } | Destination::Invalid { .. } => Vec::new(),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let wrong = || BuildError::Header(name.to_owned());
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
    }
    Ok(headers)
}

/// What must not stand in a message: header values, the words in them, and what Basic credentials decode to.
pub(super) fn secrets(headers: &HeaderMap) -> Vec<String> {
    let mut secrets: Vec<String> = Vec::new();
    for value in headers.values().filter_map(|value| value.to_str().ok()) {
        secrets.push(value.to_owned());
        secrets.extend(value.split_whitespace().skip(1).map(str::to_owned));
        let Some(credentials) = value.get(..6).filter(|scheme| scheme.eq_ignore_ascii_case("basic ")) else { continue };
        let encoded = value.get(credentials.len()..).unwrap_or_default().trim();
        if let Some(decoded) = BASE64_STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
            secrets.extend(decoded.split(':').map(str::to_owned));
            secrets.push(decoded);
        }
    }
    secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

/// Words as they may be kept: one line, no secrets, at most [`MESSAGE_CHARS`]. None if nothing is left.
pub(super) fn cleaned(words: &str, secrets: &[String]) -> Option<String> {
    let mut words = words.to_owned();
    for secret in secrets {
        if words.contains(secret.as_str()) {
            words = words.replace(secret.as_str(), "[REDACTED]");
        }
    }
    let line = words.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = line.fold(String::new(), |line, word| if line.is_empty() { word.to_owned() } else { line + " " + word });
    let kept: String = line.chars().take(MESSAGE_CHARS).collect();
    Some(kept).filter(|kept| !kept.is_empty())
}

/// Retry-After: seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn no_header_value_stays_in_a_message() {
        let secrets = secrets(&map(&[
            ("authorization", "Basic cGstbGY6c2stbGYtaHVzaA=="),
            ("x-api-key", "hush-key"),
            ("x-token", "Bearer abcdefgh"),
            ("x-on", "1"),
        ]));
        for (words, kept) in [
            ("bad key hush-key", "bad key [REDACTED]"),
            ("token abcdefgh, Bearer abcdefgh", "token [REDACTED], [REDACTED]"),
            ("user sk-lf-hush or cGstbGY6c2stbGYtaHVzaA==", "user [REDACTED] or [REDACTED]"),
            ("line 1\r\n\tline 2\u{0}", "line 1 line 2"),
        ] {
            assert_eq!(cleaned(words, &secrets).as_deref(), Some(kept));
        }
        assert_eq!(cleaned(" \n", &secrets), None);
        assert_eq!(cleaned(&"é".repeat(600), &[]).map(|kept| kept.chars().count()), Some(MESSAGE_CHARS));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_700);
        for (text, seconds) in [
            ("120", Some(120)),
            ("0", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(77)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
            ("1.5", None),
        ] {
            let headers = map(&[("retry-after", text)]);
            assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
