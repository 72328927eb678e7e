//! Walks through JSON as it came and writes it redacted: order, numbers and blanks stay as they were written. May not keep a
//! tree, and may not pass on what it does not understand; decided in `docs/adr/0040-redaction-engine.md`.

use super::ahead;
use super::bytes::{byte, is_space, part, run};
use super::commands::Next;
use super::decode;
use super::flags;
use super::given;
use super::harmless::is_reference;
use super::line::Commands;
use super::names::{self, Kind};
use super::scan::{Around, Hit, Rules, scan};
use super::sink::{Form, Sink};
use super::skip::{Skip, check, scalar_end};

/// Deepest value that is looked into.
pub(super) const DEEPEST: usize = 32;
/// How often a string may be JSON in a string of JSON before it is looked through as text.
pub(super) const STRINGS: usize = 2;

/// How often a text is looked through again after something was taken out.
const PASSES: usize = 4;

/// How many characters of it are looked at beyond those that there is room for.
const AHEAD: usize = 512;

/// How many bytes more than there is room for are looked at first.
const WINDOW: usize = 8 << 10;

/// Why a walk ended before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// There is no room for more.
    Full,
    /// The input ends within a value.
    Cut,
    /// It is no JSON.
    Broken,
}

/// Whether a value must go for what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    None,
    Secret(Kind),
    /// Within a value that must go.
    Inside,
}

/// Writes the value `bytes` are, redacted.
pub(super) fn walk(bytes: &[u8], sink: &mut Sink, strings: usize) -> Result<(), Stop> {
    let mut walk = Walk { bytes, at: 0, sink, strings };
    walk.value(0, Promise::None)?;
    walk.blank();
    if walk.at < bytes.len() { Err(Stop::Broken) } else { Ok(()) }
}

/// Writes a text that may be JSON itself, redacted. An `open` one was cut.
pub(super) fn leaf(text: &str, open: bool, form: Form, sink: &mut Sink, strings: usize) {
    if strings > 0 && !open && check(text.as_bytes()) == Ok(()) {
        let mut inner = Sink::new(usize::MAX, text.len());
        // It was checked, so all that can stop it is depth, and that it has marked.
        if walk(text.as_bytes(), &mut inner, strings - 1).is_ok() {
            let rules = inner.rules();
            sink.note(rules);
            return if rules.any() { sink.write(&inner.into_text(), form) } else { sink.write(text, form) };
        }
    }
    // Of a long text the begin is enough, if it leaves no room for more once it is redacted.
    if let Some(head) = text.get(..text.floor_char_boundary(sink.room().saturating_add(WINDOW)))
        && head.len() < text.len()
    {
        let hits = scan(head, true);
        let mut left = Sink::new(sink.room() + AHEAD, head.len());
        left.redacted(head, &hits);
        if left.is_full() {
            settled(head, &hits, form, sink);
            return sink.close();
        }
    }
    let hits = scan(text, open);
    if hits.is_empty() { sink.write(text, form) } else { settled(text, &hits, form, sink) }
}

/// Writes a text without what must go, and without what must go once that is gone: a mark may end what had no end before.
fn settled(text: &str, hits: &[Hit], form: Form, sink: &mut Sink) {
    let room = sink.room().saturating_add(AHEAD);
    let mut left = Sink::new(room, text.len());
    left.redacted(text, hits);
    // The name of an account ends nothing, unless it had a blank that did.
    let mut accounts =
        hits.iter().all(|hit| hit.is_account() && !text.get(hit.start..hit.end).unwrap_or_default().contains(' '));
    for _ in 0..PASSES {
        let hits = if accounts { Vec::new() } else { scan(left.text(), false) };
        if hits.is_empty() {
            sink.note(left.rules());
            return sink.write(left.text(), form);
        }
        let mut next = Sink::new(room, left.text().len());
        next.note(left.rules());
        next.redacted(left.text(), &hits);
        left = next;
        accounts = false;
    }
    sink.note(left.rules());
    sink.mark(Rules::around(Around::Unreadable));
}

/// What the members of an object have said about others of it.
#[derive(Default)]
struct Known {
    /// `{"name": "API_KEY", "value": "…"}`
    named: Option<Kind>,
    /// `{"kind": "Secret", "data": {…}}`
    is_secret: bool,
}

impl Known {
    fn note(&mut self, key: &str, text: &str) {
        if is_name(key) {
            self.named = names::kind(text.as_bytes());
        }
        self.is_secret |= is_secret(key, text).is_some();
    }
}

/// Whether that member makes an object a `Secret` of Kubernetes.
fn is_secret(key: &str, text: &str) -> Option<()> {
    (key == "kind" && text == "Secret").then_some(())
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    sink: &'a mut Sink,
    strings: usize,
}

impl Walk<'_> {
    fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::Cut)
    }

    /// Writes `end` bytes that are JSON's own.
    fn copy(&mut self, end: usize) -> Result<(), Stop> {
        let text = str::from_utf8(part(self.bytes, self.at, end)).map_err(|_| Stop::Broken)?;
        self.sink.push(text);
        self.at = end;
        if self.sink.is_full() { Err(Stop::Full) } else { Ok(()) }
    }

    fn blank(&mut self) {
        let end = run(self.bytes, self.at, is_space);
        for line in part(self.bytes, self.at, end).split(|&byte| byte == b'\r') {
            self.sink.push(str::from_utf8(line).unwrap_or_default());
        }
        self.at = end;
    }

    fn mark(&mut self, rule: Around, end: usize) -> Result<(), Stop> {
        self.sink.push("\"");
        self.sink.mark(Rules::around(rule));
        self.sink.push("\"");
        self.at = end;
        if self.sink.is_full() { Err(Stop::Full) } else { Ok(()) }
    }

    fn value(&mut self, depth: usize, promise: Promise) -> Result<(), Stop> {
        self.blank();
        let inside = if promise == Promise::None { Promise::None } else { Promise::Inside };
        match self.peek()? {
            b'{' | b'[' if depth == DEEPEST => {
                let mut skip = Skip { bytes: self.bytes, at: self.at };
                skip.value()?;
                self.mark(Around::Unreadable, skip.at)
            }
            b'{' => self.object(depth, inside),
            b'[' => self.list(depth, inside),
            b'"' => self.string(promise).map(drop),
            _ => self.scalar(promise),
        }
    }

    fn object(&mut self, depth: usize, inside: Promise) -> Result<(), Stop> {
        self.copy(self.at + 1)?;
        let mut first = true;
        let mut known = Known::default();
        loop {
            self.blank();
            match self.peek()? {
                b'}' => return self.copy(self.at + 1),
                b',' if !first => self.copy(self.at + 1)?,
                _ if first => {}
                _ => return Err(Stop::Broken),
            }
            self.blank();
            if self.peek()? != b'"' {
                return Err(Stop::Broken);
            }
            let key = self.string(Promise::None)?;
            self.blank();
            if self.peek()? != b':' {
                return Err(Stop::Broken);
            }
            self.copy(self.at + 1)?;
            self.blank();
            let kind = promised(&key).or_else(|| self.beside(&key, &known));
            let promise =
                kind.map_or(inside, |kind| if inside == Promise::None { Promise::Secret(kind) } else { inside });
            let promise = if promise == Promise::Inside && tells(&key) { Promise::None } else { promise };
            if self.peek()? == b'"' && promise == Promise::None {
                known.note(&key, &self.string(promise)?);
            } else {
                self.value(depth + 1, promise)?;
            }
            first = false;
        }
    }

    /// What is promised for the value that comes next by what stands beside it in its object.
    fn beside(&self, key: &str, known: &Known) -> Option<Kind> {
        let string = self.peek() == Ok(b'"');
        if !string && matches!(key, "data" | "stringData") {
            let secret = known.is_secret || ahead::find(self.bytes, self.at, is_secret).is_some();
            return secret.then_some(Kind::Password);
        }
        let name = |key: &str, text: &str| if is_name(key) { names::kind(text.as_bytes()) } else { None };
        let coming = || if string { ahead::find(self.bytes, self.at, name) } else { None };
        if is_value(key) { known.named.or_else(coming) } else { None }
    }

    fn list(&mut self, depth: usize, inside: Promise) -> Result<(), Stop> {
        self.copy(self.at + 1)?;
        let mut first = true;
        // `["--token", "…"]`, `["curl", "-u", "…"]`
        let mut commands = Commands::default();
        let (mut last, mut due) = (String::new(), Next::Any);
        loop {
            self.blank();
            match self.peek()? {
                b']' => return self.copy(self.at + 1),
                b',' if !first => self.copy(self.at + 1)?,
                _ if first => {}
                _ => return Err(Stop::Broken),
            }
            self.blank();
            if self.peek()? == b'"' {
                let next = self.text();
                let kind = names::kind(last.as_bytes()).filter(|_| last.starts_with("--") && !next.starts_with('-'));
                let (rest, told) = given::element(due, next.as_bytes());
                let told = told || flags::takes(commands.of_list(), &last, &next);
                let kind = kind.or(told.then_some(Kind::Password));
                let promise = kind.filter(|_| inside == Promise::None).map_or(inside, Promise::Secret);
                let word = self.string(promise)?;
                due = commands.element(&last, &word).unwrap_or(rest);
                last = word;
            } else {
                self.value(depth + 1, inside)?;
                last.clear();
            }
            first = false;
        }
    }

    /// The string that begins here.
    fn text(&self) -> String {
        let (end, _) = decode::string_end(self.bytes, self.at + 1);
        decode::string(part(self.bytes, self.at + 1, end.min(self.at + 1 + names::MOST)))
    }

    /// Writes a string, and gives what it was.
    fn string(&mut self, promise: Promise) -> Result<String, Stop> {
        let (end, closed) = decode::string_end(self.bytes, self.at + 1);
        let text = decode::string(part(self.bytes, self.at + 1, end));
        self.at = end + usize::from(closed);
        self.sink.push("\"");
        if promise == Promise::None || is_empty_or_reference(&text) {
            leaf(&text, !closed, Form::Json, self.sink, self.strings);
        } else {
            self.sink.mark(Rules::around(rule(promise)));
        }
        if !closed {
            return Err(Stop::Cut);
        }
        self.sink.push("\"");
        if self.sink.is_full() { Err(Stop::Full) } else { Ok(text) }
    }

    fn scalar(&mut self, promise: Promise) -> Result<(), Stop> {
        let end = scalar_end(self.bytes, self.at)?;
        let number = byte(self.bytes, self.at).is_ascii_digit() || byte(self.bytes, self.at) == b'-';
        let secret = match promise {
            Promise::None => false,
            Promise::Secret(Kind::Password) | Promise::Inside => true,
            Promise::Secret(_) => end - self.at >= 6,
        };
        if number && secret { self.mark(rule(promise), end) } else { self.copy(end) }
    }
}

const fn rule(promise: Promise) -> Around {
    if let Promise::Secret(kind) = promise { Around::of(kind) } else { Around::SecretName }
}

fn is_empty_or_reference(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text == super::content::REDACTED || is_reference(text.as_bytes())
}

/// What a key promises that is a name. A line of code that is a key promises nothing.
fn promised(key: &str) -> Option<Kind> {
    let name = key.trim_end();
    let name = name.strip_suffix([':', '?', '*']).unwrap_or(name);
    let short = name.split(' ').count() <= 3;
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '/' | '$' | '@'));
    if short && plain { names::kind(name.as_bytes()) } else { None }
}

/// Whether it is a word of a schema, which tells about a secret and holds none.
fn tells(key: &str) -> bool {
    ["type", "description", "title", "format", "minLength", "maxLength", "$ref", "label", "placeholder", "required"]
        .contains(&key)
}

fn is_name(key: &str) -> bool {
    ["name", "key", "header", "variable", "field", "flag", "envvar"].iter().any(|name| key.eq_ignore_ascii_case(name))
}

fn is_value(key: &str) -> bool {
    ["value", "val", "content", "data", "stringvalue", "default"].iter().any(|name| key.eq_ignore_ascii_case(name))
}
