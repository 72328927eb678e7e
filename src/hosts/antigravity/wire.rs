//! Reads a hook payload byte by byte: keeps the allow-listed fields, skips everything else without storing it.
//! Memory is bounded whatever comes: a skipped value costs a depth counter, a kept one at most [`KEPT_BYTES`], one that
//! is content, and wanted, at most [`CONTENT_BYTES`].
//! It is lenient where it does not look and never recurses. No I/O; decided in `docs/adr/0020-own-payload-scanner.md`.

use super::fields::{Fields, Kept, Part, Target, part, target};
use super::text::unescape;
use crate::event::Wanted;
use crate::hosts::Progress;
use crate::redact::Raw;

/// Most bytes kept of one string, before escapes are decoded; the rest of it is skipped.
pub const KEPT_BYTES: usize = 4096;
/// Most bytes kept of one value that is content; the rest of it is dropped unseen.
pub const CONTENT_BYTES: usize = 64 * 1024;
/// Most entries kept of a list of strings.
pub const KEPT_ENTRIES: usize = 64;
/// Bytes there is room for from the beginning. No usual value is longer, and not much less may it be: musl gives out half
/// pages for this, and as long as one is in use it does not give that page back to the system, only to ask for it again
/// with the next setting or field, eight system calls in all.
const USUAL_BYTES: usize = 1500;
/// Longer keys cannot be on the list.
const KEY_BYTES: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the opening brace.
    Start,
    /// Between members of an object.
    Member,
    /// In a key.
    Key { escaped: bool },
    /// Between key and value.
    Colon,
    /// Before a value.
    Value,
    /// Between the entries of a kept list.
    Entry,
    /// In a string value.
    Text { escaped: bool },
    /// In a number or a word.
    Bare,
    /// In a skipped object or list.
    Nested { depth: u64 },
    /// In a string of a skipped object or list.
    NestedText { depth: u64, escaped: bool },
    /// After the closing brace.
    Done,
    /// Broken.
    Bad,
}

/// The scanner. Feed it until it says [`Progress::Complete`].
#[derive(Debug)]
pub struct Scanner<F> {
    fields: F,
    place: Place,
    in_tool_call: bool,
    in_list: bool,
    entries: usize,
    field: Option<Target>,
    key: Vec<u8>,
    kept: Vec<u8>,
    /// In a box, since most hooks keep none.
    content: Option<Box<ContentKeeper>>,
}

/// Keeps the bytes of values that are content.
#[derive(Debug)]
struct ContentKeeper {
    wanted: Wanted,
    /// The content that the value after the key is, if it is wanted.
    part: Option<Part>,
    raw: Vec<u8>,
    /// Whether `raw` is the value as far as it came.
    whole: bool,
}

impl ContentKeeper {
    fn new(wanted: Wanted) -> Option<Box<Self>> {
        (wanted != Wanted::default()).then(|| Box::new(Self { wanted, part: None, raw: Vec::new(), whole: true }))
    }

    /// Keeps the bytes that were just taken, if they are of a value that is content; gives the value at its end.
    fn keep(&mut self, from: Place, to: Place, before: &[u8], after: &[u8]) -> Option<(Part, Raw)> {
        let part = self.part?;
        match (from, to) {
            // Not in the value yet.
            (Place::Key { .. } | Place::Colon, _) | (Place::Value, Place::Value) => return None,
            _ => {}
        }
        let (taken, _) = before.split_at(before.len() - after.len());
        let room = CONTENT_BYTES.saturating_sub(self.raw.len());
        let (fits, cut) = taken.split_at(room.min(taken.len()));
        if self.raw.is_empty() {
            // The value comes in small steps, and each time a buffer grows it is mapped anew.
            self.raw.reserve(before.len().min(CONTENT_BYTES));
        }
        self.raw.extend_from_slice(fits);
        self.whole &= cut.is_empty();
        if !matches!(to, Place::Member | Place::Bad) {
            return None;
        }
        self.part = None;
        let raw = std::mem::take(&mut self.raw);
        let whole = std::mem::replace(&mut self.whole, true);
        (!is_nothing(&raw)).then(|| (part, Raw::new(raw, whole)))
    }
}

impl<F: Fields> Scanner<F> {
    /// Starts before the first byte.
    ///
    /// Its buffers are made here and used for all keys and values.
    pub fn new(fields: F) -> Self {
        Self {
            fields,
            place: Place::Start,
            in_tool_call: false,
            in_list: false,
            entries: 0,
            field: None,
            key: Vec::with_capacity(KEY_BYTES + 1),
            kept: Vec::with_capacity(USUAL_BYTES),
            content: None,
        }
    }

    /// Keeps content, too, of the values to come.
    pub fn want(&mut self, wanted: Wanted) {
        self.content = ContentKeeper::new(wanted);
    }

    /// What was kept, and whether the payload was complete.
    pub fn finish(self) -> (F, Progress) {
        let progress = self.progress();
        (self.fields, progress)
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Progress {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            let (place, left) = match self.place {
                Place::Start => (self.start(byte), after),
                Place::Member => (self.member(byte), after),
                Place::Key { escaped } => (self.key_byte(byte, escaped), after),
                Place::Colon => (if byte == b':' { Place::Value } else { blank_or_bad(byte, Place::Colon) }, after),
                Place::Value => (self.value(byte), after),
                Place::Entry => (self.entry(byte), after),
                Place::Text { escaped } => self.text(rest, escaped),
                Place::Bare => self.bare(byte, rest, after),
                Place::Nested { depth } => self.nested(byte, after, depth),
                Place::NestedText { depth, escaped } => nested_text(rest, depth, escaped),
                Place::Done | Place::Bad => return self.progress(),
            };
            if let Some(content) = &mut self.content
                && let Some((part, raw)) = content.keep(self.place, place, rest, left)
            {
                self.fields.content(part, raw);
            }
            self.place = place;
            rest = left;
        }
        self.progress()
    }

    const fn progress(&self) -> Progress {
        match self.place {
            Place::Done => Progress::Complete,
            Place::Bad => Progress::Invalid,
            _ => Progress::More,
        }
    }

    /// Whether not even the opening brace has been seen.
    pub fn is_blank(&self) -> bool {
        self.place == Place::Start
    }

    fn start(&self, byte: u8) -> Place {
        match byte {
            b'{' => Place::Member,
            // A byte order mark; agy sends none, a wrapper on Windows might.
            0xef | 0xbb | 0xbf => Place::Start,
            _ => blank_or_bad(byte, self.place),
        }
    }

    fn member(&mut self, byte: u8) -> Place {
        match byte {
            b'"' => {
                self.key.clear();
                Place::Key { escaped: false }
            }
            b',' => Place::Member,
            b'}' if self.in_tool_call => {
                self.in_tool_call = false;
                Place::Member
            }
            b'}' => Place::Done,
            _ => blank_or_bad(byte, Place::Member),
        }
    }

    fn key_byte(&mut self, byte: u8, escaped: bool) -> Place {
        if !escaped && byte == b'"' {
            self.field = target(self.in_tool_call, &self.key);
            if let Some(content) = &mut self.content {
                content.part = part(self.in_tool_call, &self.key, content.wanted);
            }
            return Place::Colon;
        }
        if self.key.len() <= KEY_BYTES {
            self.key.push(byte);
        }
        Place::Key { escaped: !escaped && byte == b'\\' }
    }

    fn value(&mut self, byte: u8) -> Place {
        match (byte, self.field) {
            (b'{', Some(Target::ToolCall)) => {
                self.in_tool_call = true;
                Place::Member
            }
            (b'[', Some(Target::List(field))) => {
                self.in_list = true;
                self.entries = 0;
                self.field = Some(Target::Plain(field));
                Place::Entry
            }
            (b'{' | b'[', _) => {
                self.keep(Kept::Nested);
                Place::Nested { depth: 1 }
            }
            (b'"', _) => {
                self.kept.clear();
                Place::Text { escaped: false }
            }
            (b',' | b'}' | b']' | b':', _) => Place::Bad,
            _ if byte.is_ascii_whitespace() => Place::Value,
            _ => {
                self.kept.clear();
                self.kept.push(byte);
                Place::Bare
            }
        }
    }

    fn entry(&mut self, byte: u8) -> Place {
        match byte {
            b',' => Place::Entry,
            b']' => {
                self.in_list = false;
                Place::Member
            }
            _ if byte.is_ascii_whitespace() => Place::Entry,
            _ => {
                self.entries += 1;
                if self.entries > KEPT_ENTRIES {
                    self.field = None;
                }
                self.value(byte)
            }
        }
    }

    /// In a string: jumps to the next quote or backslash, so that a large skipped value costs a memory scan.
    fn text<'b>(&mut self, rest: &'b [u8], escaped: bool) -> (Place, &'b [u8]) {
        if escaped {
            let (escape, after) = rest.split_at(1);
            self.keep_bytes(escape);
            return (Place::Text { escaped: false }, after);
        }
        let Some(end) = mark(rest) else {
            self.keep_bytes(rest);
            return (Place::Text { escaped: false }, &[]);
        };
        let (plain, found) = rest.split_at(end);
        self.keep_bytes(plain);
        let (mark, after) = found.split_at(1);
        if mark == b"\\" {
            self.keep_bytes(mark);
            return (Place::Text { escaped: true }, after);
        }
        if self.field.is_some() {
            let text = unescape(&self.kept);
            self.keep(Kept::Text(text));
        }
        (self.after_value(), after)
    }

    fn bare<'b>(&mut self, byte: u8, rest: &'b [u8], after: &'b [u8]) -> (Place, &'b [u8]) {
        if !matches!(byte, b',' | b'}' | b']') && !byte.is_ascii_whitespace() {
            self.keep_bytes(&[byte]);
            return (Place::Bare, after);
        }
        let word = std::mem::take(&mut self.kept);
        if let Ok(word) = std::str::from_utf8(&word) {
            self.keep(Kept::Bare(word));
        }
        self.kept = word;
        // The delimiter belongs to what surrounds the value.
        (self.after_value(), rest)
    }

    fn nested<'b>(&self, byte: u8, after: &'b [u8], depth: u64) -> (Place, &'b [u8]) {
        let place = match byte {
            b'"' => Place::NestedText { depth, escaped: false },
            b'{' | b'[' => Place::Nested { depth: depth + 1 },
            b'}' | b']' if depth == 1 => self.after_value(),
            b'}' | b']' => Place::Nested { depth: depth - 1 },
            _ => Place::Nested { depth },
        };
        (place, after)
    }

    const fn after_value(&self) -> Place {
        if self.in_list { Place::Entry } else { Place::Member }
    }

    fn keep_bytes(&mut self, bytes: &[u8]) {
        if self.field.is_some() {
            let room = KEPT_BYTES.saturating_sub(self.kept.len());
            self.kept.extend(bytes.iter().take(room));
        }
    }

    fn keep(&mut self, value: Kept<'_>) {
        if let Some(Target::Plain(field)) = self.field {
            self.fields.set(field, value);
        }
    }
}

fn nested_text(rest: &[u8], depth: u64, escaped: bool) -> (Place, &[u8]) {
    if escaped {
        return (Place::NestedText { depth, escaped: false }, rest.split_at(1).1);
    }
    let Some(end) = mark(rest) else {
        return (Place::NestedText { depth, escaped: false }, &[]);
    };
    let (mark, after) = rest.split_at(end).1.split_at(1);
    let place = if mark == b"\\" { Place::NestedText { depth, escaped: true } } else { Place::Nested { depth } };
    (place, after)
}

/// Where the next quote or backslash is. Whole blocks are looked at first, which compilers turn into vector code; the
/// `memchr` crate would ask the processor what it can do, and under a hypervisor that costs more than a whole payload.
fn mark(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 64;
    let is_mark = |byte: &u8| matches!(byte, b'"' | b'\\');
    let clean =
        bytes.chunks_exact(BLOCK).take_while(|block| !block.iter().fold(false, |hit, byte| hit | is_mark(byte)));
    let from = clean.count() * BLOCK;
    let found = bytes.get(from..)?.iter().position(is_mark)?;
    Some(from + found)
}

/// Whether a value says that there is nothing: it must not hide what another event of the same call says.
fn is_nothing(raw: &[u8]) -> bool {
    matches!(raw, b"{}" | b"[]" | b"\"\"" | b"null")
}

const fn blank_or_bad(byte: u8, place: Place) -> Place {
    if byte.is_ascii_whitespace() { place } else { Place::Bad }
}

#[cfg(test)]
mod tests;
