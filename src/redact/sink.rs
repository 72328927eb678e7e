//! Takes redacted text and stops at the most characters there may be, never within a mark. May not be given what was not
//! looked through.

use super::content::REDACTED;
use super::scan::{Hit, Rules};
use super::steps::look;

/// What stands for the name of an account.
const USER: &str = "<user>";

/// How text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Plain,
    /// As the inside of a string of JSON.
    Json,
}

/// Where redacted text goes.
pub(super) struct Sink {
    text: String,
    room: usize,
    full: bool,
    rules: Rules,
}

impl Sink {
    /// One with room for so many characters, of which `bytes` are expected: a buffer that grows costs a hook more than what
    /// is written to it.
    pub(super) fn new(room: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes.min(room)), room, full: false, rules: Rules::NONE }
    }

    /// Whether something had no room.
    pub(super) const fn is_full(&self) -> bool {
        self.full
    }

    /// Takes nothing more.
    pub(super) const fn close(&mut self) {
        self.full = true;
    }

    pub(super) const fn rules(&self) -> Rules {
        self.rules
    }

    /// How many characters more it takes.
    pub(super) const fn room(&self) -> usize {
        self.room
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Writes as much as there is room for.
    pub(super) fn push(&mut self, text: &str) {
        if self.full {
            return;
        }
        look(text.len());
        let count =
            if text.len() <= self.room { text.chars().count() } else { text.chars().take(self.room + 1).count() };
        if count <= self.room {
            self.text.push_str(text);
            self.room -= count;
            return;
        }
        let end = text.char_indices().nth(self.room).map_or(text.len(), |(at, _)| at);
        let (kept, rest) = text.split_at_checked(end).unwrap_or_default();
        self.text.push_str(kept);
        self.full = true;
        self.leave_no_half_mark(rest);
    }

    /// Takes the begin of a mark away whose end is in `rest`.
    fn leave_no_half_mark(&mut self, rest: &str) {
        for mark in [REDACTED, USER] {
            for half in 1..mark.len() {
                let (begin, end) = mark.split_at_checked(half).unwrap_or_default();
                if self.text.ends_with(begin) && rest.starts_with(end) {
                    self.text.truncate(self.text.len() - half);
                    return;
                }
            }
        }
    }

    /// Writes text in a form.
    pub(super) fn write(&mut self, text: &str, form: Form) {
        if form == Form::Plain {
            return self.push(text);
        }
        let mut rest = text;
        while let Some(special) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            if self.full {
                return;
            }
            let (plain, after) = rest.split_at_checked(special).unwrap_or_default();
            self.push(plain);
            match after.as_bytes().first() {
                Some(b'"') => self.push("\\\""),
                Some(b'\\') => self.push("\\\\"),
                Some(b'\n') => self.push("\\n"),
                Some(b'\t') => self.push("\\t"),
                // Decoding has left no other; should it, nothing is better than that.
                _ => {}
            }
            rest = after.get(1..).unwrap_or_default();
        }
        self.push(rest);
    }

    /// Writes a mark, all of it or nothing.
    pub(super) fn mark(&mut self, rules: Rules) {
        self.put(REDACTED, rules);
    }

    fn put(&mut self, mark: &str, rules: Rules) {
        if self.full || mark.len() > self.room {
            self.full = true;
            return;
        }
        self.push(mark);
        self.rules = self.rules.with(rules);
    }

    /// Notes rules whose marks are in a text that is written.
    pub(super) const fn note(&mut self, rules: Rules) {
        self.rules = self.rules.with(rules);
    }

    /// Writes `text` without what must go.
    pub(super) fn redacted(&mut self, text: &str, hits: &[Hit]) {
        let mut at = 0;
        for hit in hits {
            self.push(text.get(at..hit.start).unwrap_or_default());
            self.put(if hit.is_account() { USER } else { REDACTED }, hit.rules);
            at = hit.end;
        }
        self.push(text.get(at..).unwrap_or_default());
    }
}
