//! The spans that are still open, for `show`: as if they ended at the last event, marked, and never exported.
//! Changes nothing. Pure; decided in `docs/adr/0007-session-root.md`.

use super::attributes::{ToolCall, ToolTiming};
use super::clock::Time;
use super::model_call::CallEnd;
use super::stop::TurnEnd;
use super::{Conversation, Options, SessionSpan};
use crate::semconv;
use crate::span::{Span, Value};

impl Conversation {
    /// The spans that are still open, root first, each marked with `antigravity.open`.
    ///
    /// The root, where there is one, stands for a stored snapshot with the same id. A tool's id is preliminary.
    #[must_use]
    pub fn preview(&self, options: &Options) -> Vec<Span> {
        if !self.is_open() {
            return Vec::new();
        }
        let mut spans = Vec::new();
        if options.session_span != SessionSpan::None {
            spans.push(self.root_span());
        }
        let open = self.turns.back().and_then(|turn| turn.open.as_ref().map(|gathering| (turn, gathering)));
        if let Some((turn, gathering)) = open {
            let end = Time { ns: turn.clock.latest_ns(), clamped: false };
            spans.push(self.turn_span(turn, gathering, TurnEnd::Running, end, options));
            spans.extend(
                gathering.call.iter().map(|call| self.call_span(turn, call, end, CallEnd::Running, None, options)),
            );
            let tools = self.joins.of_turn(turn.index).zip(self.next_tool..).map(|(waiting, ordinal)| {
                let name = waiting.tool.clone().unwrap_or_else(|| "tool".to_owned());
                let (start, told) = (waiting.start, waiting.told.clone());
                let call = ToolCall { name, step: waiting.step, start, end, failed: false, told };
                self.tool_span(turn, &call, ordinal, ToolTiming::Running, options)
            });
            spans.extend(tools);
        }
        for span in &mut spans {
            span.attributes.insert(semconv::OPEN.to_owned(), Value::Bool(true));
        }
        spans
    }
}
