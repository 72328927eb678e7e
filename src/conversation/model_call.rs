//! A model call: PreInvocation to its PostInvocation, paired by (invocationNum, initialNumSteps).
//! Pure; decided in `docs/adr/0005-turns-and-late-events.md`.

use serde::{Deserialize, Serialize};

use super::clock::{Moment, Time};
use crate::event::Invocation;
use crate::redact::Text;

/// Most PostInvocations that are kept because their PreInvocation may still be on its way.
const MAX_LONE_ENDS: usize = 8;

/// A model call that is running.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelCall {
    /// Which model call of the conversation, from 0: part of its span id.
    pub(super) ordinal: i64,
    pub(super) numbers: Invocation,
    pub(super) model: Option<String>,
    pub(super) start: Time,
    /// When the first tool of it was asked for: the model had answered then.
    pub(super) first_tool_ns: Option<u64>,
}

impl ModelCall {
    /// Whether a step can be of this call: steps are numbered above those there were before it.
    pub(super) fn can_own(&self, step: Option<i64>) -> bool {
        self.numbers.initial_steps.zip(step).is_none_or(|(steps, step)| step > steps)
    }
}

/// How the end of a model call was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// By its PostInvocation.
    Observed,
    /// By what can only come after it: the next PreInvocation, Stop, the turn's end.
    Inferred,
    /// Not yet; for a preview.
    Running,
}

/// Whether two numberings can be those of one call; a missing number fits any.
pub(super) fn pairs(a: Invocation, b: Invocation) -> bool {
    let fit = |a: Option<i64>, b: Option<i64>| a.zip(b).is_none_or(|(a, b)| a == b);
    fit(a.num, b.num) && fit(a.initial_steps, b.initial_steps)
}

/// A PostInvocation that came before its PreInvocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LoneCallEnd {
    numbers: Invocation,
    pub(super) moment: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Text>,
}

/// PostInvocations that came before their PreInvocation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LoneCallEnds(Vec<LoneCallEnd>);

impl LoneCallEnds {
    /// Keeps one; the oldest goes if there are too many.
    pub(super) fn keep(&mut self, numbers: Invocation, moment: &Moment, output: Option<&Text>) {
        if self.0.len() >= MAX_LONE_ENDS {
            self.0.remove(0);
        }
        self.0.push(LoneCallEnd { numbers, moment: moment.clone(), output: output.cloned() });
    }

    /// Takes the one that ends a call which was captured at `start`: overtaken, so captured after it.
    pub(super) fn take(&mut self, numbers: Invocation, start: &Moment) -> Option<LoneCallEnd> {
        let at = self.0.iter().position(|end| pairs(end.numbers, numbers) && start.not_after(&end.moment))?;
        Some(self.0.remove(at))
    }

    /// Whether content waits here.
    pub(super) fn has_content(&self) -> bool {
        self.0.iter().any(|end| end.output.is_some())
    }

    /// Forgets all, at the session's end.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_pair_by_both_numbers() {
        let call = |num, initial_steps| Invocation { num, initial_steps };
        let cases = [
            (call(Some(1), Some(3)), call(Some(1), Some(3)), true),
            (call(Some(1), Some(3)), call(Some(2), Some(3)), false),
            (call(Some(1), Some(3)), call(Some(1), Some(4)), false),
            (call(Some(1), Some(3)), call(None, Some(3)), true),
            (call(None, None), call(Some(1), Some(3)), true),
        ];
        for (a, b, paired) in cases {
            assert_eq!(pairs(a, b), paired, "{a:?} {b:?}");
        }
    }
}
