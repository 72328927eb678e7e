//! One tool, or several at the same time: `PreToolUse`, permission, run, `PostToolUse`.
//!
//! A tool that does not run has no `PostToolUse`. Esc and "No, deny" end the turn on the spot (measured 1.4.7).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use super::conversation::Player;
use super::stage::{Cut, Stage};
use crate::event::Event;
use crate::payload::{Body, ToolCall};
use crate::permission::{Verdict, verdict};
use crate::report::{Record, ToolRecord, ToolResult};
use crate::script::{Outcome, Parallel, Schedule, Signal, Tool};

/// The planner step whose `PostToolUse` is still due, on a version that fires it for any step. It comes after the first
/// `PreToolUse`: the steps are told by another thread than the tools (order derived).
pub(super) type Spurious = Mutex<Option<u64>>;

/// A tool on its way.
struct Running<'a> {
    tool: &'a Tool,
    step_idx: u64,
    /// The call as it is executed.
    call: ToolCall,
}

/// What the tools of one group share.
struct Group<'a> {
    planner: &'a Spurious,
    /// Set when one of them ended the turn.
    over: AtomicBool,
}

impl Player {
    /// One tool; the loop waits for it.
    pub(super) fn tool(&self, tool: &Tool, planner: &Spurious) -> Result<(), Cut> {
        let group = Group { planner, over: AtomicBool::new(false) };
        let step_idx = self.take_steps(1);
        self.begin(tool, step_idx, &group)?.map_or(Ok(()), |running| self.finish(&running, &group))
    }

    /// Several tools at the same time. Steps are given in the order of the model's call.
    pub(super) fn parallel(&self, parallel: &Parallel, planner: &Spurious) -> Result<(), Cut> {
        let group = Group { planner, over: AtomicBool::new(false) };
        let tools: Vec<(&Tool, u64)> = parallel.tools.iter().map(|tool| (tool, self.take_steps(1))).collect();
        if parallel.schedule == Schedule::Threads {
            return self.on_threads(&tools, &group);
        }
        let mut running = Vec::new();
        for (tool, step_idx) in tools {
            running.extend(self.begin(tool, step_idx, &group)?);
        }
        if parallel.schedule == Schedule::Nested {
            running.reverse();
        }
        running.iter().try_for_each(|running| self.finish(running, &group))
    }

    fn on_threads(&self, tools: &[(&Tool, u64)], group: &Group<'_>) -> Result<(), Cut> {
        let outcomes: Vec<Result<(), Cut>> = thread::scope(|scope| {
            let threads: Vec<_> = tools
                .iter()
                .map(|(tool, step_idx)| {
                    scope.spawn(|| {
                        let begun = self.begin(tool, *step_idx, group);
                        let outcome =
                            begun.and_then(|running| running.map_or(Ok(()), |running| self.finish(&running, group)));
                        if outcome.is_err() {
                            group.over.store(true, Ordering::SeqCst);
                        }
                        outcome
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Cut::Halted))).collect()
        });
        outcomes.into_iter().collect()
    }

    /// Up to the moment it runs; `None` if it does not and the turn goes on.
    fn begin<'a>(&self, tool: &'a Tool, step_idx: u64, group: &Group<'_>) -> Result<Option<Running<'a>>, Cut> {
        self.stage.pause(tool.pause_ms)?;
        let told = |result, reason: &str| self.tell(tool, step_idx, result, reason);
        if group.over.load(Ordering::SeqCst) {
            told(ToolResult::Interrupted, "");
            return Ok(None);
        }
        if tool.outcome == Outcome::Rejected {
            told(ToolResult::Rejected, "");
            return Ok(None);
        }
        let mut call = ToolCall { name: tool.name.clone(), args: tool.args.clone() };
        let effect = self.fire(Event::PreToolUse, Some(&tool.name), &Body::PreToolUse { step_idx, tool: &call })?;
        let planner = group.planner.lock().unwrap_or_else(PoisonError::into_inner).take();
        planner.map_or(Ok(()), |step| self.post_without_tool(step))?;
        let verdict = verdict(&effect.decision, tool.permission, &self.stage.behaviour);
        match verdict {
            Verdict::Denied(reason) => {
                told(ToolResult::Denied, &reason);
                return Ok(None);
            }
            Verdict::SoftDenied => {
                told(ToolResult::SoftDenied, "");
                return Err(Cut::SoftDenied);
            }
            Verdict::Ask => self.stage.pause(tool.answer_ms)?,
            // The script has the user at a dialog whatever the rules say.
            Verdict::Run if matches!(tool.outcome, Outcome::Escaped | Outcome::UserDenied) => {
                self.stage.pause(tool.answer_ms)?;
            }
            Verdict::Run => {}
        }
        match tool.outcome {
            Outcome::Escaped => {
                told(ToolResult::Escaped, "");
                Err(Cut::Escaped)
            }
            Outcome::UserDenied => {
                told(ToolResult::UserDenied, "");
                Err(Cut::UserDenied)
            }
            Outcome::FailedCheck => {
                told(ToolResult::FailedCheck, "");
                Ok(None)
            }
            Outcome::Runs | Outcome::Killed | Outcome::Rejected => {
                if let Value::Object(args) = &mut call.args {
                    args.extend(effect.overwrite);
                }
                Ok(Some(Running { tool, step_idx, call }))
            }
        }
    }

    /// From the moment it runs.
    fn finish(&self, running: &Running<'_>, group: &Group<'_>) -> Result<(), Cut> {
        let Running { tool, step_idx, call } = running;
        self.stage.pause(tool.run_ms)?;
        if tool.outcome == Outcome::Killed {
            Stage::kill(Signal::Kill);
        }
        if let Some(subagent) = &tool.subagent {
            self.subagent(subagent, tool.background)?;
        }
        if group.over.load(Ordering::SeqCst) {
            self.tell(tool, *step_idx, ToolResult::Interrupted, "");
            return Ok(());
        }
        let body =
            Body::PostToolUse { step_idx: *step_idx, tool: Some(call), error: &tool.error, result: &tool.result };
        self.fire(Event::PostToolUse, Some(&tool.name), &body)?;
        self.tell(tool, *step_idx, ToolResult::Ran, &tool.error);
        Ok(())
    }

    fn tell(&self, tool: &Tool, step_idx: u64, result: ToolResult, reason: &str) {
        let record = ToolRecord {
            conversation: self.id.clone(),
            step_idx,
            name: tool.name.clone(),
            result,
            reason: reason.to_owned(),
        };
        self.stage.report.record(&Record::Tool(record));
    }
}
