//! The script: what the user, the model and the tools do. It says nothing about hooks; those are what it makes fire.
//!
//! The JSON form is described in the crate's README. Unknown keys are refused: a misspelt key in a test would otherwise
//! play something else than the test says. The builders are in `script::build`.

mod build;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::behaviour::Behaviour;

/// A whole run of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Script {
    /// The agy that is played; flags of the command line win over it.
    pub behaviour: Behaviour,
    /// How several conversations share the process.
    pub interleave: Interleave,
    /// The conversations.
    pub conversations: Vec<Conversation>,
    /// After so many milliseconds the program sends itself SIGKILL, wherever it is, even inside a hook.
    pub kill_after_ms: Option<u64>,
}

/// How several conversations share the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Interleave {
    /// One after the other.
    #[default]
    Sequential,
    /// By turns, one event each: always the same order.
    Alternate,
    /// Each on its own thread, in no order.
    Concurrent,
}

/// One conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Conversation {
    /// Its UUID; a fresh one if absent.
    pub id: Option<String>,
    /// The model; a model call can name another.
    pub model: Option<String>,
    /// The number of steps it already has: it is resumed, so no `SessionStart` fires and numbering goes on.
    pub resume_at: Option<u64>,
    /// Milliseconds before its first turn.
    pub pause_ms: u64,
    /// What a subagent is called; only sent with `unprovenFields`.
    pub agent_name: Option<String>,
    /// Its turns.
    pub turns: Vec<Turn>,
}

/// One turn: a prompt and what follows until agy waits again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Turn {
    /// Milliseconds before it.
    pub pause_ms: u64,
    /// Steps that enter the trajectory before it without a hook, as results of background work do.
    pub steps_before: u64,
    /// What the user wrote; absent for an execution that a background message started (seen on 1.2.6).
    pub prompt: Option<String>,
    /// The model calls; none means one call without tools.
    pub calls: Vec<ModelCall>,
    /// The model calls after the first, second, … `continue` of a Stop hook; where absent, one call without tools.
    pub continuations: Vec<Vec<ModelCall>>,
    /// How it ends.
    pub ending: Ending,
}

/// One model call and the tools it asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ModelCall {
    /// The model from here on, as after `/model`.
    pub model: Option<String>,
    /// Milliseconds from `PreInvocation` to the first tool.
    pub think_ms: u64,
    /// What happens in it, in order.
    pub items: Vec<Item>,
    /// The model's text; only sent with `unprovenFields`.
    pub output: String,
    /// The model's thinking; only sent with `unprovenFields`.
    pub thinking: String,
}

/// What happens inside a model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Item {
    /// One tool; the next item waits for it.
    Tool(Tool),
    /// Tools that run at the same time.
    Parallel(Parallel),
    /// Milliseconds in which nothing happens.
    PauseMs(u64),
    /// Steps that enter the trajectory without a hook.
    Steps(u64),
    /// The program sends itself this signal and goes no further.
    Kill(Signal),
}

/// Tools that run at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Parallel {
    /// How their hooks follow each other.
    pub schedule: Schedule,
    /// The tools, in the order of their steps.
    pub tools: Vec<Tool>,
}

/// How the hooks of parallel tools follow each other. No capture exists; all three are possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Schedule {
    /// Each tool on a thread of its own; hook processes overlap.
    #[default]
    Threads,
    /// One hook at a time: Pre 1, Pre 2, Post 2, Post 1.
    Nested,
    /// One hook at a time: Pre 1, Pre 2, Post 1, Post 2.
    Queued,
}

/// One tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Tool {
    /// The model-facing name, which the matcher sees (measured 1.2.6).
    pub name: String,
    /// The arguments; an object.
    pub args: Value,
    /// What becomes of it if no hook denies it.
    pub outcome: Outcome,
    /// The error it ends with; empty for none. A failing command ends with none (inferred from transcripts).
    pub error: String,
    /// Milliseconds before `PreToolUse`.
    pub pause_ms: u64,
    /// Milliseconds the user takes to answer a question.
    pub answer_ms: u64,
    /// Milliseconds it runs.
    pub run_ms: u64,
    /// What agy's own permission rules say about it.
    pub permission: Permission,
    /// Its result; only sent with `unprovenFields`.
    pub result: String,
    /// The conversation it starts, in the same process and under an id of its own.
    pub subagent: Option<Box<Conversation>>,
    /// Whether that conversation goes on while the tool ends and the turn stops with `fullyIdle` false.
    pub background: bool,
}

/// What becomes of a tool that no hook denies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It runs.
    #[default]
    Runs,
    /// Esc at the dialog: no hook follows, the turn is over (measured 1.4.7).
    Escaped,
    /// "No, deny" at the dialog: no hook follows, the turn is over (measured 1.4.7).
    UserDenied,
    /// agy refuses the call before any hook; its step counts.
    Rejected,
    /// agy's own argument check fails after `PreToolUse`: no `PostToolUse`, the turn goes on (1.4.2).
    FailedCheck,
    /// The program sends itself SIGKILL while the tool runs.
    Killed,
}

/// What agy's own permission rules say about a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Permission {
    /// A mode that asks nothing, as `--dangerously-skip-permissions`; a hook's `ask` still asks (measured 1.1.12, 1.2.6).
    #[default]
    AutoApproved,
    /// An Always-Allow grant; only a hook's `force_ask` still asks.
    Granted,
    /// agy asks.
    Asks,
}

/// How a turn ends. All but `stop` and `noStop` leave the last model call without its `PostInvocation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Ending {
    /// `Stop` fires.
    Stop {
        /// The termination reason.
        #[serde(default = "no_tool_call")]
        reason: String,
        /// The error text.
        #[serde(default)]
        error: String,
        /// Work that goes on: this `Stop` says `fullyIdle` false, and another follows.
        #[serde(default)]
        background: Option<Background>,
    },
    /// `PostInvocation` fires, `Stop` does not (vendor issue 770; before 1.1.10).
    NoStop,
    /// The model call fails: `Stop` with `ERROR` and this text.
    ModelError {
        /// The error text.
        message: String,
    },
    /// Esc while the model answers, and `Stop` says `USER_CANCELED` (1.4.2).
    Cancelled,
    /// Esc while the model answers, and nothing fires (1.4.7).
    Escape,
    /// The program sends itself this signal.
    Killed {
        /// The signal.
        #[serde(default)]
        signal: Signal,
    },
}

/// Work that outlives the first `Stop` of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Background {
    /// Milliseconds it takes.
    pub run_ms: u64,
    /// Steps it adds without a hook.
    pub steps: u64,
    /// The model calls it sets off, numbered from 0; none means that only the second `Stop` follows.
    pub calls: Vec<ModelCall>,
}

/// A signal the program sends itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// SIGKILL: nothing more is done or written.
    #[default]
    Kill,
    /// SIGTERM.
    Term,
    /// SIGINT, as Ctrl-C.
    Int,
}

/// The reason of an ordinary `Stop`, measured on many versions.
pub(crate) fn no_tool_call() -> String {
    "NO_TOOL_CALL".to_owned()
}

impl Default for Ending {
    fn default() -> Self {
        Self::Stop { reason: no_tool_call(), error: String::new(), background: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_short_script_gets_the_defaults() {
        let script: Script = serde_json::from_value(json!({
            "behaviour": {"profile": "1.1.7"},
            "conversations": [{"turns": [
                {"prompt": "hi", "calls": [{"items": [{"tool": {"name": "list_dir"}}, {"pauseMs": 3}]}]},
                {"ending": {"kind": "stop", "background": {"runMs": 5}}},
                {"ending": {"kind": "killed"}}
            ]}]
        }))
        .unwrap();
        let turns = &script.conversations[0].turns;
        assert_eq!(turns[0].ending, Ending::default());
        assert_eq!(turns[0].calls[0].items[1], Item::PauseMs(3));
        assert_eq!(turns[1].prompt, None);
        assert_eq!(turns[2].ending, Ending::Killed { signal: Signal::Kill });
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        for text in [
            r#"{"conversation": []}"#,
            r#"{"conversations": [{"turns": [{"promt": "hi"}]}]}"#,
            r#"{"conversations": [{"turns": [{"ending": {"kind": "stop", "reson": ""}}]}]}"#,
            r#"{"conversations": [{"turns": [{"calls": [{"items": [{"tol": {}}]}]}]}]}"#,
        ] {
            assert!(serde_json::from_str::<Script>(text).is_err(), "accepted: {text}");
        }
    }

    #[test]
    fn what_the_builders_make_reads_back_the_same() {
        let script = Script::new().with(
            Conversation::new()
                .id("7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11")
                .turn(
                    Turn::prompt("hi")
                        .call(ModelCall::new().tool(Tool::new("run_command").args(json!({"CommandLine": "true"})))),
                )
                .turn(Turn::prompt("bye").ending(Ending::ModelError { message: "quota".to_owned() })),
        );
        let read: Script = serde_json::from_str(&script.to_json()).unwrap();
        assert_eq!(read, script);
    }
}
