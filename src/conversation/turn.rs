//! A turn: where a model call belongs (the table of `design.md` §4), what an open turn gathers, and how it ends.
//! Pure; decided in `docs/adr/0005-turns-and-late-events.md`.

use serde::{Deserialize, Serialize};

use super::clock::{Clock, Moment, Time};
use super::model_call::ModelCall;
use crate::event::{Agent, Invocation, Stop};
use crate::redact::Text;
use crate::span::{SpanEvent, SpanId, Status};

/// Most span events that a turn keeps; the limit of the OpenTelemetry SDKs.
pub(super) const MAX_EVENTS: usize = 128;
/// Most names in `antigravity.turn.unobserved_tools`.
pub(super) const MAX_UNOBSERVED: usize = 64;
/// What agy puts before the reason in newer versions.
const REASON_PREFIX: &str = "EXECUTOR_TERMINATION_REASON_";

/// A turn that is known: open, or ended and kept because late events may belong to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Turn {
    /// Which turn of the conversation, from 0.
    pub(super) index: i64,
    pub(super) span_id: SpanId,
    pub(super) start: Time,
    /// initialNumSteps of the model call that opened it: later steps are its own. None: opened by something else.
    pub(super) first_steps: Option<i64>,
    pub(super) clock: Clock,
    /// Its first event.
    pub(super) first: Moment,
    /// Its newest event.
    pub(super) last: Moment,
    /// What is gathered while it is open; None once its span was given out, which is never changed.
    pub(super) open: Option<Gathering>,
    /// The end of its span; 0 while it is open.
    pub(super) end_ns: u64,
}

/// What an open turn gathers for its span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Gathering {
    /// (invocationNum, initialNumSteps) of the latest PreInvocation that had both.
    pub(super) numbers: Option<(i64, i64)>,
    /// When the latest PreInvocation was captured.
    pub(super) asked: Option<Moment>,
    pub(super) partial: bool,
    /// The turn that this one goes on with.
    pub(super) continues: Option<SpanId>,
    /// Whether the session had ended before this turn.
    pub(super) resumed: bool,
    pub(super) model: Option<String>,
    /// What the user said, by the first event that told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prompt: Option<Text>,
    /// The model call that is running.
    pub(super) call: Option<ModelCall>,
    pub(super) unnamed_steps: i64,
    pub(super) unobserved: Vec<String>,
    pub(super) events: Vec<SpanEvent>,
    /// The process of its latest event.
    pub(super) agent: Option<Agent>,
}

impl Gathering {
    /// Keeps a span event, unless there are too many.
    pub(super) fn note(&mut self, event: SpanEvent) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        }
    }
}

/// How a new turn begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// With the first model call of an execution.
    Fresh,
    /// It goes on with an earlier turn.
    Continued,
    /// Unobserved.
    Partial,
}

/// Where a PreInvocation belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A model call of the open turn: its next one, or the same invocation again.
    OpenTurn,
    /// A new turn; one that is open ends as interrupted.
    NewTurn(Beginning),
}

/// The table: `open` is None without an open turn, else the numbers of its latest PreInvocation, where known.
pub(super) fn place(open: Option<Option<(i64, i64)>>, call: Invocation, a_turn_is_known: bool) -> Place {
    let (num, steps) = (call.num, call.initial_steps);
    match (open, num.zip(steps)) {
        (Some(_), None) => Place::OpenTurn,
        (None, None) => Place::NewTurn(Beginning::Partial),
        (Some(Some(last)), Some(next)) if next == last => Place::OpenTurn,
        (Some(Some(last)), Some(next)) if next.0 > last.0 && next.1 >= last.1 => Place::OpenTurn,
        // The open turn was opened by another event; a call that is not the first of its execution fits into it.
        (Some(None), Some((num, _))) if num > 0 => Place::OpenTurn,
        (Some(_), Some(_)) | (None, Some((..=0, _))) => Place::NewTurn(Beginning::Fresh),
        (None, Some(_)) if a_turn_is_known => Place::NewTurn(Beginning::Continued),
        (None, Some(_)) => Place::NewTurn(Beginning::Partial),
    }
}

/// What a Stop says about its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) status: Status,
    /// `error.type`, with an error only.
    pub(super) error_type: Option<String>,
}

/// Reads a Stop; a reason that is not known proves neither success nor error.
pub(super) fn verdict(stop: &Stop) -> Verdict {
    let raw = stop.reason.as_deref().unwrap_or_default();
    let reason = bare_reason(raw).to_ascii_uppercase();
    if stop.failed || reason == "ERROR" {
        let name = if reason.is_empty() { "_OTHER".to_owned() } else { reason.to_ascii_lowercase() };
        return Verdict { status: Status::Error(None), error_type: Some(name) };
    }
    let success =
        matches!(reason.as_str(), "NO_TOOL_CALL" | "MODEL_STOP" | "TERMINAL_CUSTOM_HOOK") || reason.starts_with("MAX_");
    Verdict { status: if success { Status::Ok } else { Status::Unset }, error_type: None }
}

/// The reason without the prefix of the protocol's enum.
fn bare_reason(raw: &str) -> &str {
    raw.strip_prefix(REASON_PREFIX).unwrap_or(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(num: i64, steps: i64) -> Invocation {
        Invocation { num: Some(num), initial_steps: Some(steps) }
    }

    #[test]
    fn the_turn_table() {
        use Beginning::{Continued, Fresh, Partial};
        let open = |num, steps| Some(Some((num, steps)));
        let no_num = Invocation { num: None, initial_steps: Some(3) };
        let no_steps = Invocation { num: Some(0), initial_steps: None };
        let cases = [
            ("the same invocation again", open(1, 3), call(1, 3), true, Place::OpenTurn),
            ("the next call", open(1, 3), call(2, 5), true, Place::OpenTurn),
            ("the next call, no step in between", open(1, 3), call(2, 3), true, Place::OpenTurn),
            ("a call was missed", open(1, 3), call(4, 9), true, Place::OpenTurn),
            ("the next message", open(1, 3), call(0, 6), true, Place::NewTurn(Fresh)),
            ("the next message after one call", open(0, 3), call(0, 6), true, Place::NewTurn(Fresh)),
            ("steps fell: a rewind", open(1, 9), call(2, 5), true, Place::NewTurn(Fresh)),
            ("number fell", open(3, 9), call(2, 11), true, Place::NewTurn(Fresh)),
            ("same number, more steps", open(1, 3), call(1, 5), true, Place::NewTurn(Fresh)),
            ("first message", None, call(0, 1), false, Place::NewTurn(Fresh)),
            ("next message after Stop", None, call(0, 9), true, Place::NewTurn(Fresh)),
            ("goes on after Stop", None, call(2, 9), true, Place::NewTurn(Continued)),
            ("begun unseen", None, call(2, 9), false, Place::NewTurn(Partial)),
            ("no num, open", open(1, 3), no_num, true, Place::OpenTurn),
            ("no steps, open", open(1, 3), no_steps, true, Place::OpenTurn),
            ("no num, none open", None, no_num, true, Place::NewTurn(Partial)),
            ("no steps, none open", None, no_steps, false, Place::NewTurn(Partial)),
            ("a partial turn goes on", Some(None), call(1, 3), true, Place::OpenTurn),
            ("a partial turn is followed by a message", Some(None), call(0, 3), true, Place::NewTurn(Fresh)),
        ];
        for (name, open, invocation, known, expected) in cases {
            assert_eq!(place(open, invocation, known), expected, "{name}");
        }
    }

    #[test]
    fn stop_reasons() {
        let ok = (Status::Ok, None);
        let unset = (Status::Unset, None);
        let error = |name: &str| (Status::Error(None), Some(name.to_owned()));
        let cases = [
            ("NO_TOOL_CALL", false, ok.clone()),
            ("model_stop", false, ok.clone()),
            ("MAX_INVOCATIONS", false, ok.clone()),
            ("MAX_FORCED_INVOCATIONS", false, ok.clone()),
            ("MAX_TOKEN_BUDGET_EXCEEDED", false, ok.clone()),
            ("max_steps_exceeded", false, ok.clone()),
            ("TERMINAL_CUSTOM_HOOK", false, ok.clone()),
            ("EXECUTOR_TERMINATION_REASON_MAX_INVOCATIONS", false, ok),
            ("ERROR", false, error("error")),
            ("error", false, error("error")),
            ("EXECUTOR_TERMINATION_REASON_ERROR", false, error("error")),
            ("NO_TOOL_CALL", true, error("no_tool_call")),
            ("USER_CANCELED", true, error("user_canceled")),
            ("", true, error("_OTHER")),
            ("USER_CANCELED", false, unset.clone()),
            ("EXECUTOR_TERMINATION_REASON_USER_CANCELED", false, unset.clone()),
            ("A_REASON_OF_LATER_VERSIONS", false, unset.clone()),
            ("", false, unset),
        ];
        for (reason, failed, (status, error_type)) in cases {
            let stop = Stop { reason: Some(reason.to_owned()), failed, ..Stop::default() };
            assert_eq!(verdict(&stop), Verdict { status, error_type }, "{reason} failed={failed}");
        }
    }
}
