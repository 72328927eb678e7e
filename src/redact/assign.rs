//! Finds what a secret-like name is given: `KEY=value`, `key: value`, `"key": "value"`, `<key>value</key>`, in shells,
//! `.env` files, YAML, TOML, JSON and code. May not look further ahead than the value goes.

use super::bytes::{before, byte, is_blank, is_quote, is_space, is_word, part, run, run_back};
use super::context;
use super::harmless::{Place, harmless, is_reference};
use super::names::{self, Kind};
use super::steps::look;

/// A value to take out.
pub(super) struct Secret {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

/// A name and what stands around it.
struct Name {
    start: usize,
    end: usize,
    kind: Kind,
    /// The quote that begins the string it stands in, if it begins that.
    outer: Option<u8>,
    /// Whether it has a small letter: a variable of a shell has none.
    small: bool,
    /// Whether it begins a line or a string.
    first: bool,
}

/// What the name before the comma at `at` is given: `setenv("KEY", "value")`.
pub(super) fn argument(bytes: &[u8], at: usize, open: bool) -> Option<Secret> {
    if !is_quote(before(bytes, at)) {
        return None;
    }
    let name = Name::before(bytes, at)?;
    let start = run(bytes, at + 1, is_blank);
    if !is_quote(byte(bytes, start)) || before(bytes, name.start.checked_sub(1)?) != b'(' {
        return None;
    }
    let secret = value_at(bytes, &name, start, Place::Code, open)?;
    // What a variable of the environment is given is no word of code.
    let place = if name.small { Place::Code } else { Place::Quoted };
    (!harmless(part(bytes, secret.start, secret.end), name.kind, place)).then_some(secret)
}

/// What the name before the separator at `at` is given.
pub(super) fn assigned(bytes: &[u8], at: usize, open: bool) -> Option<Secret> {
    if matches!(before(bytes, at), b'=' | b':' | b'!' | b'<' | b'>') {
        return None;
    }
    let name = Name::before(bytes, at)?;
    if byte(bytes, at) == b'>' {
        return element(bytes, &name, at + 1);
    }
    let after = run(bytes, at, |byte| matches!(byte, b'=' | b':' | b'>' | b'~')).min(at + 3);
    let separator = part(bytes, at, after);
    if separator.starts_with(b"::") || part(bytes, after, after + 2) == b"//" {
        return None;
    }
    let start = run(bytes, after, is_blank);
    // `grep "password:" x`: nothing is given. `${NAME:?…}` is a message.
    if name.ends_string(bytes, after)
        || separator == b":" && byte(bytes, after) == b'?' && before(bytes, name.start) == b'{'
    {
        return None;
    }
    let tight = start == after && name.end == at;
    // `PASSWORD :'name'`, a variable of psql.
    let quoted = name.end < at && is_quote(byte(bytes, name.end)) || byte(bytes, name.end) == b'\\';
    if separator == b":" && start == after && name.end < at && !quoted {
        return None;
    }
    if byte(bytes, at) == b':' {
        if let Some(secret) = block(bytes, &name, start) {
            return Some(secret);
        }
        if let Some(value) = typed(bytes, start) {
            return value_at(bytes, &name, value, Place::Code, open);
        }
    }
    let compared = separator.starts_with(b"==");
    let place = name.place(bytes, byte(bytes, at), tight);
    let secret = value_at(bytes, &name, start, place, open)?;
    (!compared || is_quote(before(bytes, secret.start))).then_some(secret)
}

impl Name {
    fn before(bytes: &[u8], at: usize) -> Option<Self> {
        let mut end = run_back(bytes, at, 48, is_blank);
        if before(bytes, end) == b']' {
            end -= 1;
        }
        if is_quote(before(bytes, end)) {
            end = run_back(bytes, end - 1, 64, |byte| byte == b'\\');
        }
        let start = run_back(bytes, end, names::MOST, |byte| is_word(byte) || matches!(byte, b'-' | b'.'));
        let own = names::kind(part(bytes, start, end));
        let kind = own.or_else(|| paired(bytes, start, end))?;
        let quoted = is_quote(before(bytes, start)) && is_quote(byte(bytes, end)) || byte(bytes, end) == b'\\';
        let head = run_back(bytes, start - usize::from(quoted && is_quote(before(bytes, start))), 64, is_blank);
        // What a command printed may stand in a string that began before it.
        let outer = if context::is_numbered(bytes, head) { b'"' } else { before(bytes, head) };
        let outer = Some(outer).filter(|&byte| is_quote(byte));
        let first = outer.is_some()
            || own.is_none()
            || matches!(before(bytes, head), 0 | b'\n' | b'-' | b'|')
            || context::begins_line(bytes, head);
        let small = part(bytes, start, end).iter().any(u8::is_ascii_lowercase);
        Some(Self { start, end, kind, outer, small, first })
    }

    /// Whether a plain word after it is a value.
    fn place(&self, bytes: &[u8], separator: u8, tight: bool) -> Place {
        let letters = part(bytes, self.start, self.end);
        let caps = !self.small;
        match separator {
            b':' if tight => {
                if caps {
                    Place::Shell
                } else {
                    Place::Code
                }
            }
            b':' if self.first => Place::Line,
            b'=' if tight
                && (caps
                    || self.first
                    || letters.starts_with(b"-")
                    || context::follows(bytes, self.start, self.kind)) =>
            {
                Place::Shell
            }
            _ => Place::Code,
        }
    }

    /// Whether the string that begins with it ends after the separator.
    fn ends_string(&self, bytes: &[u8], after: usize) -> bool {
        let bare =
            is_quote(before(bytes, self.start)) && !is_quote(byte(bytes, self.end)) && byte(bytes, self.end) != b'\\';
        let Some(open) = self.start.checked_sub(1).filter(|_| bare) else { return false };
        let level = open - run_back(bytes, open, 64, |byte| byte == b'\\');
        let quote = run(bytes, after, |byte| byte == b'\\');
        self.outer == Some(byte(bytes, quote)) && quote - after == level
    }

    fn secret(&self, start: usize, end: usize) -> Option<Secret> {
        (start < end).then_some(Secret { start, end, kind: self.kind })
    }
}

/// What `value` is the value of: `name: X` in the line before, or `name="X"` before it.
fn paired(bytes: &[u8], start: usize, end: usize) -> Option<Kind> {
    if part(bytes, start, end) == b"default" {
        return context::variable(bytes, start);
    }
    if part(bytes, start, end) == b"string" {
        return context::property(bytes, start);
    }
    if !part(bytes, start, end).eq_ignore_ascii_case(b"value") {
        return None;
    }
    let head = run_back(bytes, start, 64, |byte| is_space(byte) || byte == b',');
    let quoted = is_quote(before(bytes, head));
    let name_end = head - usize::from(quoted);
    let name = run_back(bytes, name_end, names::MOST, |byte| is_word(byte) || matches!(byte, b'-' | b'.'));
    let kind = names::kind(part(bytes, name, name_end)).filter(|_| head < start)?;
    let separator = run_back(bytes, name, 4, |byte| is_blank(byte) || is_quote(byte) || matches!(byte, b':' | b'='));
    let key = run_back(bytes, separator, 8, is_word);
    let names_it =
        [b"name".as_slice(), b"key"].iter().any(|word| part(bytes, key, separator).eq_ignore_ascii_case(word));
    (separator < name && names_it).then_some(kind)
}

/// `<password>…</password>`.
fn element(bytes: &[u8], name: &Name, start: usize) -> Option<Secret> {
    if !(before(bytes, name.start) == b'<' && name.end + 1 == start
        || context::is_attribute(bytes, name.start, name.end))
    {
        return None;
    }
    let end = run(bytes, start, |byte| !matches!(byte, b'<' | b'\n'));
    if part(bytes, end, end + 2) != b"</" || harmless(part(bytes, start, end), name.kind, Place::Quoted) {
        return None;
    }
    name.secret(start, end)
}

/// `key: |` and the indented lines after it.
fn block(bytes: &[u8], name: &Name, at: usize) -> Option<Secret> {
    if !matches!(byte(bytes, at), b'|' | b'>') {
        return None;
    }
    let mut end = run(bytes, at + 1, |byte| matches!(byte, b'+' | b'-' | b'0'..=b'9' | b' ' | b'\r'));
    if byte(bytes, end) != b'\n' {
        return None;
    }
    let start = run(bytes, end, is_space);
    let indent = start - run_back(bytes, start, 64, is_blank);
    while indent > 0 && end < bytes.len() {
        let text = run(bytes, end + 1, is_blank);
        if text - (end + 1) < indent && !matches!(byte(bytes, text), b'\n' | b'\r') {
            break;
        }
        end = run(bytes, text, |byte| byte != b'\n');
    }
    if harmless(part(bytes, start, end), name.kind, Place::Shell) { None } else { name.secret(start, end) }
}

/// `: str = "…"`: where the value of a name with a type begins.
fn typed(bytes: &[u8], at: usize) -> Option<usize> {
    let end = run(part(bytes, 0, at + 48), at, |byte| {
        is_word(byte) || matches!(byte, b'&' | b'\'' | b'<' | b'>' | b'[' | b']' | b'?' | b'.' | b'|' | b' ' | b'*')
    });
    let equals = part(bytes, end, end + 2) == b"= " && before(bytes, end) == b' ';
    equals.then(|| run(bytes, end + 1, is_blank))
}

/// The value that begins at `at`.
fn value_at(bytes: &[u8], name: &Name, at: usize, place: Place, open: bool) -> Option<Secret> {
    let header = matches!(name.kind, Kind::Authorization | Kind::Cookie);
    let start = string_start(bytes, at);
    let level = run(bytes, start, |byte| byte == b'\\') - start;
    let quote = byte(bytes, start + level);
    if is_quote(quote) {
        if place == Place::Shell && quote == b'`' {
            return None;
        }
        let (inner, end) = string(bytes, start + level, level, open);
        // `grep 'password:' x`: the string does not begin there, it ends.
        if is_blank(byte(bytes, inner)) && byte(bytes, end + level) != quote && !open {
            return None;
        }
        // A shell takes strings that touch for one.
        let end = if place == Place::Shell && is_quote(byte(bytes, end + 1)) {
            shell_end(bytes, end + 1, |_| true)
        } else {
            end
        };
        let (inner, place) = (
            if header { credentials(bytes, inner, end) } else { inner },
            if place == Place::Shell { place } else { Place::Quoted },
        );
        let end = context::joined(bytes, end, level);
        let bare = part(bytes, inner, end);
        return if harmless(bare, name.kind, place) { None } else { name.secret(inner, end) };
    }
    if looked_up(bytes, at) || (name.kind == Kind::Cookie && !is_pair(bytes, at)) {
        return None;
    }
    let end = if header && place != Place::Shell { line(bytes, at) } else { unquoted(bytes, name, at, place) };
    // The backslashes of an escaped quote.
    let end = if is_quote(byte(bytes, end)) { run_back(bytes, end, end - at, |byte| byte == b'\\') } else { end };
    let start = if header { credentials(bytes, at, end) } else { at };
    let value = part(bytes, start, end);
    // Where an escaped line ends, which the text without its escapes shows better.
    let value = if place == Place::Shell { value } else { context::first_line(value) };
    if place == Place::Shell && (ends_string(value) || name.small && value == part(bytes, name.start, name.end))
        || harmless(value, name.kind, if header && start == at { Place::Code } else { place })
    {
        return None;
    }
    name.secret(start, end)
}

/// Whether a value that is looked up begins there; the rest need not be read.
fn looked_up(bytes: &[u8], at: usize) -> bool {
    let mark = super::content::REDACTED.as_bytes();
    match byte(bytes, at) {
        b'$' => byte(bytes, at + 1) == b'(',
        b'{' => true,
        b'[' => part(bytes, at, at + mark.len()) != mark,
        _ => false,
    }
}

/// Whether the first word there has an equals sign.
fn is_pair(bytes: &[u8], at: usize) -> bool {
    let end = run(bytes, at, |byte| !byte.is_ascii_whitespace() && byte != b'=' && !is_quote(byte));
    end > at && byte(bytes, end) == b'='
}

/// `$NAME\"…`: a variable at the end of a string in a string.
fn ends_string(value: &[u8]) -> bool {
    let end = run(value, 0, |byte| byte != b'\\');
    let quote = run(value, end, |byte| byte == b'\\');
    end > 0 && is_quote(byte(value, quote)) && is_reference(part(value, 0, end))
}

/// Past `b`, `&` or `Some(` before a string.
fn string_start(bytes: &[u8], at: usize) -> usize {
    let marks = run(bytes, at, |byte| matches!(byte, b'&' | b'@')).min(at + 1);
    let head = run(part(bytes, 0, marks + 40), marks, |byte| is_word(byte) || matches!(byte, b'.' | b':'));
    let escaped = run(bytes, head, |byte| byte == b'\\');
    let prefix = part(bytes, marks, head).iter().all(|letter| b"bBcCfFrRuUL".contains(letter));
    if is_quote(byte(bytes, escaped)) && head - marks <= 2 && prefix {
        return head;
    }
    let call = part(bytes, marks, head);
    let wraps =
        [b"Some".as_slice(), b"from", b"new", b"into", b"bytes", b"str", b"b64decode", b"atob", b"btoa", b"SecretStr"];
    let wrapped =
        byte(bytes, head) == b'(' && is_quote(byte(bytes, head + 1)) && wraps.iter().any(|wrap| call.ends_with(wrap));
    if wrapped { head + 1 } else { at }
}

/// The inside of the string whose quote is at `at`. Three quotes are one only if three more end it.
fn string(bytes: &[u8], at: usize, level: usize, open: bool) -> (usize, usize) {
    let quote = byte(bytes, at);
    let three = [quote; 3];
    if part(bytes, at, at + 3) == three {
        let rest = part(bytes, at + 3, bytes.len());
        let length = rest.windows(3).position(|marks| marks == three);
        look(length.unwrap_or(rest.len()));
        return match length {
            Some(length) => (at + 3, at + 3 + length),
            None if open => (at + 3, bytes.len()),
            None => (at + 1, at + 1),
        };
    }
    (at + 1, closing(bytes, at + 1, quote, level, open))
}

/// Where the string ends that began with `level` backslashes and a quote: at one with as many, or as many as make an even number
/// of its own. Without one, at the end of the line, or of all if that was cut.
pub(super) fn closing(bytes: &[u8], from: usize, quote: u8, level: usize, open: bool) -> usize {
    let mut marks = 0;
    for (at, &byte) in bytes.iter().enumerate().skip(from) {
        if byte == b'\\' {
            marks += 1;
            continue;
        }
        if byte == quote && (marks <= level || (marks - level).is_multiple_of(2 * (level + 1))) {
            look(at - from);
            return at - marks.min(level);
        }
        marks = 0;
    }
    look(bytes.len().saturating_sub(from));
    if open { bytes.len() } else { line(bytes, from).max(from) }
}

/// Where the line or the string it stands in ends.
fn line(bytes: &[u8], at: usize) -> usize {
    run(bytes, at, |byte| byte != b'\n' && byte != b'\r' && !is_quote(byte))
}

/// Past the scheme of an authorization.
fn credentials(bytes: &[u8], at: usize, end: usize) -> usize {
    let word = run(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let after = run(bytes, word, is_blank);
    if word > at && after > word && after < end { after } else { at }
}

/// Where a value without quotes ends.
fn unquoted(bytes: &[u8], name: &Name, at: usize, place: Place) -> usize {
    // Inside of a string it ends with that.
    let inside = |byte: u8| name.outer != Some(byte);
    match place {
        Place::Shell if matches!(before(bytes, name.start), b'?' | b'&' | b';') => {
            run(bytes, at, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'&' | b';' | b'#') && !is_quote(byte))
        }
        Place::Shell => shell_end(bytes, at, inside),
        Place::Line => {
            let end = run(bytes, at, |byte| byte != b'\n' && byte != b'\r' && inside(byte));
            let comment = part(bytes, at, end).windows(2).position(|two| two == b" #");
            comment.map_or(end, |length| at + length)
        }
        Place::Quoted | Place::Code => run(bytes, at, |byte| {
            !byte.is_ascii_whitespace()
                && !matches!(byte, b',' | b';' | b'&' | b'|' | b')' | b'}' | b'>' | b'<')
                && !is_quote(byte)
        }),
    }
}

/// Where a word of a shell ends: at a blank, or at the end of the string it stands in, which is a quote that begins nothing.
fn shell_end(bytes: &[u8], at: usize, inside: impl Fn(u8) -> bool) -> usize {
    let mut end = at;
    let mut begun = 0;
    loop {
        end = run(bytes, end, |byte| !byte.is_ascii_whitespace() && !is_quote(byte));
        let quote = byte(bytes, end);
        if !is_quote(quote) || !inside(quote) {
            return end;
        }
        let last = matches!(byte(bytes, end + 1), 0 | b' ' | b'\n' | b'\r' | b',' | b'}' | b']' | b')' | b';' | b':');
        if last && begun != quote {
            return end;
        }
        begun = if begun == quote { 0 } else { quote };
        end += 1;
    }
}
