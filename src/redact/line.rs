//! Follows the command line a text may be: which commands are being told something at a place of it. May not read a secret,
//! which is `flags` and `given`; decided in `docs/adr/0040-redaction-engine.md`.

use super::bytes::{before, byte, is_blank, is_quote, is_space, is_word, part, run, run_back};
use super::commands::{self, Command, LONGEST, NOTHING, Next, Takes};
use super::steps::look;

/// What of the commands before a place is still being told.
#[derive(Debug)]
pub(super) struct Commands {
    known: Takes,
    /// Up to where the end of the command was looked for.
    at: usize,
    /// The quote that is open there, and how many backslashes it has.
    quote: Quote,
    /// The quote that stood before the first command, and so ends it.
    outer: Quote,
    said: Option<Said>,
}

/// What an `echo` says.
#[derive(Debug, Clone, Copy)]
struct Said {
    start: usize,
    /// Where its pipe begins.
    pipe: Option<usize>,
    /// The quote that is open in it, whatever a command does that it names.
    quote: Quote,
}

impl Said {
    /// What goes on after the end of a command at `at`: all within quotes, else what goes through a pipe.
    fn past(self, bytes: &[u8], at: usize) -> Option<Self> {
        if self.quote.is_some() {
            return Some(self);
        }
        let pipe = byte(bytes, at) == b'|' && byte(bytes, at + 1) != b'|';
        pipe.then_some(Self { pipe: self.pipe.or(Some(at)), ..self })
    }
}

/// A quote, and the backslashes before it.
type Quote = Option<(u8, usize)>;

impl Default for Commands {
    fn default() -> Self {
        Self { known: NOTHING, at: 0, quote: None, outer: None, said: None }
    }
}

impl Commands {
    /// What is known of the command that is being told something at `at`.
    pub(super) fn known(&mut self, bytes: &[u8], at: usize) -> Takes {
        self.advance(bytes, at);
        self.known
    }

    /// What an `echo` says whose pipe leads to `at`, as far as its begin and its pipe.
    pub(super) fn said(&mut self, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
        self.advance(bytes, at);
        let said = self.said?;
        Some((said.start, said.pipe?))
    }

    /// What the last `echo` of a text says, as far as its begin and its pipe or the end, if what follows may be read by a
    /// command that is not seen: the text was cut.
    pub(super) fn unheard(&mut self, bytes: &[u8]) -> Option<(usize, usize)> {
        self.advance(bytes, bytes.len());
        let said = self.said?;
        Some((said.start, said.pipe.unwrap_or(bytes.len())))
    }

    /// Notes the command that stands there, if one does, and says what follows it.
    pub(super) fn note(&mut self, bytes: &[u8], at: usize) -> Option<&'static Command> {
        if is_word(before(bytes, at)) || before(bytes, at) == b'-' {
            return None;
        }
        let found = commands::at(bytes, at).filter(|_| !is_package(bytes, at))?;
        self.begin(bytes, at);
        self.known = self.known.and(found.takes);
        if found.takes.next == Next::Said {
            let start = run(bytes, at + found.begin().len(), is_blank);
            self.said = Some(Said { start, pipe: None, quote: None });
        }
        Some(found)
    }

    /// Notes words of a list of arguments, which are one command, and says what follows them.
    pub(super) fn element(&mut self, before: &str, word: &str) -> Option<Next> {
        if before.len().max(word.len()) > LONGEST {
            return None;
        }
        let mut next = None;
        for words in [format!("{before} {word} "), format!("{word} ")] {
            let mut one = Self::default();
            if let Some(found) = one.note(words.as_bytes(), 0) {
                self.known = self.known.and(one.known);
                // The last of its words is this one.
                let whole = words.len() <= found.begin().len() + 1;
                next = next.or(Some(found.takes.next).filter(|_| whole));
            }
        }
        next
    }

    /// What is known of a list of arguments.
    pub(super) const fn of_list(&self) -> Takes {
        self.known
    }

    fn begin(&mut self, bytes: &[u8], at: usize) {
        self.advance(bytes, at);
        if self.known == NOTHING {
            self.quote = None;
            self.outer = quote(bytes, at.wrapping_sub(1));
        }
        self.at = at;
    }

    /// Forgets what ends before `to`: at `;`, `&&`, `|` and the end of a line, outside of quotes.
    fn advance(&mut self, bytes: &[u8], to: usize) {
        if self.known == NOTHING && self.said.is_none() {
            self.at = to;
            return;
        }
        look(to.saturating_sub(self.at));
        for at in self.at..to {
            let found = byte(bytes, at);
            if is_quote(found) {
                self.mark(bytes, at);
            } else if ends(bytes, at, found) {
                if self.quote.is_none() {
                    self.end();
                }
                self.said = self.said.and_then(|said| said.past(bytes, at));
            }
        }
        self.at = self.at.max(to);
    }

    /// Opens or closes a string.
    fn mark(&mut self, bytes: &[u8], at: usize) {
        let found = quote(bytes, at);
        // `don't`
        let letter = byte(bytes, at) == b'\'' && is_word(before(bytes, at)) && is_word(byte(bytes, at + 1));
        if let Some(said) = &mut self.said {
            said.quote = toggled(said.quote, found, letter);
        }
        if self.quote.is_some() {
            self.quote = toggled(self.quote, found, letter);
            return;
        }
        let outer = self.outer.is_some() && self.outer == found;
        // `["curl", "-u", …]`: it ends a word alone.
        let list = outer && byte(bytes, run(bytes, at + 1, is_space).min(at + 3)) == b',';
        if list {
            self.outer = None;
        } else if outer {
            self.end();
        } else {
            self.quote = toggled(None, found, letter);
        }
    }

    /// The command ends; what an `echo` says may go on.
    fn end(&mut self) {
        *self = Self { at: self.at, said: self.said, ..Self::default() };
    }
}

/// What is open after the quote `found`, which is a letter's if it stands in a word.
fn toggled(open: Quote, found: Quote, letter: bool) -> Quote {
    match open {
        Some(_) if open == found => None,
        None if !letter => found,
        _ => open,
    }
}

/// The quote there, and the backslashes before it.
fn quote(bytes: &[u8], at: usize) -> Quote {
    let found = byte(bytes, at);
    is_quote(found).then(|| (found, at - run_back(bytes, at, 64, |byte| byte == b'\\')))
}

/// Whether a command ends there that is in no string. An address has one `&` and no blank.
fn ends(bytes: &[u8], at: usize, found: u8) -> bool {
    match found {
        b';' | b'|' => true,
        b'&' => byte(bytes, at + 1) == b'&' || is_space(byte(bytes, at + 1)) && is_blank(before(bytes, at)),
        b'\n' => {
            // It goes on after a backslash, in a list, and where the next line is a flag.
            let last = run_back(bytes, at, 8, |byte| is_blank(byte) || byte == b'\r');
            let next = run(bytes, at + 1, is_blank);
            !matches!(before(bytes, last), b'\\' | b',' | b'`') && byte(bytes, next) != b'-'
        }
        _ => false,
    }
}

/// `mysql-client`: the name of a package, and no command.
fn is_package(bytes: &[u8], at: usize) -> bool {
    let end = run(part(bytes, 0, at + 2 * LONGEST), at, |byte| is_word(byte) || byte == b'-');
    part(bytes, at, end).ends_with(b"-client")
}
