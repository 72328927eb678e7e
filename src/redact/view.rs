//! A text as somebody reads it who undoes its escapes, and where each byte of that comes from. A secret in JSON in JSON,
//! or one that is split by `\n`, `\u0041` or a line continuation, is whole there. May not know a rule.

use super::bytes::{byte, part, run};
use super::is_format;

/// A text without its escapes, however often they were escaped themselves.
pub(super) struct View {
    /// What is left.
    pub(super) bytes: Vec<u8>,
    /// Where the source goes on at another distance: (place here, place in the source), in order.
    jumps: Vec<(usize, usize)>,
}

impl View {
    /// None if there is nothing to undo.
    pub(super) fn folded(text: &[u8]) -> Option<Self> {
        if !text.contains(&b'\\') {
            return None;
        }
        let mut view = Self { bytes: Vec::with_capacity(text.len()), jumps: Vec::new() };
        let mut at = 0;
        while at < text.len() {
            let plain = run(text, at, |byte| byte != b'\\');
            view.bytes.extend_from_slice(part(text, at, plain));
            if plain == text.len() {
                break;
            }
            view.jumps.push((view.bytes.len(), plain));
            at = view.escape(text, plain);
            view.jumps.push((view.bytes.len(), at));
        }
        Some(view)
    }

    /// Reads the escape at `at` and says where it ends.
    fn escape(&mut self, text: &[u8], at: usize) -> usize {
        let end = run(text, at, |byte| byte == b'\\');
        let after = end + 1;
        match byte(text, end) {
            b'\n' => return after,
            b'\r' if byte(text, after) == b'\n' => return after + 1,
            b'n' if is_continuation(end - at) => {}
            b'n' => self.bytes.push(b'\n'),
            b'r' => self.bytes.push(b'\r'),
            b't' => self.bytes.push(b'\t'),
            found @ (b'"' | b'\'' | b'/' | b'`') => self.bytes.push(found),
            b'u' => return self.unicode(text, after).unwrap_or_else(|| self.kept(end)),
            b'x' => match hex(text, after, 2).and_then(char::from_u32) {
                Some(found) => return self.character(found, after + 2),
                None => return self.kept(end),
            },
            _ => return self.kept(end),
        }
        after
    }

    /// A backslash that begins no escape.
    fn kept(&mut self, end: usize) -> usize {
        self.bytes.push(b'\\');
        end
    }

    /// Four hexadecimal digits, or two times four. One half of a pair is nothing.
    fn unicode(&mut self, text: &[u8], at: usize) -> Option<usize> {
        if byte(text, at) == b'{' {
            let end = run(text, at + 1, |byte| byte.is_ascii_hexdigit()).min(at + 7);
            let found = hex(text, at + 1, end - at - 1).and_then(char::from_u32)?;
            return (byte(text, end) == b'}').then(|| self.character(found, end + 1));
        }
        let first = hex(text, at, 4)?;
        let after = at + 4;
        let (Some(found), end) = (match first {
            0xd800..=0xdbff => second_half(text, after, first),
            _ => (char::from_u32(first), after),
        }) else {
            return Some(after);
        };
        Some(self.character(found, end))
    }

    fn character(&mut self, found: char, end: usize) -> usize {
        if !is_format(found) && (!found.is_control() || found == '\n' || found == '\t') {
            self.bytes.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
        }
        end
    }

    /// Where that byte stands in the text.
    pub(super) fn source(&self, at: usize) -> usize {
        let next = self.jumps.partition_point(|(here, _)| *here <= at);
        match next.checked_sub(1).and_then(|last| self.jumps.get(last)) {
            Some((here, source)) => source + (at - here),
            None => at,
        }
    }
}

/// Whether so many backslashes before an `n` are a line continuation in strings in strings: each encoding makes two of one,
/// and one begins the end of the line.
const fn is_continuation(marks: usize) -> bool {
    marks.is_multiple_of(3) && (marks / 3).is_power_of_two()
}

/// The character of a pair whose first half was read, and where it ends.
pub(super) fn second_half(text: &[u8], at: usize, first: u32) -> (Option<char>, usize) {
    let mark = run(text, at, |byte| byte == b'\\');
    if mark == at || byte(text, mark) != b'u' {
        return (None, at);
    }
    match hex(text, mark + 1, 4) {
        Some(second @ 0xdc00..=0xdfff) => {
            (char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)), mark + 5)
        }
        _ => (None, at),
    }
}

/// So many hexadecimal digits, six at most.
pub(super) fn hex(text: &[u8], at: usize, digits: usize) -> Option<u32> {
    let digits =
        Some(part(text, at, at + digits)).filter(|found| found.len() == digits && (1..=6).contains(&digits))?;
    digits.iter().try_fold(0, |sum, &digit| Some(sum * 16 + char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_however_deep() {
        for (text, read) in [
            (r#"a\"b\\\"c"#, r#"a"b"c"#),
            (r"gh\u0070_A\u0041\\u0041", "ghp_AAA"),
            (r"\ud83d\ude00 \ud83d!", "😀 !"),
            ("one \\\n two \\\r\n three", "one  two  three"),
            (r"C:\Users\x C:\\Users", r"C:\Users\x C:\Users"),
            (r"\x41\u{42}\xzz", r"AB\xzz"),
            (r"a\nb\tc\", "a\nb\tc\\"),
            (r"a \\\n b \\\\\\n c \\n d", "a  b  c \n d"),
        ] {
            assert_eq!(String::from_utf8(View::folded(text.as_bytes()).unwrap().bytes).unwrap(), read, "{text}");
        }
        assert!(View::folded(b"nothing here").is_none());
    }

    #[test]
    fn a_place_is_found_again() {
        let text = r#"x\"secret\u0041\\\"y"#;
        let view = View::folded(text.as_bytes()).unwrap();
        let start = view.bytes.windows(6).position(|part| part == b"secret").unwrap();
        assert_eq!(text.get(view.source(start)..view.source(start + 7)), Some(r"secret\u0041"));
        assert_eq!(view.source(view.bytes.len()), text.len());
    }
}
