//! One turn: model calls, then `Stop`, its continuations and what outlives it.
//!
//! Order measured on 1.1.7 and 1.4.2: `SessionStart`, `PreInvocation`, tools, `PostInvocation`, …, `Stop`.

use std::sync::{Mutex, PoisonError};

use super::conversation::{Player, fresh_id};
use super::stage::{Cut, Stage};
use super::tool::Spurious;
use crate::event::Event;
use crate::payload::Body;
use crate::reply::Termination;
use crate::report::TurnEnd;
use crate::script::{Background, Ending, Item, ModelCall, Turn, no_tool_call};

/// How many model calls without a script `force_continue` may add to one execution; agy's own number is not published.
const MAX_FORCED: u32 = 8;

/// How a turn ended and the reason.
type Ended = (TurnEnd, String);

impl Player {
    pub(super) fn turn(&mut self, turn: &Turn) -> Result<Ended, Cut> {
        (self.continued, self.invocation) = (0, 0);
        self.stage.pause(turn.pause_ms)?;
        self.take_steps(turn.steps_before);
        let mut user_step = None;
        if let Some(prompt) = &turn.prompt {
            self.last_input.clone_from(prompt);
            user_step = Some(self.take_steps(1));
        }
        self.start_session()?;
        let cut_short = !matches!(turn.ending, Ending::Stop { .. } | Ending::NoStop);
        let forced_reason = self.execution(&turn.calls, user_step, cut_short)?;
        if let Some(reason) = forced_reason {
            return self.stop(turn, reason.to_owned(), "", None);
        }
        match &turn.ending {
            Ending::Stop { reason, error, background } => self.stop(turn, reason.clone(), error, background.as_ref()),
            Ending::ModelError { message } => self.stop(turn, "ERROR".to_owned(), message, None),
            Ending::Cancelled => self.stop(turn, "USER_CANCELED".to_owned(), "", None),
            Ending::NoStop => Ok((TurnEnd::NoStop, String::new())),
            Ending::Escape => Ok((TurnEnd::Escaped, String::new())),
            Ending::Killed { signal } => Stage::kill(*signal),
        }
    }

    /// `Stop`, again after each continuation, and again when background work is done.
    fn stop(
        &mut self,
        turn: &Turn,
        mut reason: String,
        error: &str,
        mut background: Option<&Background>,
    ) -> Result<Ended, Cut> {
        let mut error = error;
        loop {
            let fully_idle = background.is_none() && !self.has_background();
            let body = Body::Stop { execution_num: self.continued, reason: &reason, error, fully_idle };
            let effect = self.fire(Event::Stop, None, &body)?;
            if effect.goes_on && self.continued < self.stage.behaviour.max_continues {
                let calls = usize::try_from(self.continued).ok().and_then(|past| turn.continuations.get(past));
                self.continued += 1;
                // The hook's reason enters the conversation.
                self.take_steps(1);
                if self.stage.behaviour.continue_restarts_invocations {
                    self.invocation = 0;
                }
                let forced_reason = self.execution(calls.map_or(&[], Vec::as_slice), None, false)?;
                reason = forced_reason.map_or_else(no_tool_call, str::to_owned);
                error = "";
            } else if fully_idle {
                return Ok((TurnEnd::Stopped, reason));
            } else {
                self.join_background()?;
                if let Some(work) = background.take() {
                    self.stage.pause(work.run_ms)?;
                    self.take_steps(work.steps);
                    if !work.calls.is_empty() {
                        self.invocation = 0;
                        self.execution(&work.calls, None, false)?;
                    }
                }
            }
        }
    }

    /// The model calls from one start of the loop to its end; the termination reason, if hooks forced one.
    fn execution(
        &mut self,
        calls: &[ModelCall],
        mut user_step: Option<u64>,
        cut_short: bool,
    ) -> Result<Option<&'static str>, Cut> {
        let plain = ModelCall::default();
        self.execution_id = fresh_id();
        let (mut calls, mut forced) = (calls.iter(), 0);
        let mut call = calls.next().unwrap_or(&plain);
        loop {
            let next = calls.next();
            let termination = self.model_call(call, user_step.take(), cut_short && next.is_none())?;
            call = match (termination, next) {
                (Termination::Terminate, _) => return Ok(Some("TERMINAL_CUSTOM_HOOK")),
                (_, Some(next)) => next,
                (Termination::None, None) => return Ok(None),
                (Termination::ForceContinue, None) if forced == MAX_FORCED => {
                    return Ok(Some("MAX_FORCED_INVOCATIONS"));
                }
                (Termination::ForceContinue, None) => {
                    forced += 1;
                    &plain
                }
            };
        }
    }

    fn model_call(&mut self, call: &ModelCall, user_step: Option<u64>, cut_short: bool) -> Result<Termination, Cut> {
        let (invocation_num, initial_num_steps) = (self.invocation, self.next_step());
        self.invocation += 1;
        if let Some(model) = &call.model {
            self.model.clone_from(model);
        }
        let effect =
            self.fire(Event::PreInvocation, None, &Body::PreInvocation { invocation_num, initial_num_steps })?;
        self.take_steps(effect.inject);
        let planner = self.take_steps(1);
        let spurious = self.stage.behaviour.profile.fires_post_tool_use_on_any_step();
        if let Some(step) = user_step.filter(|_| spurious) {
            self.post_without_tool(step)?;
        }
        self.stage.pause(call.think_ms)?;
        let planner: Spurious = Mutex::new(spurious.then_some(planner));
        for item in &call.items {
            match item {
                Item::Tool(tool) => self.tool(tool, &planner)?,
                Item::Parallel(group) => self.parallel(group, &planner)?,
                Item::PauseMs(ms) => self.stage.pause(*ms)?,
                Item::Steps(count) => _ = self.take_steps(*count),
                Item::Kill(signal) => Stage::kill(*signal),
            }
        }
        if let Some(step) = planner.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.post_without_tool(step)?;
        }
        if cut_short {
            return Ok(Termination::None);
        }
        let body =
            Body::PostInvocation { invocation_num, initial_num_steps, output: &call.output, thinking: &call.thinking };
        let effect = self.fire(Event::PostInvocation, None, &body)?;
        self.take_steps(effect.inject);
        Ok(effect.termination)
    }

    /// The `PostToolUse` of a step that is no tool, as before 1.1.9.
    pub(super) fn post_without_tool(&self, step_idx: u64) -> Result<(), Cut> {
        self.fire(Event::PostToolUse, None, &Body::PostToolUse { step_idx, tool: None, error: "", result: "" })?;
        Ok(())
    }
}
