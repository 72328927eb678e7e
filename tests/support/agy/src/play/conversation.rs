//! One conversation: its turns, its step numbers, and the events it fires.
//!
//! Numbering (measured 1.1.7 to 1.2.7): a user message is a step; an invocation of `initialNumSteps` N has its planner step N,
//! its tools N+1, N+2, …; what is injected counts too; nothing is reset by a new turn or a resume.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use uuid::Uuid;

use super::seat::Seat;
use super::stage::{Cut, Firing, Stage};
use crate::event::Event;
use crate::payload::{Body, Frame, payload};
use crate::reply::Effect;
use crate::report::{Record, TurnEnd, TurnRecord};
use crate::script::Conversation;

/// The model of a conversation that names none (measured on 1.2.7).
const DEFAULT_MODEL: &str = "gemini-3.8-flash-high";

/// Plays one conversation.
pub(super) struct Player {
    pub(super) stage: Arc<Stage>,
    seat: Arc<Seat>,
    pub(super) id: String,
    parent: String,
    agent_name: String,
    pub(super) model: String,
    pub(super) last_input: String,
    pub(super) execution_id: String,
    started: bool,
    steps: AtomicU64,
    /// The number of the next model call of this execution.
    pub(super) invocation: u64,
    /// How often this turn was continued.
    pub(super) continued: u32,
    background: Mutex<Vec<JoinHandle<Result<(), Cut>>>>,
}

impl Player {
    pub(super) fn new(stage: &Arc<Stage>, seat: Arc<Seat>, script: &Conversation, parent: &str) -> Self {
        Self {
            stage: Arc::clone(stage),
            seat,
            id: script.id.clone().unwrap_or_else(fresh_id),
            parent: parent.to_owned(),
            agent_name: script.agent_name.clone().unwrap_or_default(),
            model: script.model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
            last_input: String::new(),
            execution_id: String::new(),
            started: script.resume_at.is_some(),
            steps: AtomicU64::new(script.resume_at.unwrap_or(0)),
            invocation: 0,
            continued: 0,
            background: Mutex::new(Vec::new()),
        }
    }

    /// Plays all turns. An error means that the program ends.
    pub(super) fn play(mut self, script: &Conversation) -> Result<(), Cut> {
        self.stage.pause(script.pause_ms)?;
        for (number, turn) in script.turns.iter().enumerate() {
            let (ended, reason) = match self.turn(turn) {
                Ok(ended) => ended,
                Err(Cut::Escaped) => (TurnEnd::Escaped, String::new()),
                Err(Cut::UserDenied) => (TurnEnd::UserDenied, String::new()),
                Err(Cut::SoftDenied) => (TurnEnd::SoftDenied, String::new()),
                Err(Cut::Aborted(reason)) => (TurnEnd::Aborted, reason),
                Err(Cut::Halted) => (TurnEnd::Halted, String::new()),
            };
            self.stage.report.steps(&self.id, self.next_step());
            let record =
                TurnRecord { conversation: self.id.clone(), turn: number, ended, reason, continued: self.continued };
            self.stage.report.record(&Record::Turn(record));
            match ended {
                TurnEnd::Aborted => {
                    self.stage.abort();
                    return Err(Cut::Halted);
                }
                TurnEnd::Halted => return Err(Cut::Halted),
                TurnEnd::Stopped | TurnEnd::NoStop | TurnEnd::Escaped | TurnEnd::UserDenied | TurnEnd::SoftDenied => {}
            }
        }
        self.join_background()
    }

    /// `SessionStart`, with the first prompt of a new conversation.
    pub(super) fn start_session(&mut self) -> Result<(), Cut> {
        if !self.started {
            self.started = true;
            let effect = self.fire(Event::SessionStart, None, &Body::SessionStart)?;
            self.take_steps(effect.inject);
        }
        Ok(())
    }

    /// The index of the next step.
    pub(super) fn next_step(&self) -> u64 {
        self.steps.load(Ordering::SeqCst)
    }

    /// Takes so many steps; the index of the first.
    pub(super) fn take_steps(&self, count: u64) -> u64 {
        self.steps.fetch_add(count, Ordering::SeqCst)
    }

    /// Fires one event of this conversation.
    pub(super) fn fire(&self, event: Event, tool: Option<&str>, body: &Body<'_>) -> Result<Effect, Cut> {
        let frame = Frame {
            behaviour: &self.stage.behaviour,
            home: &self.stage.home,
            conversation: &self.id,
            model: &self.model,
            workspace_paths: &self.stage.workspace_paths,
            last_user_input: &self.last_input,
            execution_id: &self.execution_id,
            agent_name: &self.agent_name,
            parent: &self.parent,
        };
        let payload = payload(&frame, body);
        let any_matcher = event == Event::PostToolUse && self.stage.behaviour.profile.fires_post_tool_use_on_any_step();
        self.stage.fire(&self.seat, &Firing { event, conversation: &self.id, payload: &payload, tool, any_matcher })
    }

    /// Plays a subagent's conversation, here or on a thread of its own.
    pub(super) fn subagent(&self, script: &Conversation, in_background: bool) -> Result<(), Cut> {
        let player = Self::new(&self.stage, Arc::clone(&self.seat), script, &self.id);
        if !in_background {
            return player.play(script);
        }
        let script = script.clone();
        let handle = thread::spawn(move || player.play(&script));
        self.background.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        Ok(())
    }

    /// Whether subagents were started that nobody waited for yet.
    pub(super) fn has_background(&self) -> bool {
        !self.background.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Waits for them.
    pub(super) fn join_background(&self) -> Result<(), Cut> {
        let handles = std::mem::take(&mut *self.background.lock().unwrap_or_else(PoisonError::into_inner));
        for handle in handles {
            // A thread that panicked has said so on stderr; the program must not go on as if nothing was.
            handle.join().unwrap_or(Err(Cut::Halted))?;
        }
        Ok(())
    }
}

/// A fresh UUID, as agy gives a new conversation.
pub(super) fn fresh_id() -> String {
    Uuid::new_v4().to_string()
}
