//! The reducer: events of one conversation in, closed spans out. Pure: no I/O, no clock, no environment, no randomness;
//! the same events in the same order always give the same spans. Knows no host, no store and no exporter.
//! Decided in `docs/adr/0004` (ids), `0005` (turns, late events), `0006` (times), `0007` (session root), `0008` (duplicates).

#![warn(clippy::wildcard_enum_match_arm)]

mod attributes;
mod clock;
mod duplicate;
mod invocation;
mod model_call;
mod options;
mod preview;
#[cfg(test)]
mod properties;
mod session;
mod step;
mod stop;
mod tool;
mod turn;

use std::collections::VecDeque;

use serde::{Deserialize, Deserializer, Serialize};

pub use attributes::resource;
pub use options::{Options, SessionSpan, SpanNames};

use crate::event::{Action, Agent, Capture, Event, Origin, Surface};
use crate::redact::Redacted;
use crate::span::Span;
use clock::{Clock, Moment, Time};
use duplicate::{Recent, Sighting};
use model_call::LoneCallEnds;
use session::Session;
use stop::LastStop;
use tool::Joins;
use turn::{Beginning, Gathering, Turn};

/// The version of the serialised state. A program must not read, and so not overwrite, a newer one.
pub const FORMAT: u32 = 1;
/// Most turns that are remembered, so that late events find theirs.
const MAX_TURNS: usize = 32;
/// Most agent processes that one conversation is watched in.
const MAX_AGENTS: usize = 8;

/// The present, as the caller reads it from the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now {
    /// CLOCK_REALTIME, nanoseconds since 1970.
    pub realtime_ns: u64,
    /// CLOCK_BOOTTIME (macOS: CLOCK_MONOTONIC), nanoseconds.
    pub boottime_ns: u64,
    /// Names the boot that `boottime_ns` counts from; empty when the system does not tell.
    pub boot_id: String,
}

/// What an event leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A closed span: given out exactly once, never changed again.
    Span(Span),
    /// The session root. Under `update` a snapshot, which replaces an older one that is not sent yet; under `once` and
    /// `first` given out once. Comes before the spans of the same call.
    Session(Span),
    /// A reason to count, by its stable name: one of [`counts`].
    Count(&'static str),
}

/// The names that [`Output::Count`] uses.
pub mod counts {
    /// Another registration had reported the event: our hooks stand in two files.
    pub const DUPLICATE: &str = "duplicate";
    /// The same registration reported the event twice at once.
    pub const REPEAT: &str = "repeat";
    /// The event was captured before one that was folded earlier.
    pub const LATE: &str = "late";
    /// The event is of another conversation: a fault of the caller.
    pub const FOREIGN: &str = "foreign";
    /// A PostInvocation without its PreInvocation.
    pub const UNPAIRED_INVOCATION: &str = "unpaired_invocation";
    /// A PostToolUse without its PreToolUse.
    pub const UNPAIRED_STEP: &str = "unpaired_step";
    /// A step without any tool name: it has no span.
    pub const UNNAMED_STEP: &str = "unnamed_step";
    /// A PreToolUse without its PostToolUse by the turn's end: it has no span yet.
    pub const UNOBSERVED_TOOL: &str = "unobserved_tool";
    /// A PreToolUse that came after the span of its PostToolUse had been given out.
    pub const LATE_START: &str = "late_start";
    /// A Stop of a turn that had ended.
    pub const REPEATED_STOP: &str = "repeated_stop";
    /// A Stop that was overtaken by the next turn: its own turn has ended as interrupted.
    pub const LATE_STOP: &str = "late_stop";
    /// A time was bent to keep an end after its start or a child within its parent.
    pub const CLAMP: &str = "clamp";
    /// A start was forgotten because too many were waiting or its turn was forgotten.
    pub const JOIN_DROPPED: &str = "join_dropped";
    /// The session had ended and a later event opened it again.
    pub const SESSION_REOPENED: &str = "session_reopened";
}

/// The state of one conversation: bounded, serialisable after every event, and complete without anything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    #[serde(deserialize_with = "known_format")]
    version: u32,
    origin: Origin,
    /// Empty before the first event.
    id: String,
    surface: Option<Surface>,
    /// The newest model that an event named.
    model: Option<String>,
    session: Session,
    /// The processes that reported events since the session was opened, least recent first.
    agents: Vec<Agent>,
    /// The newest event.
    last: Moment,
    /// Known turns, oldest first; only the last one can be open.
    turns: VecDeque<Turn>,
    joins: Joins,
    lone_calls: LoneCallEnds,
    recent: Recent,
    last_stop: Option<LastStop>,
    next_turn: i64,
    next_call: i64,
    next_tool: i64,
}

/// The circumstances of the event that is folded.
#[derive(Clone, Copy)]
struct Seen<'a> {
    moment: &'a Moment,
    agent: Option<&'a Agent>,
    event: &'a Event,
}

/// What one call gathers before it is given out.
struct Fold<'a> {
    options: &'a Options,
    spans: Vec<Span>,
    counts: Vec<&'static str>,
    turn_ended: bool,
    session_ended: bool,
}

impl<'a> Fold<'a> {
    const fn new(options: &'a Options) -> Self {
        Self { options, spans: Vec::new(), counts: Vec::new(), turn_ended: false, session_ended: false }
    }

    fn count(&mut self, reason: &'static str) {
        self.counts.push(reason);
    }
}

impl Conversation {
    /// A conversation of which no event was folded yet. Its origin never changes; the first event fixes the rest.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self {
            version: FORMAT,
            origin,
            id: String::new(),
            surface: None,
            model: None,
            session: Session::default(),
            agents: Vec::new(),
            last: Moment::default(),
            turns: VecDeque::new(),
            joins: Joins::default(),
            lone_calls: LoneCallEnds::default(),
            recent: Recent::default(),
            last_stop: None,
            next_turn: 0,
            next_call: 0,
            next_tool: 0,
        }
    }

    /// Folds one event in: the one way to change a conversation from outside but time and the agents' exits.
    pub fn apply(&mut self, event: &Redacted<Event>, capture: &Capture, options: &Options) -> Vec<Output> {
        let mut fold = Fold::new(options);
        let moment = Moment::from(capture);
        if !self.id.is_empty() && self.id != event.conversation {
            return vec![Output::Count(counts::FOREIGN)];
        }
        match self.recent.sight(event, capture, &moment) {
            Sighting::New => {}
            Sighting::Duplicate => return vec![Output::Count(counts::DUPLICATE)],
            Sighting::Repeat => return vec![Output::Count(counts::REPEAT)],
        }
        self.observe(event, capture, &moment, &mut fold);
        let seen = Seen { moment: &moment, agent: capture.agent.as_ref(), event };
        match &event.action {
            Action::SessionStart => self.session.time(&moment),
            Action::PreInvocation(call) => self.pre_invocation(*call, seen, &mut fold),
            Action::PostInvocation(call) => self.post_invocation(*call, seen, &mut fold),
            Action::PreToolUse(step) => self.pre_tool_use(step, seen, &mut fold),
            Action::PostToolUse(step) => self.post_tool_use(step, seen, &mut fold),
            Action::Stop(stop) => self.stop(stop, seen, &mut fold),
        }
        self.give_out(fold)
    }

    /// What every accepted event tells, whatever happened.
    fn observe(&mut self, event: &Event, capture: &Capture, moment: &Moment, fold: &mut Fold<'_>) {
        if self.id.is_empty() {
            self.id.clone_from(&event.conversation);
            self.last = moment.clone();
            self.session = Session::start(moment, capture.traceparent.as_deref());
        }
        if self.session.reopen() {
            fold.count(counts::SESSION_REOPENED);
        }
        if moment.before(&self.last) {
            fold.count(counts::LATE);
        } else {
            self.last = moment.clone();
        }
        self.surface = self.surface.or(event.surface);
        if event.model.is_some() {
            self.model.clone_from(&event.model);
        }
        if let Some(agent) = &capture.agent {
            self.agents.retain(|other| other != agent);
            if self.agents.len() >= MAX_AGENTS {
                self.agents.remove(0);
            }
            self.agents.push(agent.clone());
        }
    }

    /// The processes whose exit must be watched: those of an open session.
    #[must_use]
    pub fn agents(&self) -> Vec<Agent> {
        if self.is_open() { self.agents.clone() } else { Vec::new() }
    }

    /// Whether there is a session and it has not ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// The settings that its data carry.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// `conversationId`; empty before the first event.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The boot in which the newest event was captured.
    #[must_use]
    pub fn last_boot(&self) -> &str {
        self.last.boot()
    }

    /// When the newest event was captured: CLOCK_REALTIME in nanoseconds since 1970; 0 before the first event.
    #[must_use]
    pub const fn last_event_ns(&self) -> u64 {
        self.last.realtime_ns
    }

    /// Whether content is kept for spans that are still to come.
    #[must_use]
    pub fn has_content(&self) -> bool {
        let open = self.turns.back().and_then(|turn| turn.open.as_ref());
        open.is_some_and(|gathering| gathering.prompt.is_some())
            || self.joins.has_content()
            || self.lone_calls.has_content()
    }

    /// How many turns have begun.
    #[must_use]
    pub const fn turn_count(&self) -> i64 {
        self.next_turn
    }

    fn turn(&self, index: i64) -> Option<&Turn> {
        self.turns.iter().rev().find(|turn| turn.index == index)
    }

    /// The open turn's index.
    fn open_turn(&self) -> Option<i64> {
        self.turns.back().filter(|turn| turn.open.is_some()).map(|turn| turn.index)
    }

    /// What the open turn gathers.
    fn gathering(&mut self) -> Option<&mut Gathering> {
        self.turns.back_mut().and_then(|turn| turn.open.as_mut())
    }

    /// What this turn gathers, if it is the open one.
    fn gathering_of(&mut self, index: i64) -> Option<&mut Gathering> {
        self.turns.back_mut().filter(|turn| turn.index == index).and_then(|turn| turn.open.as_mut())
    }

    /// Opens a turn and gives its index; the caller has ended the one before.
    fn begin_turn(
        &mut self,
        beginning: Beginning,
        first_steps: Option<i64>,
        seen: Seen<'_>,
        fold: &mut Fold<'_>,
    ) -> i64 {
        let continues = match beginning {
            Beginning::Continued => self.turns.back().map(|turn| turn.span_id),
            Beginning::Fresh | Beginning::Partial => None,
        };
        // Turns begin in order, and after all of the earlier one if the wall clock has been set back behind it.
        let floor_ns = match self.turns.back() {
            Some(turn) if seen.moment.realtime_ns < turn.start.ns => turn.clock.latest_ns(),
            Some(turn) => turn.start.ns,
            None => self.session.start_ns(),
        };
        let (clock, start) = Clock::start(seen.moment, floor_ns);
        let index = self.next_turn;
        self.next_turn += 1;
        self.turns.push_back(Turn {
            index,
            span_id: crate::ids::span_id(&self.id, crate::span::Role::Turn, index, start.ns),
            start,
            first_steps,
            clock,
            first: seen.moment.clone(),
            last: seen.moment.clone(),
            open: Some(Gathering {
                partial: beginning == Beginning::Partial,
                continues,
                resumed: self.session.resume(),
                ..Gathering::default()
            }),
            end_ns: 0,
        });
        if self.turns.len() > MAX_TURNS {
            self.turns.pop_front();
            let oldest = self.turns.front().map_or(index, |turn| turn.index);
            (0..self.joins.forget_before(oldest)).for_each(|_| fold.count(counts::JOIN_DROPPED));
        }
        index
    }

    /// The time of the event in this turn, which thereby has a newer event.
    fn time(&mut self, index: i64, seen: Seen<'_>) -> Time {
        let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.index == index) else {
            return Time { ns: seen.moment.realtime_ns, clamped: false };
        };
        if !seen.moment.before(&turn.last) {
            turn.last = seen.moment.clone();
        }
        if let Some(gathering) = &mut turn.open {
            if gathering.model.is_none() {
                gathering.model.clone_from(&seen.event.model);
            }
            if gathering.prompt.is_none() {
                gathering.prompt.clone_from(&seen.event.told().content.prompt);
            }
            gathering.agent = seen.agent.cloned();
        }
        let time = turn.clock.at(seen.moment);
        self.session.reach(time.ns);
        time
    }
}

/// Refuses a state of a newer version: writing it back would lose what this version does not know.
fn known_format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    if version > FORMAT {
        return Err(serde::de::Error::custom("the conversation was stored by a newer version"));
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_a_newer_version_is_refused() {
        let mut state = serde_json::to_value(Conversation::new(Origin::default())).unwrap();
        assert!(serde_json::from_value::<Conversation>(state.clone()).is_ok());
        *state.get_mut("version").unwrap() = (FORMAT + 1).into();
        assert!(serde_json::from_value::<Conversation>(state).unwrap_err().to_string().contains("newer version"));
    }
}
