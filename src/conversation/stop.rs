//! Folds Stop, and ends turns: by Stop, or as interrupted when none was observed.
//! Pure; decided in `docs/adr/0005-turns-and-late-events.md`.

use serde::{Deserialize, Serialize};

use super::clock::Time;
use super::model_call::CallEnd;
use super::turn::Beginning;
use super::{Conversation, Fold, Seen, counts};
use crate::event::Stop;
use crate::span::SpanId;

/// The Stop that ended the latest turn which ended by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastStop {
    execution_num: Option<i64>,
    turn: SpanId,
}

/// How a turn ends.
#[derive(Clone, Copy)]
pub(super) enum TurnEnd<'a> {
    /// By a Stop, and what its event told.
    Stop(&'a Stop, Seen<'a>),
    /// Without: its last event is its end.
    Interrupted,
    /// Not yet; for a preview.
    Running,
}

impl Conversation {
    pub(super) fn stop(&mut self, stop: &Stop, seen: Seen<'_>, fold: &mut Fold<'_>) {
        let turn = match (self.open_turn(), self.turns.back().map(|turn| turn.index)) {
            (Some(open), _) if self.turn(open).is_some_and(|turn| seen.moment.before(&turn.first)) => {
                // It was overtaken by the next turn, which has ended its own turn as interrupted.
                return fold.count(counts::LATE_STOP);
            }
            (Some(open), _) => open,
            (None, Some(newest)) => {
                fold.count(counts::REPEATED_STOP);
                self.time(newest, seen);
                return;
            }
            (None, None) => self.begin_turn(Beginning::Partial, None, seen, fold),
        };
        let at = self.time(turn, seen);
        self.end_running_call(at, CallEnd::Inferred, None, fold);
        let earlier = self.continued_by(stop);
        if let Some(gathering) = self.gathering() {
            gathering.continues = gathering.continues.or(earlier);
        }
        self.end_turn(TurnEnd::Stop(stop, seen), at, fold);
        self.last_stop =
            self.turns.back().map(|turn| LastStop { execution_num: stop.execution_num, turn: turn.span_id });
    }

    /// The turn that this Stop's turn goes on with: executionNum counts up only when a hook makes the agent go on.
    fn continued_by(&self, stop: &Stop) -> Option<SpanId> {
        let last = self.last_stop.as_ref()?;
        (stop.execution_num? > last.execution_num?).then_some(last.turn)
    }

    /// Ends the open turn, if there is one, without a Stop.
    pub(super) fn interrupt_turn(&mut self, fold: &mut Fold<'_>) {
        let Some(turn) = self.turns.back().filter(|turn| turn.open.is_some()) else { return };
        let end = Time { ns: turn.clock.latest_ns(), clamped: false };
        self.end_running_call(end, CallEnd::Inferred, None, fold);
        self.end_turn(TurnEnd::Interrupted, end, fold);
    }

    fn end_turn(&mut self, how: TurnEnd<'_>, at: Time, fold: &mut Fold<'_>) {
        let Some(index) = self.open_turn() else { return };
        self.report_waiting(index, fold);
        let Some(turn) = self.turns.back_mut() else { return };
        // An event that was captured after the Stop but folded before it is still within its turn.
        let end = at.not_before(turn.clock.latest_ns());
        turn.end_ns = end.ns;
        let Some(gathering) = turn.open.take() else { return };
        if let Some(turn) = self.turns.back() {
            let span = self.turn_span(turn, &gathering, how, end, fold.options);
            self.session.count_turn(&span.status);
            self.session.reach(end.ns);
            fold.spans.push(span);
        }
        fold.turn_ended = true;
    }
}
