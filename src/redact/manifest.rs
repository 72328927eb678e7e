//! Knows that a manifest of Kubernetes is one of a `Secret`, where every value of `data` is secret whatever its name. May not
//! parse YAML: it reads lines and how far they are indented; decided in `docs/adr/0040-redaction-engine.md`.

use super::bytes::{before, byte, is_blank, is_quote, is_word, part, run, run_back, stands};
use super::flags::Found;
use super::harmless::{is_mask, is_reference};
use super::steps::look;

/// What is known of the manifest so far.
#[derive(Default)]
pub(super) struct Manifest {
    /// Whether it is one of a secret, once its kind was read.
    secret: Option<bool>,
    /// The kind that comes next, and where; none that is nearer was looked for.
    ahead: Option<(usize, bool)>,
    /// How far the line with `data:` is indented.
    data: Option<usize>,
}

impl Manifest {
    /// The next manifest begins.
    pub(super) fn end(&mut self) {
        (self.secret, self.data) = (None, None);
    }

    /// The value after the colon at `at`, if it is one of a secret's data.
    pub(super) fn value(&mut self, bytes: &[u8], at: usize) -> Found {
        if before(bytes, at) == b'd' && stands(bytes, at.checked_sub(4)?, "kind") {
            self.secret = Some(is_secret(bytes, at));
        }
        if self.data.is_none() {
            self.data = self.begins(bytes, at);
            return None;
        }
        let (key, indent) = key(bytes, at)?;
        if self.data.is_some_and(|data| indent <= data) {
            self.data = self.begins(bytes, at);
            return None;
        }
        let start = run(bytes, at + 1, is_blank);
        let end = run(bytes, start, |byte| !matches!(byte, b'\n' | b'\r'));
        let end = if matches!(byte(bytes, start), b'|' | b'>') { block(bytes, end, indent) } else { end };
        let start = if is_quote(byte(bytes, start)) { start + 1 } else { start };
        let end = if end > start && is_quote(before(bytes, end)) { end - 1 } else { end };
        let value = part(bytes, start, end);
        (key < at && start < end && !is_mask(value) && !is_reference(value)).then_some((start, end))
    }

    /// How far `data:` is indented, if that is what stands before the colon and the manifest is a secret's.
    fn begins(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        if before(bytes, at) != b'a' || !matches!(byte(bytes, at + 1), b'\n' | b'\r' | b' ') {
            return None;
        }
        let (key, indent) = key(bytes, at)?;
        let data = matches!(part(bytes, key, at), b"data" | b"stringData")
            && matches!(byte(bytes, run(bytes, at + 1, is_blank)), b'\n' | b'\r');
        (data && self.secret.unwrap_or_else(|| self.comes(bytes, at))).then_some(indent)
    }

    /// Whether the kind that stands behind the data is a secret's, as in what `kubectl get` prints.
    fn comes(&mut self, bytes: &[u8], at: usize) -> bool {
        if let Some((place, secret)) = self.ahead
            && place > at
        {
            return secret;
        }
        const KIND: &[u8] = b"\nkind:";
        let rest = part(bytes, at, bytes.len());
        let end = rest.windows(KIND.len()).position(|six| six == KIND || six.starts_with(b"\n---"));
        look(end.unwrap_or(rest.len()));
        let place = end.map_or(usize::MAX, |length| at + length);
        let secret = part(bytes, place, place.saturating_add(KIND.len())) == KIND && is_secret(bytes, place + 5);
        self.ahead = Some((place, secret));
        secret
    }
}

/// Whether `Secret` stands behind the colon.
fn is_secret(bytes: &[u8], colon: usize) -> bool {
    let start = run(bytes, colon + 1, |byte| is_blank(byte) || is_quote(byte));
    part(bytes, start, start + 6) == b"Secret" && !is_word(byte(bytes, start + 6))
}

/// Where the key of the line begins whose colon is at `at`, and how far it is indented.
fn key(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let key = run_back(bytes, at, 64, |byte| is_word(byte) || is_quote(byte) || matches!(byte, b'-' | b'.' | b'/'));
    let line = run_back(bytes, key, 32, |byte| byte == b' ');
    matches!(before(bytes, line), 0 | b'\n').then_some((key, key - line))
}

/// Where the lines end that are indented further.
fn block(bytes: &[u8], from: usize, indent: usize) -> usize {
    let mut end = from;
    while end < bytes.len() {
        let next = run(bytes, end, |byte| matches!(byte, b'\n' | b'\r'));
        let text = run(bytes, next, is_blank);
        if text - next <= indent {
            break;
        }
        end = run(bytes, text, |byte| byte != b'\n');
    }
    end
}
