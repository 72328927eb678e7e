//! Folds PreInvocation and PostInvocation: opens turns and model calls, and gives out the calls' spans.
//! Pure; decided in `docs/adr/0005-turns-and-late-events.md`.

use super::clock::{Moment, Time};
use super::model_call::{CallEnd, ModelCall, pairs};
use super::turn::{Beginning, Place, place};
use super::{Conversation, Fold, Seen, counts};
use crate::event::Invocation;
use crate::redact::Text;

impl Conversation {
    pub(super) fn pre_invocation(&mut self, numbers: Invocation, seen: Seen<'_>, fold: &mut Fold<'_>) {
        if let Some(turn) = self.overtaken_turn(numbers, seen.moment) {
            return self.late_call(turn, numbers, seen, fold);
        }
        let open = self.gathering().map(|gathering| gathering.numbers);
        let turn = match (place(open, numbers, !self.turns.is_empty()), self.open_turn()) {
            (Place::OpenTurn, Some(turn)) => turn,
            (Place::OpenTurn, None) => self.begin_turn(Beginning::Partial, numbers.initial_steps, seen, fold),
            (Place::NewTurn(beginning), _) => {
                self.interrupt_turn(fold);
                self.begin_turn(beginning, numbers.initial_steps, seen, fold)
            }
        };
        let start = self.time(turn, seen);
        self.end_running_call(start, CallEnd::Inferred, None, fold);
        let call = self.new_call(numbers, seen, start);
        let end = self.lone_calls.take(numbers, seen.moment);
        let end = end.map(|end| (self.time(turn, Seen { moment: &end.moment, ..seen }), end.output));
        if let Some(gathering) = self.gathering() {
            gathering.numbers = numbers.num.zip(numbers.initial_steps).or(gathering.numbers);
            gathering.asked = Some(seen.moment.clone());
            gathering.call = Some(call);
        }
        if let Some((end, output)) = end {
            self.end_running_call(end, CallEnd::Observed, output.as_ref(), fold);
        }
    }

    pub(super) fn post_invocation(&mut self, numbers: Invocation, seen: Seen<'_>, fold: &mut Fold<'_>) {
        let turn = match self.turns.back() {
            Some(turn) => turn.index,
            None => self.begin_turn(Beginning::Partial, None, seen, fold),
        };
        let at = self.time(turn, seen);
        let running = self
            .gathering()
            .filter(|gathering| gathering.asked.as_ref().is_none_or(|asked| !seen.moment.before(asked)))
            .and_then(|gathering| gathering.call.as_mut());
        if let Some(call) = running.filter(|call| pairs(call.numbers, numbers)) {
            if call.model.is_none() {
                call.model = seen.event.model.clone();
            }
            self.end_running_call(at, CallEnd::Observed, seen.event.told().content.output.as_ref(), fold);
        } else {
            fold.count(counts::UNPAIRED_INVOCATION);
            self.lone_calls.keep(numbers, seen.moment, seen.event.told().content.output.as_ref());
        }
    }

    /// Ends the model call that runs in the open turn, if one does.
    pub(super) fn end_running_call(&mut self, end: Time, how: CallEnd, output: Option<&Text>, fold: &mut Fold<'_>) {
        let Some(call) = self.gathering().and_then(|gathering| gathering.call.take()) else { return };
        if let Some(turn) = self.turns.back() {
            let span = self.call_span(turn, &call, end, how, output, fold.options);
            fold.spans.push(span);
        }
    }

    fn new_call(&mut self, numbers: Invocation, seen: Seen<'_>, start: Time) -> ModelCall {
        let ordinal = self.next_call;
        self.next_call += 1;
        ModelCall { ordinal, numbers, model: seen.event.model.clone(), start, first_tool_ns: None }
    }

    /// The newest turn, if this PreInvocation was overtaken by later events of it: then it neither opens nor ends one.
    fn overtaken_turn(&self, numbers: Invocation, moment: &Moment) -> Option<i64> {
        let turn = self.turns.back()?;
        let overtaken = match &turn.open {
            Some(gathering) => moment.before(gathering.asked.as_ref().unwrap_or(&turn.first)),
            // The first call of an execution with more steps than the ended turn began with is the next message.
            None => {
                let next = numbers.num.is_some_and(|num| num <= 0)
                    && turn.first_steps.zip(numbers.initial_steps).is_some_and(|(first, steps)| steps > first);
                moment.before(&turn.last) && !next
            }
        };
        overtaken.then_some(turn.index)
    }

    /// A model call that is folded after what came after it: it ends with its PostInvocation if that is here already,
    /// else with the call that followed it or with its turn.
    fn late_call(&mut self, turn: i64, numbers: Invocation, seen: Seen<'_>, fold: &mut Fold<'_>) {
        let start = self.time(turn, seen);
        let call = self.new_call(numbers, seen, start);
        let observed = self.lone_calls.take(numbers, seen.moment);
        let (observed, output) = match observed {
            Some(end) => (Some(self.time(turn, Seen { moment: &end.moment, ..seen })), end.output),
            None => (None, None),
        };
        let ended_ns = self.turn(turn).map(|turn| turn.end_ns);
        let inferred_ns = match self.gathering() {
            Some(gathering) => {
                gathering.numbers = gathering.numbers.or(numbers.num.zip(numbers.initial_steps));
                gathering.asked.get_or_insert_with(|| seen.moment.clone());
                gathering.call.as_ref().map(|running| running.start.ns)
            }
            None => ended_ns,
        };
        let inferred = inferred_ns.map(|ns| (Time { ns, clamped: false }, CallEnd::Inferred));
        let end = observed.map(|end| (end, CallEnd::Observed)).or(inferred);
        match (end, self.turn(turn)) {
            (Some((end, how)), Some(turn)) => {
                let span = self.call_span(turn, &call, end, how, output.as_ref(), fold.options);
                fold.spans.push(span);
            }
            (Some(_), None) | (None, _) => {
                if let Some(gathering) = self.gathering() {
                    gathering.call = Some(call);
                }
            }
        }
    }
}
