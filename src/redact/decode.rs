//! Decodes strings of JSON, leniently: what is no text is left out, so that it can neither hide a secret by splitting it
//! nor reach the output. May not fail.

use super::bytes::{byte, part, run};
use super::is_format;
use super::view::{hex, second_half};

/// Where the inside of a string ends that begins at `at`, and whether a quote ends it there.
pub(super) fn string_end(bytes: &[u8], at: usize) -> (usize, bool) {
    let mut at = at;
    loop {
        at = run(bytes, at, |byte| byte != b'"' && byte != b'\\');
        match byte(bytes, at) {
            b'\\' => at += 2,
            b'"' => return (at, true),
            _ => return (bytes.len(), false),
        }
        if at > bytes.len() {
            return (bytes.len(), false);
        }
    }
}

/// The text of the inside of a string.
pub(super) fn string(bytes: &[u8]) -> String {
    let mut text = Visible::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let plain = run(bytes, at, |byte| byte != b'\\');
        text.bytes(part(bytes, at, plain));
        if plain == bytes.len() {
            break;
        }
        at = escape(bytes, plain + 1, &mut text);
    }
    text.end()
}

/// Reads the escape whose backslash stands before `at`, and says where it ends.
fn escape(bytes: &[u8], at: usize, text: &mut Visible) -> usize {
    let Some(&found) = bytes.get(at) else { return at };
    match found {
        b'n' => text.push('\n'),
        b't' => text.push('\t'),
        b'r' => text.push('\r'),
        b'b' | b'f' => {}
        b'"' | b'\\' | b'/' => text.push(char::from(found)),
        b'u' => {
            let Some(first) = hex(bytes, at + 1, 4) else {
                text.push('\\');
                return at;
            };
            let after = at + 5;
            let (character, end) = match first {
                0xd800..=0xdbff => second_half(bytes, after, first),
                _ => (char::from_u32(first), after),
            };
            if let Some(character) = character {
                text.push(character);
            }
            return end;
        }
        _ => {
            text.push('\\');
            return at;
        }
    }
    at + 1
}

/// Text without control and format characters, but for ends of lines and tabs, and without the colours of a terminal.
struct Visible {
    text: String,
    colour: Colour,
    /// Where what may be a colour begins in the text.
    held: usize,
    /// A carriage return, which is an end of a line unless one follows.
    returned: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    None,
    Escape,
    Sequence,
}

impl Visible {
    fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), colour: Colour::None, held: 0, returned: false }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.utf8_chunks() {
            let valid = chunk.valid();
            let harmless = self.colour == Colour::None
                && !self.returned
                && valid.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'));
            if harmless {
                self.text.push_str(valid);
            } else {
                valid.chars().for_each(|c| self.push(c));
            }
        }
    }

    fn push(&mut self, c: char) {
        match (self.colour, c) {
            (_, '\u{1b}') => return self.colour = Colour::Escape,
            (Colour::Escape, '[') => {
                self.held = self.text.len();
                self.colour = Colour::Sequence;
            }
            // Nothing but colours and erasing is left out: another letter may begin a secret.
            (Colour::Sequence, 'm' | 'K') => {
                self.text.truncate(self.held);
                return self.colour = Colour::None;
            }
            (Colour::Sequence, '0'..='9' | ';') => {}
            _ => self.colour = Colour::None,
        }
        if self.returned {
            self.returned = false;
            if c != '\n' {
                self.text.push('\n');
            }
        }
        match c {
            '\r' => self.returned = true,
            '\n' | '\t' => self.text.push(c),
            _ if c.is_control() || is_format(c) => {}
            _ => self.text.push(c),
        }
    }

    fn end(mut self) -> String {
        if self.returned {
            self.text.push('\n');
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_decoded_and_what_is_no_text_is_left_out() {
        for (inside, text) in [
            (&br#"a\"b\\c\/d\n\u00e9"#[..], "a\"b\\c/d\né"),
            (br"\ud83d\ude00 \ud83d x \ude00", "😀  x "),
            (b"gh\xffp_\xc3", "ghp_"),
            (br"\u200b\u0000\u001b[01;31mred\u001b[0m", "red"),
            ("a\u{202e}b\u{1b}[Kc".as_bytes(), "abc"),
            (b"\x1b[ghp_ \x1b[12:AA \x1bx", "[ghp_ [12:AA x"),
            (br"\q\u12 \", r"\q\u12 "),
            (br"a\r\nb\rc", "a\nb\nc"),
        ] {
            assert_eq!(string(inside), text);
        }
    }

    #[test]
    fn the_end_of_a_string() {
        assert_eq!(string_end(br#"a\"b" c"#, 0), (4, true));
        assert_eq!(string_end(br"a\", 0), (2, false));
        assert_eq!(string_end(b"abc", 0), (3, false));
    }
}
