//! What a hook told us: one host-neutral [`Event`], when and by whom it was captured, and which data settings held then.
//! Holds no content: prompts, arguments, results, error texts and paths have no field here, so they cannot pass.
//! Data only, no I/O; decided in `docs/adr/0002-redact-before-the-spool.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One hook call, reduced to the fields that may leave the hook process by default.
///
/// Every field but the conversation is optional: all of them are missing in some payload of some agy version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// `conversationId`: at most 256 characters, no control characters, not empty.
    pub conversation: String,
    /// `modelName`, absent in agy 1.0.1; may change within a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The product that ran the hook, told by its app-data path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Surface>,
    /// What happened.
    pub action: Action,
}

/// The products that share agy's hook files, by their app-data folder below `.gemini`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// `antigravity-cli`: the terminal program.
    Cli,
    /// `antigravity-ide`: the editor.
    Ide,
    /// `antigravity`: the desktop app, which is dropped unless FI_HOOK_SURFACES names it.
    Desktop,
}

impl Surface {
    /// The word used in FI_HOOK_SURFACES and in `antigravity.surface`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Ide => "ide",
            Self::Desktop => "desktop",
        }
    }
}

/// What happened, by the hook that was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum Action {
    /// The first prompt of a new conversation; not fired on resume (agy 1.4.2, 1.4.7).
    SessionStart,
    /// A model call is about to start.
    PreInvocation(Invocation),
    /// A model call and the tools it asked for have ended.
    PostInvocation(Invocation),
    /// A tool call is about to be judged: approval waits come after this.
    PreToolUse(ToolStep),
    /// A step has ended. Before agy 1.1.9 also fired for steps that are no tool.
    PostToolUse(ToolStep),
    /// An execution has ended.
    Stop(Stop),
}

/// The numbers of a model call; PostInvocation repeats those of its PreInvocation (measured 1.1.12).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// `invocationNum`, from 0 in each execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num: Option<i64>,
    /// `initialNumSteps`: trajectory steps there were before this call; grows over the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_steps: Option<i64>,
}

/// A tool step, before or after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStep {
    /// `stepIdx`: the same before and after (measured 1.1.7, 16 of 16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<i64>,
    /// `toolCall.name`; PostToolUse carries it from 1.1.7 on, the documentation's shape does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether `error` was non-empty. Its text is content.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
}

/// The end of an execution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// `terminationReason` as sent, with or without `EXECUTOR_TERMINATION_REASON_`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `executionNum`: 0 first, counted up when a hook made the agent continue (measured 1.2.7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_num: Option<i64>,
    /// `fullyIdle`: false while background work goes on; another Stop follows then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fully_idle: Option<bool>,
    /// Whether `error` was non-empty. Its text is content.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls skip_serializing_if with a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// When, where and by whom an event was captured; stamped by the hook process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// CLOCK_REALTIME, nanoseconds since 1970.
    pub realtime_ns: u64,
    /// CLOCK_BOOTTIME (macOS: CLOCK_MONOTONIC), nanoseconds; comparable only within one `boot_id`.
    pub boottime_ns: u64,
    /// Names the boot that `boottime_ns` counts from; empty when the system does not tell.
    pub boot_id: String,
    /// The agent's process, where it could be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// Hash of the hook's working folder, which is the folder of the hooks.json that registered it.
    pub registration: u64,
    /// The W3C `traceparent` of the environment: becomes a link of the session root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// The process that ran the hook: the first ancestor that is no shell.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Agent {
    /// Process id in the hook's PID namespace; above 1.
    pub pid: u32,
    /// CLOCK_BOOTTIME of its start, nanoseconds, rounded down to a clock tick: ids are used again, on a busy machine
    /// within a minute.
    #[serde(default)]
    pub started_ns: u64,
    /// Device of the hook's `/proc`, which tells its PID namespace.
    pub namespace: u64,
    /// Whether ANTIGRAVITY_CONVERSATION_ID was set: then any ancestor was taken for the agent, else only a known name.
    pub marked: bool,
}

/// The settings that belong to the data: frozen per conversation when its first event is captured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Resource `service.name`.
    pub service_name: String,
    /// Resource `project_name`.
    pub project_name: String,
    /// The user's OTEL_RESOURCE_ATTRIBUTES, decoded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource: BTreeMap<String, String>,
    /// FI_HOOK_USER_ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}
