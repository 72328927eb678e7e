//! Tool steps: PreToolUse joined with PostToolUse by stepIdx, in whichever order they are folded.
//! Holds what waits for its other half, bounded. Pure; decided in `docs/adr/0005-turns-and-late-events.md`.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::clock::{Moment, Time};
use crate::event::{Content, Digests, Told};

/// Most tool steps that wait for their end.
const MAX_WAITING: usize = 256;
/// Most ends that are kept because their start may still be on its way.
const MAX_LONE_ENDS: usize = 64;

/// Most steps that wait with what was captured of them; older ones lose it, so that the state stays small.
const MAX_TOLD: usize = 32;

/// What two events told of one call: what the later one says goes before, what it does not say stays.
pub(super) fn joined(before: Told, later: Told) -> Told {
    let content = Content {
        args: later.content.args.or(before.content.args),
        error: later.content.error.or(before.content.error),
        prompt: later.content.prompt.or(before.content.prompt),
        output: later.content.output.or(before.content.output),
        result: later.content.result.or(before.content.result),
    };
    let digests = Digests {
        args: later.digests.args.or(before.digests.args),
        error: later.digests.error.or(before.digests.error),
    };
    Told { content, digests }
}

/// A PreToolUse without its PostToolUse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Waiting {
    pub(super) step: Option<i64>,
    pub(super) tool: Option<String>,
    /// The index of its turn.
    pub(super) turn: i64,
    pub(super) start: Time,
    /// Whether its turn has named it as unobserved.
    pub(super) reported: bool,
    #[serde(default, skip_serializing_if = "Told::is_empty")]
    pub(super) told: Told,
}

/// A PostToolUse that was folded without its PreToolUse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LoneEnd {
    pub(super) step: i64,
    /// The index of its turn.
    pub(super) turn: i64,
    pub(super) moment: Moment,
    pub(super) failed: bool,
    /// Whether a span was given out: it had a name of its own.
    pub(super) named: bool,
    /// For a span that is still to come; empty if that was given out.
    #[serde(default, skip_serializing_if = "Told::is_empty")]
    pub(super) told: Told,
}

/// The halves that wait for each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Joins {
    waiting: VecDeque<Waiting>,
    lone_ends: VecDeque<LoneEnd>,
}

impl Joins {
    /// Keeps a start; gives back the one that no longer fits, if any.
    pub(super) fn wait(&mut self, start: Waiting) -> Option<Waiting> {
        let dropped = (self.waiting.len() >= MAX_WAITING).then(|| self.waiting.pop_front()).flatten();
        self.waiting.push_back(start);
        for old in self.waiting.iter_mut().rev().skip(MAX_TOLD) {
            old.told = Told::default();
        }
        dropped
    }

    /// Takes the start of this step. A start without a number is nobody's.
    pub(super) fn take_start(&mut self, step: Option<i64>) -> Option<Waiting> {
        let step = step?;
        let at = self.waiting.iter().position(|waiting| waiting.step == Some(step))?;
        self.waiting.remove(at)
    }

    /// Keeps an end whose start may still come.
    pub(super) fn keep_end(&mut self, end: LoneEnd) {
        if self.lone_ends.len() >= MAX_LONE_ENDS {
            self.lone_ends.pop_front();
        }
        self.lone_ends.push_back(end);
        for old in self.lone_ends.iter_mut().rev().skip(MAX_TOLD) {
            old.told = Told::default();
        }
    }

    /// Whether content waits here.
    pub(super) fn has_content(&self) -> bool {
        let mut told = self.waiting.iter().map(|start| &start.told).chain(self.lone_ends.iter().map(|end| &end.told));
        told.any(|told| !told.content.is_empty())
    }

    /// Takes the end that has overtaken this start: of the same step, but captured after it.
    pub(super) fn take_end(&mut self, step: Option<i64>, start: &Moment) -> Option<LoneEnd> {
        let step = step?;
        let at = self.lone_ends.iter().position(|end| end.step == step && start.not_after(&end.moment))?;
        self.lone_ends.remove(at)
    }

    /// The starts of a turn that it has not yet named as unobserved.
    pub(super) fn unreported(&mut self, turn: i64) -> impl Iterator<Item = &mut Waiting> {
        self.waiting.iter_mut().filter(move |waiting| waiting.turn == turn && !waiting.reported)
    }

    /// All starts of a turn that wait; for a preview.
    pub(super) fn of_turn(&self, turn: i64) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter().filter(move |waiting| waiting.turn == turn)
    }

    /// Forgets what belongs to turns before this one; tells how many starts that were.
    pub(super) fn forget_before(&mut self, turn: i64) -> usize {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.turn >= turn);
        self.lone_ends.retain(|end| end.turn >= turn);
        before - self.waiting.len()
    }

    /// Forgets all, at the session's end; tells how many starts were never named by a turn.
    pub(super) fn clear(&mut self) -> usize {
        self.lone_ends.clear();
        self.waiting.drain(..).filter(|waiting| !waiting.reported).count()
    }
}
