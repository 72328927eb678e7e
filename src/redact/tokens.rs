//! Finds secrets by their shape. Which rules may begin at a byte is one look into three small tables; only then is the
//! automaton of a rule taken, which `build.rs` has built. May not compile a pattern, and may not read a byte twice as
//! often as there are prefixes in it; decided in `docs/adr/0040-redaction-engine.md`.

use std::sync::OnceLock;

use regex_automata::dfa::Automaton as _;
use regex_automata::dfa::sparse::DFA;
use regex_automata::{Anchored, Input};

use super::bytes::{before, byte, is_word, part, run, run_back};
use super::commands::COMMANDS;
use super::rules::{Lead, RULES, Rule};
use super::steps::look;

type Automaton = DFA<&'static [u8]>;

static AUTOMATA: &[&[u8]] = include!(concat!(env!("OUT_DIR"), "/automata.rs"));

/// What was read of them; None is one that cannot be read.
static READ: [OnceLock<Option<Automaton>>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];

/// What may begin with a byte at the first, second and third place: a bit for each rule of the table, and some for [`AROUND`].
pub(super) struct Begins([[u64; 256]; 3]);

/// The rules' prefixes, and what the readers of what stands around a secret begin with.
pub(super) static BEGINS: Begins = Begins::new();

/// The bits of [`READERS`], and [`COMMAND`].
pub(super) const AROUND: u64 = !0 << (63 - READERS.len());

/// The bit of commands.
pub(super) const COMMAND: u64 = 1 << 63;

/// What readers begin with, as the bytes at each of three places; none is any byte. They take the highest bits but one.
const READERS: [[&[u8]; 3]; 8] = [
    // Assignments, addresses, elements, arguments.
    [b"=:>,", b"", b""],
    // Flags, private keys.
    [b"- ", b"-", b""],
    // Calls.
    [b"(", b"\"'\\ ", b""],
    // Fallbacks, what is read.
    [b"|?<", b"|?<", b""],
    // Accounts.
    [b"/\\", b"/\\hHuU", b"/\\hHuUoOsS"],
    [b"@", b"tu", b"cn"],
    // Bearer, basic.
    [b"bB", b"eEaA", b"aAsS"],
    // Password, auth.
    [b"pPaA", b"aAuU", b"sStT"],
];

impl Begins {
    #[expect(clippy::indexing_slicing, reason = "evaluated when compiled")]
    const fn new() -> Self {
        let mut begins = Self([[0; 256]; 3]);
        let mut rule = 0;
        while rule < RULES.len() {
            let mut prefix = 0;
            while prefix < RULES[rule].prefixes.len() {
                let bytes = RULES[rule].prefixes[prefix].as_bytes();
                let mut place = 0;
                while place < 3 {
                    let (_, rest) = bytes.split_at(if place < bytes.len() { place } else { bytes.len() });
                    let (one, _) = rest.split_at(if rest.is_empty() { 0 } else { 1 });
                    begins.add(place, one, 1 << rule);
                    place += 1;
                }
                prefix += 1;
            }
            rule += 1;
        }
        let mut reader = 0;
        while reader < READERS.len() {
            let mut place = 0;
            while place < 3 {
                begins.add(place, READERS[reader][place], 1 << (62 - reader));
                place += 1;
            }
            reader += 1;
        }
        let mut command = 0;
        while command < COMMANDS.len() {
            let mut place = 0;
            while place < 3 {
                let letter = COMMANDS[command].letter(place);
                begins.add(place, &[letter.to_ascii_lowercase(), letter.to_ascii_uppercase()], COMMAND);
                place += 1;
            }
            command += 1;
        }
        begins
    }

    /// Notes that `bit` may have any of `bytes` at that place, or any byte at all for none.
    #[expect(clippy::indexing_slicing, reason = "evaluated when compiled")]
    const fn add(&mut self, place: usize, bytes: &[u8], bit: u64) {
        let mut at = 0;
        while at < if bytes.is_empty() { 256 } else { bytes.len() } {
            let byte = if bytes.is_empty() { at } else { bytes[at] as usize };
            self.0[place][byte] |= bit;
            at += 1;
        }
    }

    /// What may begin there.
    #[inline]
    pub(super) fn at(&self, bytes: &[u8], at: usize) -> u64 {
        let [first, second, third] = &self.0;
        let of = |table: &[u64; 256], at| table.get(usize::from(byte(bytes, at))).copied().unwrap_or(u64::MAX);
        of(first, at) & of(second, at + 1) & of(third, at + 2)
    }
}

/// The secret one of the rules in `candidates` has there: its begin, its end, its rule.
pub(super) fn find(bytes: &[u8], at: usize, mut candidates: u64) -> Option<(usize, usize, usize)> {
    while candidates != 0 {
        let index = candidates.trailing_zeros() as usize;
        candidates &= candidates - 1;
        let rule = RULES.get(index)?;
        if !rule.prefixes.iter().any(|prefix| bytes.get(at..).is_some_and(|rest| rest.starts_with(prefix.as_bytes()))) {
            continue;
        }
        look(8);
        if let Some(start) = begin(bytes, at, rule)
            && let Some(end) = matched(bytes, start, index)
        {
            return Some((start, end, index));
        }
    }
    None
}

/// Where the secret begins whose prefix stands there.
fn begin(bytes: &[u8], at: usize, rule: &Rule) -> Option<usize> {
    match rule.lead {
        Lead::Any => Some(at),
        Lead::Word => (!is_word(before(bytes, at)) || escaped(bytes, at)).then_some(at),
        Lead::Start => (!is_word(before(bytes, at)) && before(bytes, at) != b'-' || escaped(bytes, at)).then_some(at),
        Lead::Bytes(length) => at.checked_sub(length),
        Lead::Digits => Some(run_back(bytes, at, 10, |byte| byte.is_ascii_digit())),
    }
}

/// Whether what stands before it is `%3D` or so, which is no letter.
fn escaped(bytes: &[u8], at: usize) -> bool {
    let escape = part(bytes, at.saturating_sub(3), at);
    escape.starts_with(b"%") && escape.iter().skip(1).all(u8::is_ascii_hexdigit) && escape.len() == 3
}

/// How far the rule reaches from `start`; None if it is not met.
fn matched(bytes: &[u8], start: usize, index: usize) -> Option<usize> {
    let automaton = READ.get(index)?.get_or_init(|| {
        AUTOMATA.get(index).and_then(|bytes| DFA::from_bytes(bytes).ok()).map(|(automaton, _)| automaton)
    });
    // Closed, should a rule be damaged: all that hangs together.
    automaton
        .as_ref()
        .map_or_else(|| Some(run(bytes, start, |byte| !byte.is_ascii_whitespace())), |a| walk(a, bytes, start))
}

fn walk(automaton: &Automaton, bytes: &[u8], start: usize) -> Option<usize> {
    let input = Input::new(bytes).range(start..).anchored(Anchored::Yes);
    let mut state = automaton.start_state_forward(&input).ok()?;
    let mut end = None;
    let mut read = start;
    for &byte in bytes.iter().skip(start) {
        state = automaton.next_state(state, byte);
        // A match is known one byte late.
        if automaton.is_special_state(state) {
            if automaton.is_match_state(state) {
                end = Some(read);
            } else if automaton.is_dead_state(state) {
                look(read - start + 1);
                return end;
            }
        }
        read += 1;
    }
    look(read - start);
    if automaton.is_match_state(automaton.next_eoi_state(state)) {
        end = Some(read);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_automaton_can_be_read() {
        assert_eq!(AUTOMATA.len(), RULES.len());
        assert!(RULES.len() + READERS.len() < 64, "a bit each, and one for commands");
        for (bytes, rule) in AUTOMATA.iter().zip(RULES) {
            assert!(DFA::from_bytes(bytes).is_ok(), "{}", rule.name);
        }
    }

    #[test]
    fn every_rule_is_looked_for() {
        for (index, rule) in RULES.iter().enumerate() {
            for prefix in rule.prefixes {
                let text = format!("{prefix}xyz");
                assert_ne!(BEGINS.at(text.as_bytes(), 0) & (1 << index), 0, "{}", rule.name);
            }
        }
    }
}
