//! Finds secrets in command lines: `--password x`, `curl -u user:x`, `sshpass -p x`, `mysql -px`, `machine h password x`. May not
//! take a short flag for one unless the command was seen before it.

use super::assign::closing;
use super::bytes::{before, byte, is_blank, is_quote, is_space, is_word, part, run, run_back, stands};
use super::harmless::{Place, harmless, is_mask, is_reference};
use super::names::{self, Kind};
use super::scan::Around;

/// Commands that were seen so far, whose short flags are known.
#[derive(Default)]
pub(super) struct Commands {
    curl: bool,
    mysql: bool,
    pass: bool,
    redis: bool,
}

impl Commands {
    /// Notes the command that stands there, if one does.
    pub(super) fn note(&mut self, bytes: &[u8], at: usize) {
        if is_word(before(bytes, at)) {
            return;
        }
        let any = |words: &[&str]| words.iter().any(|word| stands(bytes, at, word));
        match byte(bytes, at).to_ascii_lowercase() {
            b'c' => self.curl |= any(&["curl"]),
            b'h' => self.curl |= any(&["http ", "https "]),
            b'm' => {
                self.mysql |= any(&["mysql", "mariadb"]);
                self.pass |= any(&["mongo"]);
            }
            b'l' => {
                self.pass |= any(&["ldap"]);
            }
            b's' => self.pass |= any(&["sshpass"]),
            b'd' => self.pass |= any(&["docker login"]),
            b'p' => self.pass |= any(&["podman login"]),
            b'r' => self.redis |= any(&["redis-cli"]),
            _ => {}
        }
    }

    /// The secret after the short flag whose blank is at `at`.
    pub(super) fn short(&self, bytes: &[u8], at: usize, open: bool) -> Option<(usize, usize)> {
        let flag = byte(bytes, at + 2);
        let after = at + 3;
        let start = run(bytes, after, |byte| is_blank(byte) || byte == b'=').min(after + 4);
        let attached = start == after;
        match flag {
            b'u' | b'U' | b'a' if self.curl => user(bytes, start, open),
            b'b' if self.curl => {
                argument(bytes, start, open).filter(|(start, end)| part(bytes, *start, *end).contains(&b'='))
            }
            b'p' if self.mysql && attached && !is_space(byte(bytes, start)) => word(bytes, start, open),
            b'p' if self.pass && !byte(bytes, start).is_ascii_control() => word(bytes, start, open),
            b'w' if self.pass && !attached => word(bytes, start, open),
            b'a' if self.redis && !attached => word(bytes, start, open),
            _ => None,
        }
    }

    /// Whether what follows the flag, or stands in it, is a secret: for lists of arguments.
    pub(super) fn takes(&self, flag: &str, value: &str) -> bool {
        match flag {
            "-u" | "-U" | "--user" | "--proxy-user" => self.curl && value.contains(':'),
            "-p" => self.pass,
            "-w" => self.pass && !value.starts_with('-'),
            "-a" => self.redis || self.curl && value.contains(':'),
            _ => self.mysql && value.len() > 2 && value.starts_with("-p"),
        }
    }

    /// What follows the long flag at `at`, or stands in it.
    pub(super) fn long(&self, bytes: &[u8], at: usize, open: bool) -> Option<(Around, (usize, usize))> {
        if before(bytes, at) == b'-' {
            return None;
        }
        let name = at + 2;
        let end = run(part(bytes, 0, name + names::MOST), name, |byte| is_word(byte) || byte == b'-');
        let start = if is_quote(byte(bytes, end)) { next_element(bytes, end)? } else { run(bytes, end, is_space) };
        if start == end || byte(bytes, start) == b'=' {
            return None;
        }
        let flag = part(bytes, name, end);
        if matches!(flag, b"user" | b"proxy-user" | b"auth") && self.curl {
            return user(bytes, start, open).map(|found| (Around::CommandFlag, found));
        }
        let kind = names::kind(flag)?;
        let (first, last) = argument(bytes, start, open)?;
        let value = part(bytes, first, last);
        let pair = flag == b"secret" && value.starts_with(b"id=") || kind == Kind::Cookie && !value.contains(&b'=');
        let secret = !pair && byte(bytes, start) != b'-' && !harmless(value, kind, Place::Shell);
        secret.then(|| (Around::of(kind), (first, last)))
    }
}

/// `login x password y`, as `.netrc` has it.
pub(super) fn netrc(bytes: &[u8], at: usize, open: bool) -> Option<(usize, usize)> {
    if !stands(bytes, at, "password") || !is_space(byte(bytes, at + 8)) || !is_space(before(bytes, at)) {
        return None;
    }
    let user = run_back(bytes, run_back(bytes, at, 16, is_space), 64, |byte| !is_space(byte));
    let blank = run_back(bytes, user, 16, is_space);
    let login = blank < user && stands(bytes, blank.checked_sub(5)?, "login");
    if login { word(bytes, run(bytes, at + 8, is_space), open) } else { None }
}

/// Where the next string of a list begins, if the one that ends there is followed by one.
fn next_element(bytes: &[u8], end: usize) -> Option<usize> {
    let comma = run(bytes, end + 1, is_space);
    let start = run(bytes, comma + 1, is_space);
    (byte(bytes, comma) == b',' && is_quote(byte(bytes, start))).then_some(start)
}

/// The password of `user:password`.
fn user(bytes: &[u8], at: usize, open: bool) -> Option<(usize, usize)> {
    let (start, end) = argument(bytes, at, open)?;
    let colon = run(part(bytes, 0, end), start, |byte| byte != b':');
    let value = part(bytes, colon + 1, end);
    let number = value.iter().all(u8::is_ascii_digit) && part(bytes, start, colon).iter().all(u8::is_ascii_digit);
    if colon < end && !number && !harmless(value, Kind::Password, Place::Shell) {
        return Some((colon + 1, end));
    }
    // `-u key:`
    let user = part(bytes, start, colon);
    (colon < end && value.is_empty() && !harmless(user, Kind::Token, Place::Shell)).then_some((start, colon))
}

/// The next word, if it is no variable.
fn word(bytes: &[u8], at: usize, open: bool) -> Option<(usize, usize)> {
    let (start, end) = argument(bytes, at, open)?;
    let value = part(bytes, start, end);
    let skip = value.starts_with(b"-") || is_reference(value) || is_mask(value);
    (!skip).then_some((start, end))
}

/// The next argument, without its quotes.
fn argument(bytes: &[u8], at: usize, open: bool) -> Option<(usize, usize)> {
    let level = run(bytes, at, |byte| byte == b'\\') - at;
    let quote = byte(bytes, at + level);
    if is_quote(quote) {
        let start = at + level + 1;
        return Some((start, closing(bytes, start, quote, level, open)));
    }
    let end = run(bytes, at, |byte| {
        !byte.is_ascii_whitespace() && !is_quote(byte) && !matches!(byte, b'|' | b';' | b'&' | b')')
    });
    // The backslashes of an escaped quote.
    let end = if is_quote(byte(bytes, end)) { run_back(bytes, end, end - at, |byte| byte == b'\\') } else { end };
    (end > at).then_some((at, end))
}
