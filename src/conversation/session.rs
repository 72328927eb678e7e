//! The session: when it begins and ends, and when its root is given out.
//! Pure; decided in `docs/adr/0007-session-root.md`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::{Clock, Moment};
use super::{Conversation, Fold, Now, Options, Output, SessionSpan, counts};
use crate::event::Agent;
use crate::ids;
use crate::semconv;
use crate::span::{Span, SpanId, Status, TraceId, Value};

/// How long an open turn of a live agent holds itself and its session open.
const HELD: Duration = Duration::from_secs(12 * 60 * 60);

/// How the end of a session was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SessionEnd {
    /// The agent's process has ended.
    ProcessExit,
    /// Nothing happened for a while.
    Idle,
}

impl SessionEnd {
    /// The value of `antigravity.session.end`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::ProcessExit => "process_exit",
            Self::Idle => "idle",
        }
    }
}

/// The part of a conversation that becomes its root span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Session {
    /// Nanoseconds since 1970, never changed; 0 before the first event.
    start_ns: u64,
    end_ns: u64,
    /// For events outside of any turn.
    clock: Clock,
    pub(super) ended: Option<SessionEnd>,
    has_ended: bool,
    pub(super) resumed: bool,
    /// Whether the root was given out.
    exported: bool,
    /// Whether all turns ended OK; None without turns.
    all_ok: Option<bool>,
    pub(super) caller: Option<(TraceId, SpanId)>,
}

impl Session {
    pub(super) fn start(moment: &Moment, traceparent: Option<&str>) -> Self {
        let (clock, start) = Clock::start(moment, 1);
        let caller = traceparent.and_then(ids::parse_traceparent);
        Self { start_ns: start.ns, end_ns: start.ns, clock, caller, ..Self::default() }
    }

    pub(super) const fn start_ns(&self) -> u64 {
        self.start_ns
    }

    pub(super) const fn end_ns(&self) -> u64 {
        self.end_ns
    }

    pub(super) const fn is_open(&self) -> bool {
        self.start_ns != 0 && self.ended.is_none()
    }

    /// Opens an ended session again; false if it is open.
    pub(super) const fn reopen(&mut self) -> bool {
        self.ended.take().is_some()
    }

    /// Called as a turn begins: whether the session had ended before.
    pub(super) const fn resume(&mut self) -> bool {
        self.resumed = self.has_ended;
        self.resumed
    }

    /// Takes note of an event outside of any turn.
    pub(super) fn time(&mut self, moment: &Moment) {
        let at = self.clock.at(moment);
        self.reach(at.ns);
    }

    /// The session lasts at least until then.
    pub(super) fn reach(&mut self, ns: u64) {
        self.end_ns = self.end_ns.max(ns);
    }

    pub(super) fn count_turn(&mut self, status: &Status) {
        self.all_ok = Some(self.all_ok.unwrap_or(true) && *status == Status::Ok);
    }

    /// UNSET while open; OK at the end if every turn was.
    pub(super) fn status(&self) -> Status {
        if self.ended.is_some() && self.all_ok == Some(true) { Status::Ok } else { Status::Unset }
    }
}

impl Conversation {
    /// Takes note of an agent's exit: its open turn is interrupted, and with the last agent the session ends.
    ///
    /// Call it only after everything that the agent's hooks had captured was folded. An agent that reported nothing
    /// since the session was opened changes nothing.
    pub fn agent_exited(&mut self, agent: &Agent, now: &Now, options: &Options) -> Vec<Output> {
        let mut fold = Fold::new(options);
        if !self.is_open() || !self.agents.contains(agent) {
            return Vec::new();
        }
        self.agents.retain(|other| other != agent);
        let its_turn = self.gathering().is_some_and(|gathering| gathering.agent.as_ref() == Some(agent));
        // An exit that is noticed long after the session had become idle does not change how it ended.
        let was_idle = self.open_turn().is_none() && Moment::from(now).since(&self.last) >= options.session_idle;
        if self.agents.is_empty() {
            let how = if was_idle { SessionEnd::Idle } else { SessionEnd::ProcessExit };
            self.end_session(how, &mut fold);
        } else if its_turn {
            self.interrupt_turn(&mut fold);
        }
        self.give_out(fold)
    }

    /// Ends what is overdue: a session without events for [`Options::session_idle`], or for 12 hours if `live` tells
    /// that the process of its open turn still runs. `live` must be false for a process that cannot be observed.
    pub fn overdue(&mut self, now: &Now, live: &dyn Fn(&Agent) -> bool, options: &Options) -> Vec<Output> {
        let mut fold = Fold::new(options);
        if self.next_deadline(now, live, options) == Some(Duration::ZERO) {
            self.end_session(SessionEnd::Idle, &mut fold);
        }
        self.give_out(fold)
    }

    /// How long until [`overdue`](Self::overdue) will end something; zero if it would now, None without an open session.
    #[must_use]
    pub fn next_deadline(&self, now: &Now, live: &dyn Fn(&Agent) -> bool, options: &Options) -> Option<Duration> {
        if !self.is_open() {
            return None;
        }
        let open = self.turns.back().and_then(|turn| turn.open.as_ref());
        let held = open.and_then(|gathering| gathering.agent.as_ref()).is_some_and(live);
        let allowed = if held { options.session_idle.max(HELD) } else { options.session_idle };
        Some(allowed.saturating_sub(Moment::from(now).since(&self.last)))
    }

    fn end_session(&mut self, how: SessionEnd, fold: &mut Fold<'_>) {
        self.interrupt_turn(fold);
        (0..self.joins.clear()).for_each(|_| fold.count(counts::UNOBSERVED_TOOL));
        self.lone_calls.clear();
        self.agents.clear();
        self.session.ended = Some(how);
        self.session.has_ended = true;
        fold.session_ended = true;
    }

    /// Hands over what was gathered: the root first, where the policy wants it now.
    pub(super) fn give_out(&mut self, fold: Fold<'_>) -> Vec<Output> {
        let (first, ended) = (!self.session.exported, fold.session_ended);
        let root_is_due = match fold.options.session_span {
            SessionSpan::Update => (first && !fold.spans.is_empty()) || fold.turn_ended || ended,
            SessionSpan::First => first && (!fold.spans.is_empty() || ended),
            SessionSpan::Once => first && ended,
            SessionSpan::None => false,
        };
        let mut outputs = Vec::with_capacity(fold.spans.len() + fold.counts.len() + 1);
        if root_is_due {
            self.session.exported = true;
            outputs.push(Output::Session(self.root_span()));
        }
        let clamped = |span: &Span| span.attributes.get(semconv::CLAMPED) == Some(&Value::Bool(true));
        let clamps = fold.spans.iter().filter(|span| clamped(span)).count();
        outputs.extend(fold.spans.into_iter().map(Output::Span));
        outputs.extend(fold.counts.into_iter().map(Output::Count));
        outputs.extend((0..clamps).map(|_| Output::Count(counts::CLAMP)));
        outputs
    }
}
