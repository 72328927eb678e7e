//! Secrets whose shape is not one of letters: private keys in PEM, passwords in addresses, authorizations without a header.
//! May not look further ahead than they go.

use super::bytes::{before, byte, is_blank, is_quote, is_space, is_word, part, run, run_back, stands};
use super::harmless::{is_mask, is_reference};
use super::steps::look;

/// `-----BEGIN … PRIVATE KEY-----` and what follows it, to its end or, without one, as far as it may go.
pub(super) fn private_key(bytes: &[u8], at: usize, open: bool) -> Option<(usize, usize)> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let label = at + BEGIN.len();
    if part(bytes, at, label) != BEGIN {
        return None;
    }
    let label_end = run(part(bytes, 0, label + 48), label, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
    });
    let words = part(bytes, label, label_end);
    let private = words.windows(11).any(|part| part == b"PRIVATE KEY");
    let body = run(bytes, label_end, |byte| byte == b'-');
    if !private {
        // Cut within its first line, there is nothing yet.
        return None;
    }
    if body < label_end + 5 {
        return None;
    }
    let first = run(bytes, body, |byte| {
        is_space(byte) || is_quote(byte) || matches!(byte, b'\\' | b'+' | b',' | b'n' | b'r' | b'|' | b'>')
    });
    let run_end =
        run(bytes, first, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b':'));
    let is_body = run_end - first >= 16
        || (run_end == bytes.len() && run_end > first)
        || stands(bytes, first, "proc-type")
        || stands(bytes, first, "version:")
        || stands(bytes, first, "comment:");
    if !is_body {
        return None;
    }
    let end = key_end(bytes, first);
    Some((at, if open && end == bytes.len() { bytes.len() } else { end }))
}

/// Past `-----END …-----`; without that, where the first byte is that cannot be the key's.
fn key_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        at = run(bytes, at, |byte| {
            byte.is_ascii_alphanumeric()
                || is_space(byte)
                || is_quote(byte)
                || matches!(byte, b'+' | b'/' | b'=' | b'\\' | b',' | b':' | b'|' | b'>')
        });
        let dashes = run(bytes, at, |byte| byte == b'-');
        if dashes == at {
            // What stands before it may be the begin of another secret.
            let word = run_back(bytes, at, bytes.len(), |byte| !is_space(byte));
            return if at < bytes.len() && word > from { word } else { at };
        }
        if part(bytes, at, dashes).len() >= 5 {
            if stands(bytes, dashes, "begin ") {
                return at;
            }
            let label = run(part(bytes, 0, dashes + 64), dashes, |byte| {
                byte.is_ascii_uppercase() || byte == b' ' || byte.is_ascii_digit()
            });
            return run(bytes, label, |byte| byte == b'-');
        }
        at = dashes;
    }
}

/// What of an address is known so far, so that no byte is looked for twice.
#[derive(Default)]
pub(super) struct Ahead {
    at: usize,
    blank: usize,
}

impl Ahead {
    /// The first `@` from there on, and the first byte that no address has; the end of the text for none.
    fn of(&mut self, bytes: &[u8], from: usize) -> (usize, usize) {
        if self.blank < from || self.blank == 0 {
            self.blank =
                run(bytes, from, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'<' | b'>') && !is_quote(byte));
        }
        if self.at < from || self.at == 0 {
            self.at = run(bytes, from, |byte| byte != b'@');
        }
        (self.at, self.blank)
    }
}

/// The password of `scheme://user:password@host`, or the user where that is the secret. The colon is at `at`.
pub(super) fn address(bytes: &[u8], at: usize, ahead: &mut Ahead) -> Option<(usize, usize)> {
    let user = at + 3;
    if part(bytes, at, user) != b"://"
        || !byte(bytes, at.wrapping_sub(1)).is_ascii_alphanumeric()
        || byte(bytes, user) == b'['
    {
        return None;
    }
    let (first_at, end) = ahead.of(bytes, user);
    if first_at >= end {
        return None;
    }
    let host = run(bytes, user, |byte| !matches!(byte, b':' | b'/' | b'?' | b'#' | b'@')).min(end);
    if byte(bytes, host) == b'@' {
        let secret = host - user >= 20 && part(bytes, user, host).iter().any(u8::is_ascii_digit);
        return secret.then_some((user, host));
    }
    if byte(bytes, host) != b':' {
        return None;
    }
    let password = host + 1;
    let slash = run(bytes, password, |byte| !matches!(byte, b'/' | b'?' | b'#')).min(end);
    let last = if first_at < slash { slash } else { end };
    // A port, and an `@` in the path.
    if first_at >= slash && part(bytes, password, slash).iter().all(u8::is_ascii_digit) {
        return None;
    }
    let stop = last_at(bytes, first_at, last);
    let value = part(bytes, password, stop);
    if value.is_empty() || value == b"x-oauth-basic" {
        let name = part(bytes, user, host);
        return (!is_reference(name) && !is_mask(name)).then_some((user, host));
    }
    (!is_reference(value) && !is_mask(value)).then_some((password, stop))
}

/// The last `@` up to `end`, from one that is known.
fn last_at(bytes: &[u8], first: usize, end: usize) -> usize {
    look(end - first);
    let rest = part(bytes, first, end);
    first + rest.iter().rposition(|&byte| byte == b'@').unwrap_or(0)
}

/// The password in `user:password@tcp(host)`. The `@` is at `at`.
pub(super) fn dsn(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if ![b"@tcp(".as_slice(), b"@unix(", b"@tcp6("]
        .iter()
        .any(|net| bytes.get(at..).is_some_and(|rest| rest.starts_with(net)))
    {
        return None;
    }
    let colon =
        run_back(bytes, at, 128, |byte| !byte.is_ascii_whitespace() && !is_quote(byte) && !matches!(byte, b':' | b'('));
    let value = part(bytes, colon, at);
    let secret =
        before(bytes, colon) == b':' && is_word(before(bytes, colon - 1)) && !is_reference(value) && !is_mask(value);
    secret.then_some((colon, at))
}

/// What follows `Bearer ` or `Basic ` and is no word.
pub(super) fn scheme(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if is_word(before(bytes, at)) {
        return None;
    }
    let bearer = stands(bytes, at, "bearer");
    let word = if bearer {
        at + 6
    } else if stands(bytes, at, "basic") {
        at + 5
    } else {
        return None;
    };
    let start = run(bytes, word, |byte| is_blank(byte) || matches!(byte, b'+' | b':')).min(word + 3);
    let start = if start == word && part(bytes, word, word + 3) == b"%20" { word + 3 } else { start };
    if start == word {
        return None;
    }
    let end = run(bytes, start, |byte| is_word(byte) || matches!(byte, b'-' | b'.' | b'~' | b'+' | b'/' | b'='));
    let token = part(bytes, start, end);
    let digits = token.iter().filter(|byte| byte.is_ascii_digit()).count();
    let humps = token
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
        .count();
    let secret = if bearer {
        token.len() >= 8 && digits > 0 && token.len() - digits > 2 || token.len() >= 20 && humps > 1
    } else {
        token.len() >= 8 && holds_colon(token)
    };
    secret.then_some((start, end))
}

/// Whether that is base64 of a text with a colon.
pub(super) fn holds_colon(token: &[u8]) -> bool {
    let mut bits = 0_u32;
    let mut colon = false;
    for (count, &byte) in token.iter().filter(|&&byte| byte != b'=').enumerate() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        bits = (bits << 6) | u32::from(value);
        let left = [6, 4, 2, 0].get(count % 4).copied().unwrap_or(0);
        if count % 4 != 0 {
            let decoded = (bits >> (left - if left == 6 { 6 } else { 0 })) & 0xff;
            if decoded < 0x20 || decoded == 0x7f {
                return false;
            }
            colon |= decoded == u32::from(b':');
        }
    }
    colon
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert!(holds_colon(b"dXNlcjpwYXNz"));
        assert!(holds_colon(b"YWxhZGRpbjpvcGVuc2VzYW1l"));
        assert!(holds_colon(b"OnA="));
        assert!(!holds_colon(b"authentication"));
        assert!(!holds_colon(b"training"));
        assert!(!holds_colon(b"credentials"));
    }
}
