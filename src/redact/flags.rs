//! Finds secrets in command lines: `--password x`, `-Password x`, `curl -u user:x`, `sshpass -p x`, `mysql -px`, `machine h password
//! x`. May not take a short flag for one unless its command is being told something; decided in
//! `docs/adr/0040-redaction-engine.md`.

use super::assign::closing;
use super::bytes::{before, byte, is_blank, is_quote, is_space, is_word, part, run, run_back, stands};
use super::commands::{Takes, has};
use super::harmless::{Place, harmless, is_mask, is_reference};
use super::line::Commands;
use super::names::{self, Kind};
use super::scan::Around;

/// Where a secret begins and ends.
pub(super) type Found = Option<(usize, usize)>;

/// The secret after the flag whose blank is at `at`: `-p x`, `-px`, `-sSu user:x`, `-Password x`.
pub(super) fn short(commands: &mut Commands, bytes: &[u8], at: usize, open: bool) -> Found {
    let takes = commands.known(bytes, at);
    let flag = byte(bytes, at + 2);
    let after = at + 3;
    let start = run(bytes, after, |byte| is_blank(byte) || byte == b'=').min(after + 4);
    let attached = start == after;
    if has(takes.user, flag) {
        return user(takes, bytes, start, open);
    }
    if has(takes.pair, flag) {
        return argument(bytes, start, open).filter(|(start, end)| part(bytes, *start, *end).contains(&b'='));
    }
    if has(takes.joined, flag) && attached && !is_space(byte(bytes, start)) {
        return word(bytes, start, open).filter(|(start, end)| !is_test(part(bytes, *start, *end)));
    }
    let name_end = run(part(bytes, 0, after + names::MOST), at + 2, |byte| is_word(byte) || byte == b'-');
    if let Some(found) = single(takes, bytes, (at + 2, name_end), open) {
        return Some(found);
    }
    if has(takes.flag, flag) && !byte(bytes, start).is_ascii_control() || has(takes.apart, flag) && !attached {
        return word(bytes, start, open);
    }
    // `-sSu user:password`
    let last = before(bytes, name_end);
    let bundle = attached && has(takes.user, last) && name_end - after < 8 && is_blank(byte(bytes, name_end));
    if bundle { user(takes, bytes, run(bytes, name_end, is_blank), open) } else { None }
}

/// What follows a long flag with one dash: `-Password x`, `-storepass x`, `-passin pass:x`, `-pw x`.
fn single(takes: Takes, bytes: &[u8], name: (usize, usize), open: bool) -> Found {
    let start = run(bytes, name.1, is_blank);
    let flag = part(bytes, name.0, name.1);
    if flag.len() < 2 || flag.starts_with(b"-") || start == name.1 || matches!(byte(bytes, start), b'-' | b'(') {
        return None;
    }
    let (first, last) = argument(bytes, start, open)?;
    if matches!(flag, b"pass" | b"passin" | b"passout") {
        return part(bytes, first, last).starts_with(b"pass:").then_some((first + 5, last));
    }
    let password = flag == b"pw" && has(takes.flag, b'p');
    let named = flag.len() > 3 && matches!(names::kind(flag), Some(Kind::Password | Kind::Token));
    let secret = (password || named) && !harmless(part(bytes, first, last), Kind::Token, Place::Shell);
    secret.then_some((first, last))
}

/// Whether what follows the flag, or stands in it, is a secret: for lists of arguments.
pub(super) fn takes(known: Takes, flag: &str, value: &str) -> bool {
    let letter = match flag.as_bytes() {
        [b'-', letter] => *letter,
        _ => 0,
    };
    let divided = value.contains(char::from(known.divider));
    let pair = known.user != 0 && matches!(flag, "--user" | "--proxy-user" | "--auth") || has(known.user, letter);
    let joined = match value.as_bytes() {
        [b'-', letter, _, ..] => has(known.joined, *letter),
        _ => false,
    };
    let long = known.value && matches!(flag, "--value" | "--body");
    pair && divided || joined || !value.starts_with('-') && (long || has(known.flag | known.apart, letter))
}

/// What follows the long flag at `at`, or stands in it.
pub(super) fn long(commands: &mut Commands, bytes: &[u8], at: usize, open: bool) -> Option<(Around, (usize, usize))> {
    if before(bytes, at) == b'-' {
        return None;
    }
    let name = at + 2;
    let end = run(part(bytes, 0, name + names::MOST), name, |byte| is_word(byte) || byte == b'-');
    let start = if is_quote(byte(bytes, end)) { next_element(bytes, end)? } else { run(bytes, end, is_space) };
    if start == end || byte(bytes, start) == b'=' {
        return None;
    }
    let command = |found| (Around::CommandFlag, found);
    let flag = part(bytes, name, end);
    match flag {
        b"user" | b"proxy-user" | b"auth" => {
            let takes = commands.known(bytes, at);
            if takes.user != 0 {
                return user(takes, bytes, start, open).map(command);
            }
        }
        b"value" | b"body" if commands.known(bytes, at).value => return word(bytes, start, open).map(command),
        b"arg" => return super::given::given(bytes, start, open).map(command),
        _ => {}
    }
    let kind = names::kind(flag)?;
    let (first, last) = argument(bytes, start, open)?;
    let value = part(bytes, first, last);
    let pair = flag == b"secret" && value.starts_with(b"id=") || kind == Kind::Cookie && !value.contains(&b'=');
    let secret = !pair && !is_metavar(value) && byte(bytes, start) != b'-' && !harmless(value, kind, Place::Shell);
    secret.then(|| (Around::of(kind), (first, last)))
}

/// `--token TOKEN`, as a usage has it.
fn is_metavar(value: &[u8]) -> bool {
    let capitals = value.iter().all(|&byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-' | b']' | b','));
    capitals && names::kind(value.trim_ascii_end().strip_suffix(b"]").unwrap_or(value)).is_some()
}

/// The value of a pair whose equals sign is at `at`, of a command that is told secrets by any name.
pub(super) fn pair(commands: &mut Commands, bytes: &[u8], at: usize, open: bool) -> Found {
    if is_space(byte(bytes, at + 1)) || !commands.known(bytes, at).pairs {
        return None;
    }
    let start = run_back(bytes, at, 64, |byte| !is_space(byte) && !is_quote(byte));
    let head = part(bytes, start, at);
    let literal = [b"--from-literal=".as_slice(), b"--from-literal"].iter().find_map(|flag| head.strip_prefix(*flag));
    if head.is_empty() || head.starts_with(b"-") && literal.is_none_or(<[u8]>::is_empty) {
        return None;
    }
    word(bytes, at + 1, open).filter(|(start, end)| !matches!(byte(bytes, *start), b'@' | b'/') && start < end)
}

/// What a command that reads a secret is told behind `<<<`.
pub(super) fn here(commands: &mut Commands, bytes: &[u8], at: usize, open: bool) -> Found {
    if part(bytes, at, at + 3) != b"<<<" || !commands.known(bytes, at).input {
        return None;
    }
    word(bytes, run(bytes, at + 3, is_blank), open)
}

/// What an `echo` says to a command that reads a secret: all of it, unless it is made of variables.
pub(super) fn said(bytes: &[u8], start: usize, pipe: usize) -> Found {
    let mut start = start;
    while byte(bytes, start) == b'-' && byte(bytes, start + 1).is_ascii_alphabetic() {
        start = run(bytes, run(bytes, start, |byte| !is_space(byte)), is_blank);
    }
    let end = run_back(bytes, pipe, 64, is_space);
    let bare = |word: &[u8]| {
        let letter = |byte: &u8| !is_quote(*byte) && *byte != b'\\';
        let first = word.iter().position(letter).unwrap_or(0);
        let last = word.iter().rposition(letter).map_or(0, |last| last + 1);
        let word = part(word, first, last);
        word.len() < 4 || word.starts_with(b"%") || is_reference(word) || is_mask(word)
    };
    let words = part(bytes, start, end);
    let known = bare(words) || words.split(|&byte| is_space(byte)).all(bare);
    (start < end && !known).then_some((start, end))
}

/// What `-p` begins that is a test or an action of `find`.
fn is_test(rest: &[u8]) -> bool {
    matches!(rest, b"rint" | b"rint0" | b"rintf" | b"rune" | b"ath" | b"erm")
}

/// `login x password y`, as `.netrc` has it, and `password y` or `auth y` of a command that takes it so.
pub(super) fn spoken(commands: &mut Commands, bytes: &[u8], at: usize, open: bool) -> Found {
    let auth = stands(bytes, at, "auth ");
    let end = at + if auth { 4 } else { 8 };
    if !auth && !stands(bytes, at, "password") || !is_space(byte(bytes, end)) || !is_space(before(bytes, at)) {
        return None;
    }
    if is_blank(byte(bytes, end)) && commands.known(bytes, at).says {
        return word(bytes, run(bytes, end, is_blank), open);
    }
    if auth {
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
fn user(takes: Takes, bytes: &[u8], at: usize, open: bool) -> Found {
    let (start, end) = argument(bytes, at, open)?;
    let colon = run(part(bytes, 0, end), start, |byte| byte != takes.divider);
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
pub(super) fn word(bytes: &[u8], at: usize, open: bool) -> Found {
    let (start, end) = argument(bytes, at, open)?;
    let value = part(bytes, start, end);
    let skip = value.starts_with(b"-") || is_reference(value) || is_mask(value);
    (!skip).then_some((start, end))
}

/// The next argument, without its quotes.
pub(super) fn argument(bytes: &[u8], at: usize, open: bool) -> Found {
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
