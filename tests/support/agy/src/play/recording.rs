//! Plays recorded payloads: each line's payload is written to the hooks byte for byte.
//!
//! Replies count here too: a denied tool's `PostToolUse` is left out, an aborted invocation ends the program. What would
//! need steps nobody recorded (a continued stop, injected steps) only shows in the report.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::seat::Seat;
use super::stage::{Cut, Firing, Stage};
use crate::event::Event;
use crate::permission::{Verdict, verdict};
use crate::reply::Effect;
use crate::report::{Record, ToolRecord, ToolResult, TurnEnd, TurnRecord};
use crate::script::Permission;

/// Recorded events, in order.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The lines.
    pub lines: Vec<RecordedEvent>,
}

/// One recorded event: `{"event": …, "payload": …}`, with `"delayMs"` if time is to pass before it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedEvent {
    /// The event's name; names that agy never fires are passed over.
    pub event: String,
    /// The payload, as it was.
    pub payload: Box<RawValue>,
    /// Milliseconds before it.
    #[serde(default)]
    pub delay_ms: u64,
}

/// A line is not that of a recording.
#[derive(Debug, thiserror::Error)]
#[error("line {line} is not a recorded event: {source}; write {{\"event\": …, \"payload\": …}}")]
pub struct RecordingError {
    line: usize,
    source: serde_json::Error,
}

impl Recording {
    /// Reads a recording; empty lines are passed over.
    ///
    /// # Errors
    /// [`RecordingError`] for the first line that is no recorded event.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let lines = lines.map(|(index, line)| {
            serde_json::from_str(line).map_err(|source| RecordingError { line: index + 1, source })
        });
        Ok(Self { lines: lines.collect::<Result<_, _>>()? })
    }

    /// The recording as text, one event a line.
    #[must_use]
    pub fn to_ndjson(&self) -> String {
        // Cannot fail: strings, a number and JSON that was already parsed.
        self.lines.iter().filter_map(|line| serde_json::to_string(line).ok()).map(|line| line + "\n").collect()
    }

    /// The same events as another conversation: everywhere in the payloads its id takes the place of the recorded one.
    #[must_use]
    pub fn under_id(mut self, id: &str) -> Self {
        for line in &mut self.lines {
            let recorded = Facts::of(&line.payload).conversation;
            let text = if recorded.is_empty() {
                line.payload.get().to_owned()
            } else {
                line.payload.get().replace(&recorded, id)
            };
            if let Ok(payload) = RawValue::from_string(text) {
                line.payload = payload;
            }
        }
        self
    }
}

/// What the stand-in has to know of a recorded payload.
#[derive(Debug, Default)]
struct Facts {
    conversation: String,
    tool: Option<String>,
    step_idx: Option<u64>,
    reason: String,
    error: String,
}

impl Facts {
    fn of(payload: &RawValue) -> Self {
        let value: Value = serde_json::from_str(payload.get()).unwrap_or_default();
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            conversation: text("/conversationId"),
            tool: value.pointer("/toolCall/name").and_then(Value::as_str).map(str::to_owned),
            step_idx: value.pointer("/stepIdx").and_then(Value::as_u64),
            reason: text("/terminationReason"),
            error: text("/error"),
        }
    }
}

/// What was seen so far.
#[derive(Default)]
struct Seen {
    /// The names of tools before which a hook ran, by conversation and step.
    tools: BTreeMap<(String, u64), String>,
    /// The steps whose tool does not run.
    denied: BTreeSet<(String, u64)>,
    /// The number of turns, by conversation.
    turns: BTreeMap<String, usize>,
}

/// Plays a recording; the outcome is in the stage.
pub(crate) fn play(recording: &Recording, stage: &Stage) {
    let mut seen = Seen::default();
    for line in &recording.lines {
        let facts = Facts::of(&line.payload);
        match play_line(line, &facts, stage, &mut seen) {
            Ok(()) => {}
            Err(Cut::Aborted(reason)) => {
                turn(stage, &mut seen, &facts, TurnEnd::Aborted, reason);
                stage.abort();
                return;
            }
            Err(_) => return,
        }
    }
}

fn play_line(line: &RecordedEvent, facts: &Facts, stage: &Stage, seen: &mut Seen) -> Result<(), Cut> {
    stage.pause(line.delay_ms)?;
    let Some(event) = Event::named(&line.event) else { return Ok(()) };
    let step = facts.step_idx.map(|step| (facts.conversation.clone(), step));
    if event == Event::PostToolUse && step.as_ref().is_some_and(|step| seen.denied.contains(step)) {
        return Ok(());
    }
    let known = step.as_ref().and_then(|step| seen.tools.get(step)).cloned();
    let tool = facts.tool.clone().or(known);
    let firing = Firing {
        event,
        conversation: &facts.conversation,
        payload: line.payload.get(),
        tool: tool.as_deref(),
        any_matcher: event == Event::PostToolUse && stage.behaviour.profile.fires_post_tool_use_on_any_step(),
    };
    let effect = stage.fire(&Seat::alone(), &firing)?;
    match (event, step, tool) {
        (Event::PreToolUse, Some(step), Some(tool)) => before_tool(stage, seen, facts, step, tool, &effect),
        (Event::PostToolUse, Some((_, step)), Some(tool)) => {
            tell(stage, facts, step, tool, ToolResult::Ran, facts.error.clone());
        }
        (Event::Stop, _, _) => turn(stage, seen, facts, TurnEnd::Stopped, facts.reason.clone()),
        _ => {}
    }
    Ok(())
}

fn before_tool(stage: &Stage, seen: &mut Seen, facts: &Facts, step: (String, u64), tool: String, effect: &Effect) {
    let (result, reason) = match verdict(&effect.decision, Permission::AutoApproved, &stage.behaviour) {
        Verdict::Run | Verdict::Ask => {
            // A step index that comes back after a denial is another tool.
            seen.denied.remove(&step);
            seen.tools.insert(step, tool);
            return;
        }
        Verdict::SoftDenied => (ToolResult::SoftDenied, String::new()),
        Verdict::Denied(reason) => (ToolResult::Denied, reason),
    };
    tell(stage, facts, step.1, tool, result, reason);
    seen.denied.insert(step);
}

fn tell(stage: &Stage, facts: &Facts, step_idx: u64, name: String, result: ToolResult, reason: String) {
    let record = ToolRecord { conversation: facts.conversation.clone(), step_idx, name, result, reason };
    stage.report.record(&Record::Tool(record));
}

fn turn(stage: &Stage, seen: &mut Seen, facts: &Facts, ended: TurnEnd, reason: String) {
    let number = seen.turns.entry(facts.conversation.clone()).or_default();
    let record = TurnRecord { conversation: facts.conversation.clone(), turn: *number, ended, reason, continued: 0 };
    *number += 1;
    stage.report.record(&Record::Turn(record));
}
