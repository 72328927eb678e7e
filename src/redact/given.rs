//! Finds what is given without a separator: `ENV KEY value`, `PASSWORD 'x'` of SQL, `setPassword("x")`, a user and a password in a
//! call, what a variable is where it is not set. May not read more than the words that stand there; decided in
//! `docs/adr/0040-redaction-engine.md`.

use super::bytes::{byte, is_blank, is_quote, is_space, is_word, part, run, run_back, stands};
use super::commands::{Command, Next};
use super::flags::{Found, argument};
use super::harmless::{Place, harmless};
use super::names::{self, Kind};

/// How much of a command's last word may be its own.
const REST: usize = 24;
/// Calls that take a user and a password.
const LOGINS: &[&str] = &["basicauth", "basic_auth", "db.auth", "auth=", ".login"];

/// What follows the command at `at`.
pub(super) fn after(command: &Command, bytes: &[u8], at: usize, open: bool) -> Found {
    let begin = command.begin();
    let end = at + begin.len();
    // The rest of its last word.
    let rest = part(bytes, 0, end + REST);
    let end = if begin.ends_with(b" ") { end } else { run(rest, end, |byte| !is_space(byte)) };
    match command.takes.next {
        Next::Any | Next::Said => None,
        Next::Sql => sql(bytes, at, open),
        Next::Word(count) => nth(bytes, end, count, open),
        Next::Token(count) => {
            let (start, end) = nth(bytes, end, count, open)?;
            is_token(part(bytes, start, end)).then_some((start, end))
        }
        Next::Given => {
            // `setx `, `set -gx `
            let known = matches!(part(bytes, at + begin.len(), end), b"" | b"x" | b"X" | b"env");
            // `set the password of …` is prose.
            let name = past_flags(bytes, end);
            let prose = is_blank(byte(bytes, run(bytes, name, |byte| byte.is_ascii_lowercase())));
            if known && !prose { given(bytes, name, open) } else { None }
        }
    }
}

fn is_token(value: &[u8]) -> bool {
    value.len() >= 8 && value.iter().any(u8::is_ascii_digit)
}

/// What is due behind a word of a list of arguments, and whether the word is what was due before it.
pub(super) fn element(due: Next, word: &[u8]) -> (Next, bool) {
    match due {
        Next::Word(_) | Next::Token(_) if word.starts_with(b"-") => (due, false),
        Next::Word(2..) | Next::Token(2..) => (due.one_less(), false),
        Next::Word(_) => (Next::Any, !harmless(word, Kind::Password, Place::Shell)),
        Next::Token(_) => (Next::Any, is_token(word)),
        _ => (Next::Any, false),
    }
}

/// What the name at `at` is given.
pub(super) fn given(bytes: &[u8], at: usize, open: bool) -> Found {
    let name = run(bytes, at, |byte| is_quote(byte) || byte == b'\\').min(at + 4);
    let end = run(part(bytes, 0, name + 2 * names::MOST), name, |byte| {
        is_word(byte) || matches!(byte, b'-' | b'.' | b'/' | b':' | b'@')
    });
    let words = part(bytes, name, end);
    let quotes = run(bytes, end, |byte| is_quote(byte) || byte == b'\\').min(end + name - at);
    let start = run(bytes, quotes, is_blank);
    if start == quotes || byte(bytes, start) == b'=' {
        return None;
    }
    plain(bytes, start, names::kind(words)?, open)
}

/// The word so many words on, without flags.
fn nth(bytes: &[u8], at: usize, count: u8, open: bool) -> Found {
    let mut start = past_flags(bytes, at);
    for _ in 1..count {
        let (_, end) = argument(bytes, start, open)?;
        let quotes = run(bytes, end, |byte| is_quote(byte) || byte == b'\\').min(end + 4);
        start = past_flags(bytes, quotes);
    }
    plain(bytes, start, Kind::Password, open)
}

fn plain(bytes: &[u8], at: usize, kind: Kind, open: bool) -> Found {
    let (start, end) = argument(bytes, at, open)?;
    let value = part(bytes, start, end);
    (!value.starts_with(b"-") && !harmless(value, kind, Place::Shell)).then_some((start, end))
}

fn past_flags(bytes: &[u8], at: usize) -> usize {
    let mut start = run(bytes, at, is_blank);
    for _ in 0..3 {
        if byte(bytes, start) != b'-' {
            break;
        }
        start = run(bytes, run(bytes, start, |byte| is_word(byte) || byte == b'-'), is_blank);
    }
    start
}

/// `IDENTIFIED BY 'x'`, `WITH PASSWORD 'x'`, `ALTER ROLE app PASSWORD 'x'`.
fn sql(bytes: &[u8], at: usize, open: bool) -> Found {
    let end = run(bytes, at, is_word);
    let quote = run(bytes, run(bytes, end, is_blank), |byte| byte == b'\\');
    if byte(bytes, quote) != b'\'' {
        return None;
    }
    let word = |end: usize| {
        let end = run_back(bytes, end, 8, is_blank);
        run_back(bytes, end, 32, is_word)
    };
    let last = word(at);
    let says = if end - at == 2 {
        stands(bytes, last, "identified ") || part(bytes, last, at).ends_with(b"_password ")
    } else {
        ["with ", "encrypted "].iter().any(|with| stands(bytes, last, with))
            || ["role ", "user "].iter().any(|role| stands(bytes, word(last), role))
    };
    let start = run(bytes, end, is_blank);
    if says { plain(bytes, start, Kind::Password, open) } else { None }
}

/// What the call whose bracket is at `at` is given: `setPassword("x")`, `basic_auth("user", "x")`.
pub(super) fn called(bytes: &[u8], at: usize, open: bool) -> Found {
    let first = run(bytes, at + 1, |byte| is_blank(byte) || byte == b'\\');
    if !is_quote(byte(bytes, first)) {
        return None;
    }
    let start = run_back(bytes, at, 32, |byte| is_word(byte) || matches!(byte, b'.' | b'='));
    let call = part(bytes, start, at);
    let ends = |word: &str| call.len().checked_sub(word.len()).is_some_and(|from| stands(call, from, word));
    if LOGINS.iter().any(|login| ends(login)) {
        let (_, end) = argument(bytes, run(bytes, at + 1, is_blank), open)?;
        let comma = run(bytes, run(bytes, end, |byte| is_quote(byte) || byte == b'\\'), is_space);
        let next = run(bytes, comma + 1, is_space);
        let next = if part(bytes, next, next + 5) == b"Some(" { next + 5 } else { next };
        let quoted = is_quote(byte(bytes, run(bytes, next, |byte| byte == b'\\')));
        return if byte(bytes, comma) == b',' && quoted { literal(bytes, next, open) } else { None };
    }
    let sets = ends("setpassword") || ends("set_password") || ends(".password");
    if sets { literal(bytes, run(bytes, at + 1, is_blank), open) } else { None }
}

/// What a variable is where it is not set: `process.env.DB_PASSWORD || "x"`.
pub(super) fn fallback(bytes: &[u8], at: usize, open: bool) -> Found {
    if !matches!(part(bytes, at, at + 2), b"||" | b"??") {
        return None;
    }
    let end = run_back(bytes, at, 8, |byte| is_blank(byte) || is_quote(byte) || matches!(byte, b']' | b')' | b'\\'));
    let start = run_back(bytes, end, names::MOST, is_word);
    let name = part(bytes, start, end);
    if name.iter().any(u8::is_ascii_lowercase) {
        return None;
    }
    names::kind(name)?;
    let next = run(bytes, at + 2, |byte| is_blank(byte) || byte == b'=');
    let quoted = is_quote(byte(bytes, run(bytes, next, |byte| byte == b'\\')));
    if quoted { literal(bytes, next, open) } else { None }
}

fn literal(bytes: &[u8], at: usize, open: bool) -> Found {
    let (start, end) = argument(bytes, at, open)?;
    (!harmless(part(bytes, start, end), Kind::Password, Place::Quoted)).then_some((start, end))
}
