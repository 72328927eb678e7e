//! Looks through one text, once as it is and once without its escapes, and says which parts of it must go. May not
//! change the text; decided in `docs/adr/0040-redaction-engine.md`.

use super::account::account;
use super::assign::{argument, assigned};
use super::bytes::{byte, part};
use super::flags::{self, Found};
use super::given;
use super::line::Commands;
use super::manifest::Manifest;
use super::names::Kind;
use super::rules::{self, RULES};
use super::shapes::{Ahead, address, dsn, private_key, scheme};
use super::steps::look;
use super::tokens::{self, AROUND, BEGINS, COMMAND};
use super::view::View;

/// Rules that are no line of the table, because they depend on what stands around a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// What a secret-like name is given.
    SecretName,
    /// Bearer and basic authorization.
    Authorization,
    /// Values of cookies.
    Cookie,
    /// PEM.
    PrivateKey,
    /// The password of an address.
    UrlPassword,
    /// Passwords after short flags of commands.
    CommandFlag,
    /// Names of accounts in paths.
    AccountName,
    /// What may have been the begin of a secret when the input was cut.
    CutOff,
    /// What is too deep, or no JSON where it should be.
    Unreadable,
}

impl Around {
    /// The rule for what a name of that kind is given.
    pub(super) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Password | Kind::Token => Self::SecretName,
            Kind::Authorization => Self::Authorization,
            Kind::Cookie => Self::Cookie,
        }
    }
}

/// Which rules hit: a bit each, first those of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules(u128);

impl Rules {
    pub(super) const NONE: Self = Self(0);

    pub(super) const fn around(rule: Around) -> Self {
        Self(1 << (RULES.len() + rule as usize))
    }

    const fn shape(index: usize) -> Self {
        Self(1 << index)
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn any(self) -> bool {
        self.0 != 0
    }

    /// Their names, sorted.
    pub(super) fn names(self) -> Vec<String> {
        let all = RULES.iter().map(|rule| rule.name).chain(rules::AROUND.iter().copied());
        let mut names: Vec<_> =
            all.enumerate().filter(|(index, _)| self.0 & (1 << index) != 0).map(|(_, name)| name.to_owned()).collect();
        names.sort();
        names
    }
}

/// A part of a text that must go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) rules: Rules,
}

impl Hit {
    /// Whether it is a name of an account and no more.
    pub(super) fn is_account(&self) -> bool {
        self.rules == Rules::around(Around::AccountName)
    }
}

/// What must go of `text`, in order and apart from each other. An `open` text was cut: what it ends with may go on.
pub(super) fn scan(text: &str, open: bool) -> Vec<Hit> {
    let mut hits = Vec::new();
    Scan::new(text.as_bytes(), open).run(|hit| hits.push(hit));
    if let Some(view) = View::folded(text.as_bytes()) {
        Scan::new(&view.bytes, open).run(|hit| {
            hits.push(Hit { start: view.source(hit.start), end: view.source(hit.end), rules: hit.rules });
        });
    }
    if open {
        let start = text.trim_end_matches(|c: char| !c.is_whitespace()).len();
        if start < text.len() {
            hits.push(Hit { start, end: text.len(), rules: Rules::around(Around::CutOff) });
        }
    }
    merged(text, hits)
}

/// Hits that overlap become one; each begins and ends between characters.
fn merged(text: &str, mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_unstable_by_key(|hit| (hit.start, hit.end));
    let mut apart: Vec<Hit> = Vec::with_capacity(hits.len());
    for mut hit in hits {
        hit.start = text.floor_char_boundary(hit.start);
        hit.end = text.ceil_char_boundary(hit.end);
        if hit.start >= hit.end {
            continue;
        }
        match apart.last_mut() {
            Some(last) if hit.start < last.end => {
                last.end = last.end.max(hit.end);
                last.rules = last.rules.with(hit.rules);
            }
            _ => apart.push(hit),
        }
    }
    apart
}

/// One way through a text.
struct Scan<'a> {
    bytes: &'a [u8],
    open: bool,
    ahead: Ahead,
    commands: Commands,
    manifest: Manifest,
}

impl<'a> Scan<'a> {
    fn new(bytes: &'a [u8], open: bool) -> Self {
        let (ahead, commands, manifest) = (Ahead::default(), Commands::default(), Manifest::default());
        Self { bytes, open, ahead, commands, manifest }
    }

    fn run(mut self, mut found: impl FnMut(Hit)) {
        let mut at = 0;
        look(self.bytes.len());
        while at < self.bytes.len() {
            let begins = BEGINS.at(self.bytes, at);
            if begins == 0 {
                at += 1;
                continue;
            }
            let shape = if begins & !AROUND == 0 { None } else { self.shape(at, begins & !AROUND) };
            let hit = shape.or_else(|| if begins & AROUND == 0 { None } else { self.around(at, begins) });
            at = match hit {
                Some(hit) if hit.start < hit.end => {
                    found(hit);
                    hit.end.max(at + 1)
                }
                _ => at + 1,
            };
        }
        let unheard = if self.open { self.commands.unheard(self.bytes) } else { None };
        if let Some((start, end)) = unheard.and_then(|(start, pipe)| flags::said(self.bytes, start, pipe)) {
            found(Hit { start, end, rules: Rules::around(Around::CutOff) });
        }
    }

    fn shape(&self, at: usize, candidates: u64) -> Option<Hit> {
        tokens::find(self.bytes, at, candidates).map(|(start, end, rule)| Hit { start, end, rules: Rules::shape(rule) })
    }

    fn around(&mut self, at: usize, begins: u64) -> Option<Hit> {
        let (bytes, open) = (self.bytes, self.open);
        let found = match byte(bytes, at) {
            b'=' => self.named(at).or_else(|| flag(flags::pair(&mut self.commands, bytes, at, open))),
            b'>' => self.named(at),
            b',' => argument(bytes, at, open).map(|secret| (Around::of(secret.kind), (secret.start, secret.end))),
            b':' => {
                let address = address(bytes, at, &mut self.ahead).map(|found| (Around::UrlPassword, found));
                address.or_else(|| self.named(at)).or_else(|| name(self.manifest.value(bytes, at)))
            }
            b'-' if part(bytes, at, at + 3) == b"---" => {
                self.manifest.end();
                private_key(bytes, at, open).map(|found| (Around::PrivateKey, found))
            }
            b'-' if byte(bytes, at + 1) == b'-' => flags::long(&mut self.commands, bytes, at, open),
            b' ' => flag(flags::short(&mut self.commands, bytes, at, open)),
            b'/' | b'\\' => account(bytes, at).map(|found| (Around::AccountName, found)),
            b'@' => dsn(bytes, at).map(|found| (Around::UrlPassword, found)),
            b'(' => name(given::called(bytes, at, open)),
            b'|' | b'?' => name(given::fallback(bytes, at, open)),
            b'<' => flag(flags::here(&mut self.commands, bytes, at, open)),
            b'b' | b'B' => scheme(bytes, at).map(|found| (Around::Authorization, found)),
            b'p' | b'P' | b'a' | b'A' => flag(flags::spoken(&mut self.commands, bytes, at, open)),
            _ => None,
        };
        let found = found.or_else(|| if begins & COMMAND == 0 { None } else { flag(self.command(at)) });
        found.map(|(rule, (start, end))| Hit { start, end, rules: Rules::around(rule) })
    }

    /// What the command that begins there is told at once, or was told by an `echo`.
    fn command(&mut self, at: usize) -> Found {
        let (bytes, open) = (self.bytes, self.open);
        let command = self.commands.note(bytes, at)?;
        if command.takes.input
            && let Some((start, pipe)) = self.commands.said(bytes, at)
        {
            return flags::said(bytes, start, pipe);
        }
        given::after(command, bytes, at, open)
    }

    fn named(&self, at: usize) -> Option<(Around, (usize, usize))> {
        let secret = assigned(self.bytes, at, self.open)?;
        Some((Around::of(secret.kind), (secret.start, secret.end)))
    }
}

fn flag(found: Found) -> Option<(Around, (usize, usize))> {
    found.map(|found| (Around::CommandFlag, found))
}

fn name(found: Found) -> Option<(Around, (usize, usize))> {
    found.map(|found| (Around::SecretName, found))
}
