//! Reads what stands around a name or a value: the word before it, the block it stands in, the string that goes on after a `+`.
//! May not decide what is a secret; decided in `docs/adr/0040-redaction-engine.md`.

use super::bytes::{before, byte, is_blank, is_quote, is_space, is_word, part, run, run_back};
use super::names::{self, Kind};

/// How far back the block of a variable is looked for.
const BLOCK: usize = 160;
/// Strings that may be put together.
const STRINGS: usize = 8;

/// Whether what begins there follows what a shell or an address has before an assignment: `export `, `?`, `;`, and, for a
/// password, a flag or another assignment.
pub(super) fn follows(bytes: &[u8], start: usize, kind: Kind) -> bool {
    let blank = run_back(bytes, start, 8, is_blank);
    if blank == start {
        return matches!(before(bytes, blank), b'?' | b'&' | b';' | b'"' | b'\'')
            || kind == Kind::Password && in_option(bytes, start);
    }
    let word = run_back(bytes, blank, 64, |byte| !is_space(byte));
    let known = matches!(
        part(bytes, word, blank),
        b"export" | b"set" | b"env" | b"ENV" | b"ARG" | b"setenv" | b"local" | b"declare" | b"readonly" | b"sudo"
    );
    known
        || matches!(before(bytes, blank), b';' | b'&' | b'|')
        || kind == Kind::Password && is_option(part(bytes, word, blank))
        || byte(bytes, word) == b'-' && blank - word > 1
}

/// `--from-literal=password=x`, `-o user=jo,password=x`.
fn in_option(bytes: &[u8], start: usize) -> bool {
    let word = run_back(bytes, start, 64, |byte| !is_space(byte) && !is_quote(byte));
    let head = part(bytes, word, start);
    match before(bytes, start) {
        b'=' => head.starts_with(b"--"),
        b',' => head.contains(&b'=') && !head.iter().any(|byte| matches!(byte, b'(' | b'{' | b'[' | b'<')),
        _ => false,
    }
}

/// `user=app`, `secret/app`: no word of a line of code that goes on.
fn is_option(word: &[u8]) -> bool {
    let ends = word.last().is_some_and(|&last| is_word(last) || is_quote(last));
    let plain = !word.iter().any(|byte| matches!(byte, b'(' | b'{' | b'[' | b'<' | b'>' | b'!' | b',' | b'\\'));
    ends && plain && word.iter().skip(1).any(|byte| matches!(byte, b'=' | b'/'))
}

/// Whether only the `+` that a diff puts before a line stands before `head`.
pub(super) fn begins_line(bytes: &[u8], head: usize) -> bool {
    head.checked_sub(1).is_some_and(|mark| byte(bytes, mark) == b'+' && matches!(before(bytes, mark), 0 | b'\n'))
}

/// Whether the number that `grep` puts before a line stands before `head`.
pub(super) fn is_numbered(bytes: &[u8], head: usize) -> bool {
    if before(bytes, head) != b':' {
        return false;
    }
    let number = run_back(bytes, head - 1, 8, |byte| byte.is_ascii_digit());
    number + 1 < head && matches!(before(bytes, number), 0 | b'\n' | b':')
}

/// What the variable of Terraform is called whose `default` is at `start`.
pub(super) fn variable(bytes: &[u8], start: usize) -> Option<Kind> {
    const WORD: &[u8] = b"variable \"";
    let block = run_back(bytes, start, BLOCK, |byte| byte != b'}');
    let place = part(bytes, block, start).windows(WORD.len()).rposition(|word| word == WORD)?;
    let name = block + place + WORD.len();
    names::kind(part(bytes, name, run(part(bytes, 0, name + names::MOST), name, |byte| is_word(byte) || byte == b'-')))
}

/// What the key of a property list promises that stands before the `<string>` whose name is at `start`.
pub(super) fn property(bytes: &[u8], start: usize) -> Option<Kind> {
    const END: &[u8] = b"</key>";
    let key_end = run_back(bytes, start.checked_sub(1)?, 64, is_space).checked_sub(END.len())?;
    let key = run_back(bytes, key_end, names::MOST, |byte| is_word(byte) || matches!(byte, b'-' | b'.'));
    let is_key = part(bytes, key_end, key_end + END.len()) == END && before(bytes, key) == b'>';
    if is_key { names::kind(part(bytes, key, key_end)) } else { None }
}

/// Whether the name is the last attribute of an element: `<property name="password">`.
pub(super) fn is_attribute(bytes: &[u8], start: usize, end: usize) -> bool {
    let equals = run_back(bytes, start, 8, |byte| is_quote(byte) || byte == b'\\');
    let quoted = equals < start && run(bytes, end, |byte| is_quote(byte) || byte == b'\\') > end;
    let word = equals.checked_sub(1).map_or(0, |at| run_back(bytes, at, 8, is_word));
    quoted && matches!(part(bytes, word, equals), b"name=" | b"key=")
}

/// Where the last of the strings ends that are put together, of which the first ends at `end`: `"a" + "b"`.
pub(super) fn joined(bytes: &[u8], end: usize, level: usize) -> usize {
    let mut last = end;
    for _ in 0..STRINGS {
        let after = last + level + 1;
        let plus = run(bytes, after, is_space);
        let joins =
            byte(bytes, plus) == b'+' || byte(bytes, plus) == b'\\' && matches!(byte(bytes, plus + 1), b'\n' | b'\r');
        let open = run(bytes, plus + 1, is_space);
        let quote = open + level;
        if !joins || byte(bytes, quote) != byte(bytes, last + level) || !is_quote(byte(bytes, quote)) {
            break;
        }
        let close = super::assign::closing(bytes, quote + 1, byte(bytes, quote), level, false);
        if byte(bytes, close + level) != byte(bytes, quote) {
            break;
        }
        last = close;
    }
    last
}

/// What stands before an escaped end of a line, or before the end of a string that began before all this.
pub(super) fn first_line(value: &[u8]) -> &[u8] {
    let ends = |two: &[u8]| matches!(two, [b'\\', b'n' | b'r' | b'\\' | b'"'] | [b'"', b' ' | b',' | b'}' | b']']);
    let end = value.windows(2).position(ends);
    end.and_then(|end| value.get(..end)).unwrap_or(value)
}

/// `name=value; …`
pub(super) fn is_cookie(value: &[u8]) -> bool {
    let equals = run(value, 0, |byte| is_word(byte) || byte == b'-');
    equals > 0 && byte(value, equals) == b'=' && byte(value, equals + 1).is_ascii_alphanumeric()
}
