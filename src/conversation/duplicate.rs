//! The same event twice: our hooks registered in two files, or one hook run twice for one event.
//! Remembers a bounded number of accepted events. Pure; decided in `docs/adr/0008-duplicates.md`.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::Moment;
use crate::event::{Action, Agent, Capture, Event};

/// How far apart two registrations may report one event; agy runs hooks one after another, with a timeout each.
const WINDOW: Duration = Duration::from_secs(120);
/// How far apart one registration may report one event twice.
const REPEAT: Duration = Duration::from_secs(2);
/// Most accepted events that are remembered.
const MAX_ACCEPTED: usize = 128;
/// Most registrations that are matched with one accepted event.
const MAX_REGISTRATIONS: usize = 8;

/// What makes two events of one agent the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Identity {
    SessionStart,
    PreInvocation(Option<i64>, Option<i64>),
    PostInvocation(Option<i64>, Option<i64>),
    PreToolUse(Option<i64>),
    PostToolUse(Option<i64>),
    Stop(Option<i64>, Option<String>, Option<bool>),
}

impl From<&Action> for Identity {
    fn from(action: &Action) -> Self {
        match action {
            Action::SessionStart => Self::SessionStart,
            Action::PreInvocation(call) => Self::PreInvocation(call.num, call.initial_steps),
            Action::PostInvocation(call) => Self::PostInvocation(call.num, call.initial_steps),
            Action::PreToolUse(step) => Self::PreToolUse(step.step),
            Action::PostToolUse(step) => Self::PostToolUse(step.step),
            Action::Stop(stop) => Self::Stop(stop.execution_num, stop.reason.clone(), stop.fully_idle),
        }
    }
}

/// An accepted event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Accepted {
    identity: Identity,
    agent: Option<Agent>,
    registration: u64,
    moment: Moment,
    /// How often it was reported by its own registration.
    times: u32,
    /// The other registrations that have reported it, and how often.
    matched: Vec<(u64, u32)>,
}

/// What an event is, seen against those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sighting {
    /// Not seen before.
    New,
    /// Another registration has reported it.
    Duplicate,
    /// The same registration has just reported it.
    Repeat,
}

/// The accepted events of the last two minutes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Recent {
    accepted: VecDeque<Accepted>,
    /// The newest accepted event, without content: a repeat has to equal it in every other field.
    newest: Option<Event>,
}

impl Recent {
    /// Tells whether an event was reported before, and remembers it if not.
    pub(super) fn sight(&mut self, event: &Event, capture: &Capture, moment: &Moment) -> Sighting {
        self.accepted.retain(|accepted| moment.since(&accepted.moment) <= WINDOW);
        let identity = Identity::from(&event.action);
        if self.matches(&identity, capture, moment) {
            return Sighting::Duplicate;
        }
        if self.repeats(event, capture, moment) {
            return Sighting::Repeat;
        }
        if self.accepted.len() >= MAX_ACCEPTED {
            self.accepted.pop_front();
        }
        self.accepted.push_back(Accepted {
            identity,
            agent: capture.agent.clone(),
            registration: capture.registration,
            moment: moment.clone(),
            times: 1,
            matched: Vec::new(),
        });
        self.newest = Some(event.bare());
        Sighting::New
    }

    /// Matches the event with the oldest accepted one of another registration that still lacks this one's report.
    fn matches(&mut self, identity: &Identity, capture: &Capture, moment: &Moment) -> bool {
        let same = |accepted: &&mut Accepted| {
            accepted.registration != capture.registration
                && accepted.identity == *identity
                && accepted.agent == capture.agent
                && accepted.moment.apart(moment) <= WINDOW
        };
        self.accepted.iter_mut().filter(same).any(|accepted| accepted.report_by(capture.registration))
    }

    /// Whether the newest accepted event is the same in every field, reported by the same registration a moment ago.
    fn repeats(&mut self, event: &Event, capture: &Capture, moment: &Moment) -> bool {
        let Some(newest) = self.accepted.back_mut() else { return false };
        let by_same = newest.registration == capture.registration
            || newest.matched.iter().any(|(registration, _)| *registration == capture.registration);
        let repeated = by_same
            && self.newest.as_ref().is_some_and(|newest| newest.is_same_report(event))
            && newest.agent == capture.agent
            && newest.moment.apart(moment) < REPEAT;
        if repeated {
            // The other registrations will report the repetition too.
            newest.times = newest.times.saturating_add(1);
        }
        repeated
    }
}

impl Accepted {
    /// Counts a report by another registration; false if it has made all of its reports.
    fn report_by(&mut self, registration: u64) -> bool {
        let times = self.times;
        if let Some((_, reports)) = self.matched.iter_mut().find(|(other, _)| *other == registration) {
            let open = *reports < times;
            *reports += u32::from(open);
            return open;
        }
        let room = self.matched.len() < MAX_REGISTRATIONS;
        if room {
            self.matched.push((registration, 1));
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Stop, ToolStep};

    /// A name, then each report: milliseconds, registration, what it is.
    type Case = (&'static str, &'static [(u64, u64, Sighting)]);

    fn agent(pid: u32) -> Option<Agent> {
        Some(Agent { pid, started_ns: 1, namespace: 0, marked: true })
    }

    fn sight(recent: &mut Recent, at_ms: u64, registration: u64, agent: Option<Agent>, action: Action) -> Sighting {
        let ns = at_ms * 1_000_000;
        let capture = Capture {
            realtime_ns: ns + 1,
            boottime_ns: ns,
            boot_id: "b".into(),
            agent,
            registration,
            traceparent: None,
        };
        let event = Event::new("c".into(), action);
        recent.sight(&event, &capture, &Moment::from(&capture))
    }

    fn step(step: i64) -> Action {
        Action::PreToolUse(ToolStep { step: Some(step), tool: Some("t".into()), failed: false })
    }

    #[test]
    fn each_registration_reports_an_event_once() {
        let cases: &[Case] = &[
            ("two files", &[(0, 1, Sighting::New), (9, 2, Sighting::Duplicate)]),
            ("three files", &[(0, 1, Sighting::New), (9, 2, Sighting::Duplicate), (19, 3, Sighting::Duplicate)]),
            (
                "real twice",
                &[
                    (0, 1, Sighting::New),
                    (9, 2, Sighting::Duplicate),
                    (9_000, 1, Sighting::New),
                    (9_009, 2, Sighting::Duplicate),
                ],
            ),
            (
                "real twice, order swapped",
                &[
                    (0, 1, Sighting::New),
                    (9, 2, Sighting::Duplicate),
                    (9_000, 2, Sighting::New),
                    (9_009, 1, Sighting::Duplicate),
                ],
            ),
            ("too far apart", &[(0, 1, Sighting::New), (120_001, 2, Sighting::New)]),
            ("just near enough", &[(0, 1, Sighting::New), (120_000, 2, Sighting::Duplicate)]),
            ("repeat at once", &[(0, 1, Sighting::New), (1_999, 1, Sighting::Repeat)]),
            ("repeat later is real", &[(0, 1, Sighting::New), (2_000, 1, Sighting::New)]),
            (
                "repeat in both files",
                &[
                    (0, 1, Sighting::New),
                    (1, 1, Sighting::Repeat),
                    (2, 2, Sighting::Duplicate),
                    (3, 2, Sighting::Duplicate),
                ],
            ),
        ];
        for (name, sightings) in cases {
            let mut recent = Recent::default();
            for (at_ms, registration, expected) in *sightings {
                assert_eq!(
                    sight(&mut recent, *at_ms, *registration, agent(7), step(3)),
                    *expected,
                    "{name} at {at_ms}"
                );
            }
        }
    }

    #[test]
    fn another_agent_or_another_event_is_no_duplicate() {
        let mut recent = Recent::default();
        assert_eq!(sight(&mut recent, 0, 1, agent(7), step(3)), Sighting::New);
        assert_eq!(sight(&mut recent, 1, 2, agent(8), step(3)), Sighting::New);
        assert_eq!(sight(&mut recent, 2, 2, agent(7), step(4)), Sighting::New);
        let stop = |idle| Action::Stop(Stop { fully_idle: Some(idle), ..Stop::default() });
        assert_eq!(sight(&mut recent, 3, 1, agent(7), stop(false)), Sighting::New);
        assert_eq!(sight(&mut recent, 4, 2, agent(7), stop(true)), Sighting::New);
    }

    #[test]
    fn something_in_between_makes_a_repeat_real() {
        let mut recent = Recent::default();
        for (at_ms, action) in [(0, step(3)), (1, step(4)), (2, step(3))] {
            assert_eq!(sight(&mut recent, at_ms, 1, agent(7), action), Sighting::New, "at {at_ms}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut recent = Recent::default();
        for index in 0..1_000 {
            sight(&mut recent, 0, 1, agent(7), step(index));
        }
        assert_eq!(recent.accepted.len(), MAX_ACCEPTED);
    }
}
