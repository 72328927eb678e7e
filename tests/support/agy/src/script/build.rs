//! Builders, so that a Rust test can write a script down as it would tell it.
//!
//! Sugar over the public fields of `script`: nothing can be built here that JSON cannot say.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::{
    Background, Conversation, Ending, Interleave, Item, ModelCall, Outcome, Parallel, Permission, Schedule, Script,
    Signal, Tool, Turn, no_tool_call,
};
use crate::behaviour::Behaviour;

impl Script {
    /// A script without conversations, for the newest measured agy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A script of one conversation.
    #[must_use]
    pub fn of(conversation: Conversation) -> Self {
        Self::new().with(conversation)
    }

    /// Adds a conversation.
    #[must_use]
    pub fn with(mut self, conversation: Conversation) -> Self {
        self.conversations.push(conversation);
        self
    }

    /// Sets the agy that is played.
    #[must_use]
    pub fn behaviour(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }

    /// Sets how conversations share the process.
    #[must_use]
    pub fn interleave(mut self, interleave: Interleave) -> Self {
        self.interleave = interleave;
        self
    }

    /// Lets the program kill itself after so many milliseconds, wherever it is.
    #[must_use]
    pub fn kill_after_ms(mut self, ms: u64) -> Self {
        self.kill_after_ms = Some(ms);
        self
    }

    /// The script as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // `json!` cannot fail here: every map key of these types is a string.
        json!(self).to_string()
    }

    /// Writes the script to a file.
    ///
    /// # Errors
    /// As `std::fs::write`.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, self.to_json())
    }
}

impl Conversation {
    /// A new conversation under a fresh id.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets its UUID.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets its model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Makes it an existing conversation of so many steps; [`crate::report::Totals::conversations`] tells how many a run left.
    #[must_use]
    pub fn resume_at(mut self, steps: u64) -> Self {
        self.resume_at = Some(steps);
        self
    }

    /// Waits so many milliseconds before its first turn.
    #[must_use]
    pub fn pause_ms(mut self, ms: u64) -> Self {
        self.pause_ms = ms;
        self
    }

    /// Adds a turn.
    #[must_use]
    pub fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }
}

impl Turn {
    /// A turn that a user's prompt starts and an ordinary Stop ends.
    #[must_use]
    pub fn prompt(text: impl Into<String>) -> Self {
        Self { prompt: Some(text.into()), ..Self::default() }
    }

    /// An execution that a background message starts, after so many new steps.
    #[must_use]
    pub fn from_background(steps_before: u64) -> Self {
        Self { steps_before, ..Self::default() }
    }

    /// Adds a model call.
    #[must_use]
    pub fn call(mut self, call: ModelCall) -> Self {
        self.calls.push(call);
        self
    }

    /// Adds a model call that asks for one tool.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.call(ModelCall::new().tool(tool))
    }

    /// Adds a model call that only answers.
    #[must_use]
    pub fn answer(self) -> Self {
        self.call(ModelCall::new())
    }

    /// Sets the model calls after the next `continue` of a Stop hook.
    #[must_use]
    pub fn continuation(mut self, calls: Vec<ModelCall>) -> Self {
        self.continuations.push(calls);
        self
    }

    /// Sets how it ends.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Waits so many milliseconds before it.
    #[must_use]
    pub fn pause_ms(mut self, ms: u64) -> Self {
        self.pause_ms = ms;
        self
    }
}

impl ModelCall {
    /// A model call without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds anything.
    #[must_use]
    pub fn item(mut self, item: Item) -> Self {
        self.items.push(item);
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.item(Item::Tool(tool))
    }

    /// Adds tools that run at the same time.
    #[must_use]
    pub fn parallel(self, schedule: Schedule, tools: Vec<Tool>) -> Self {
        self.item(Item::Parallel(Parallel { schedule, tools }))
    }

    /// Adds a pause.
    #[must_use]
    pub fn pause_ms(self, ms: u64) -> Self {
        self.item(Item::PauseMs(ms))
    }

    /// Adds steps without hooks.
    #[must_use]
    pub fn steps(self, steps: u64) -> Self {
        self.item(Item::Steps(steps))
    }

    /// Adds the program's end by this signal.
    #[must_use]
    pub fn kill(self, signal: Signal) -> Self {
        self.item(Item::Kill(signal))
    }

    /// Sets the model from here on.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Waits so many milliseconds between `PreInvocation` and the first tool.
    #[must_use]
    pub fn think_ms(mut self, ms: u64) -> Self {
        self.think_ms = ms;
        self
    }
}

impl Tool {
    /// A tool that runs without error.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), args: json!({}), ..Self::default() }
    }

    /// A shell command, with the arguments a model gives (tool catalogue, 1.0.1 to 1.4.2).
    #[must_use]
    pub fn run_command(command: &str, cwd: &str) -> Self {
        Self::new("run_command").args(json!({"CommandLine": command, "Cwd": cwd, "WaitMsBeforeAsync": 1000}))
    }

    /// Sets its arguments.
    #[must_use]
    pub fn args(mut self, args: Value) -> Self {
        self.args = args;
        self
    }

    /// Lets it end with an error.
    #[must_use]
    pub fn fails(mut self, error: impl Into<String>) -> Self {
        self.error = error.into();
        self
    }

    /// Sets what becomes of it.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// Sets what agy's own permission rules say.
    #[must_use]
    pub fn permission(mut self, permission: Permission) -> Self {
        self.permission = permission;
        self
    }

    /// Lets it run so many milliseconds.
    #[must_use]
    pub fn run_ms(mut self, ms: u64) -> Self {
        self.run_ms = ms;
        self
    }

    /// Waits so many milliseconds before it.
    #[must_use]
    pub fn pause_ms(mut self, ms: u64) -> Self {
        self.pause_ms = ms;
        self
    }

    /// Lets it run a conversation of its own and wait for it.
    #[must_use]
    pub fn subagent(mut self, conversation: Conversation) -> Self {
        self.subagent = Some(Box::new(conversation));
        self
    }

    /// Lets that conversation go on after the tool.
    #[must_use]
    pub fn in_background(mut self) -> Self {
        self.background = true;
        self
    }
}

impl Ending {
    /// A Stop with this reason.
    #[must_use]
    pub fn stop(reason: impl Into<String>) -> Self {
        Self::Stop { reason: reason.into(), error: String::new(), background: None }
    }

    /// A Stop with `fullyIdle` false, and another when this work is done.
    #[must_use]
    pub fn with_background(background: Background) -> Self {
        Self::Stop { reason: no_tool_call(), error: String::new(), background: Some(background) }
    }
}
