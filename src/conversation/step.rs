//! Folds PreToolUse and PostToolUse: joins them by stepIdx and gives out the tools' spans.
//! Pure; decided in `docs/adr/0005-turns-and-late-events.md`.

use super::attributes::{ToolCall, ToolTiming, event_attributes};
use super::clock::Time;
use super::tool::{LoneEnd, Waiting, joined};
use super::turn::{Beginning, MAX_UNOBSERVED};
use super::{Conversation, Fold, Seen, counts};
use crate::event::{Told, ToolStep};
use crate::semconv;
use crate::span::SpanEvent;

impl Conversation {
    pub(super) fn pre_tool_use(&mut self, step: &ToolStep, seen: Seen<'_>, fold: &mut Fold<'_>) {
        let turn = self.turn_of_step(step.step, seen, fold);
        let start = self.time(turn, seen);
        if let Some(call) = self.gathering_of(turn).and_then(|gathering| gathering.call.as_mut())
            && call.can_own(step.step)
        {
            call.first_tool_ns = Some(call.first_tool_ns.map_or(start.ns, |first| first.min(start.ns)));
        }
        if let Some(end) = self.joins.take_end(step.step, seen.moment) {
            return self.overtaken_start(step, end, seen, fold);
        }
        // The same step again: what was asked for before will not be joined any more.
        if let Some(earlier) = self.joins.take_start(step.step) {
            self.give_up(earlier, fold);
        }
        let (tool, told) = (step.tool.clone(), seen.event.told().clone());
        let waiting = Waiting { step: step.step, tool, turn, start, reported: false, told };
        if let Some(dropped) = self.joins.wait(waiting) {
            fold.count(counts::JOIN_DROPPED);
            self.give_up(dropped, fold);
        }
    }

    pub(super) fn post_tool_use(&mut self, step: &ToolStep, seen: Seen<'_>, fold: &mut Fold<'_>) {
        let Some(start) = self.joins.take_start(step.step) else {
            return self.lone_end(step, seen, fold);
        };
        let end = self.time(start.turn, seen);
        let Some(name) = step.tool.clone().or(start.tool) else {
            return self.unnamed_step(start.turn, step.step, end, fold);
        };
        let told = joined(start.told, seen.event.told().clone());
        let call = ToolCall { name, step: step.step, start: start.start, end, failed: step.failed, told };
        self.tool_ended(start.turn, &call, ToolTiming::IncludesApproval, fold);
    }

    /// An end without a start: a tool whose duration is not known, or a step that is no tool.
    fn lone_end(&mut self, step: &ToolStep, seen: Seen<'_>, fold: &mut Fold<'_>) {
        let open = self.open_turn().filter(|_| step.tool.is_none());
        let turn = open.unwrap_or_else(|| self.turn_of_step(step.step, seen, fold));
        let at = self.time(turn, seen);
        fold.count(counts::UNPAIRED_STEP);
        if let Some(index) = step.step {
            let (moment, named) = (seen.moment.clone(), step.tool.is_some());
            let told = if named { Told::default() } else { seen.event.told().clone() };
            self.joins.keep_end(LoneEnd { step: index, turn, moment, failed: step.failed, named, told });
        }
        let Some(name) = step.tool.clone() else { return self.unnamed_step(turn, step.step, at, fold) };
        let call = ToolCall {
            name,
            step: step.step,
            start: at,
            end: at,
            failed: step.failed,
            told: seen.event.told().clone(),
        };
        self.tool_ended(turn, &call, ToolTiming::EndOnly, fold);
    }

    /// A start that is folded after its end. If that had a name its span is out and stays as it is; else the name
    /// arrives only now, and with it the span.
    fn overtaken_start(&mut self, step: &ToolStep, end: LoneEnd, seen: Seen<'_>, fold: &mut Fold<'_>) {
        let Some(name) = step.tool.clone().filter(|_| !end.named) else {
            return fold.count(counts::LATE_START);
        };
        if let Some(gathering) = self.gathering_of(end.turn) {
            gathering.unnamed_steps -= 1;
            let index = step.step.map(Into::into);
            let is_its_mark = |event: &SpanEvent| {
                event.name == semconv::EVENT_STEP_UNNAMED && event.attributes.get(semconv::STEP_INDEX).cloned() == index
            };
            if let Some(mark) = gathering.events.iter().rposition(is_its_mark) {
                gathering.events.remove(mark);
            }
        }
        let start = self.time(end.turn, seen);
        let ended = self.time(end.turn, Seen { moment: &end.moment, ..seen });
        let told = joined(seen.event.told().clone(), end.told);
        let call = ToolCall { name, step: step.step, start, end: ended, failed: end.failed, told };
        self.tool_ended(end.turn, &call, ToolTiming::IncludesApproval, fold);
    }

    fn tool_ended(&mut self, turn: i64, call: &ToolCall, timing: ToolTiming, fold: &mut Fold<'_>) {
        let ordinal = self.next_tool;
        self.next_tool += 1;
        if let Some(turn) = self.turn(turn) {
            let span = self.tool_span(turn, call, ordinal, timing, fold.options);
            fold.spans.push(span);
        }
    }

    /// A step that ended without a name: its turn tells, if it still can.
    fn unnamed_step(&mut self, turn: i64, step: Option<i64>, at: Time, fold: &mut Fold<'_>) {
        fold.count(counts::UNNAMED_STEP);
        if let Some(gathering) = self.gathering_of(turn) {
            gathering.unnamed_steps += 1;
            gathering.note(SpanEvent {
                name: semconv::EVENT_STEP_UNNAMED.to_owned(),
                at_ns: at.ns,
                attributes: event_attributes(step, None),
            });
        }
    }

    /// A start whose end was not observed: its turn tells, if it still can.
    fn give_up(&mut self, waiting: Waiting, fold: &mut Fold<'_>) {
        if waiting.reported {
            return;
        }
        fold.count(counts::UNOBSERVED_TOOL);
        let Some(gathering) = self.gathering_of(waiting.turn) else { return };
        gathering.note(SpanEvent {
            name: semconv::EVENT_TOOL_UNOBSERVED.to_owned(),
            at_ns: waiting.start.ns,
            attributes: event_attributes(waiting.step, waiting.tool.as_deref()),
        });
        if let Some(tool) = waiting.tool.filter(|_| gathering.unobserved.len() < MAX_UNOBSERVED) {
            gathering.unobserved.push(tool);
        }
    }

    /// Lets a turn that ends tell of the starts that wait; they stay joinable.
    pub(super) fn report_waiting(&mut self, turn: i64, fold: &mut Fold<'_>) {
        let waiting: Vec<Waiting> = self
            .joins
            .unreported(turn)
            .map(|waiting| {
                let before = waiting.clone();
                waiting.reported = true;
                before
            })
            .collect();
        for start in waiting {
            self.give_up(start, fold);
        }
    }

    /// The newest known turn that began with fewer steps; else the open one, else the oldest; a partial one if none.
    fn turn_of_step(&mut self, step: Option<i64>, seen: Seen<'_>, fold: &mut Fold<'_>) -> i64 {
        let fits = |first: Option<i64>| first.zip(step).is_none_or(|(first, step)| first < step);
        let newest = self.turns.iter().rev().find(|turn| fits(turn.first_steps)).map(|turn| turn.index);
        newest
            .or_else(|| self.open_turn())
            .or_else(|| self.turns.front().map(|turn| turn.index))
            .unwrap_or_else(|| self.begin_turn(Beginning::Partial, None, seen, fold))
    }
}
