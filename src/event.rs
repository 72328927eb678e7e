//! What a hook told us: one host-neutral [`Event`], when and by whom it was captured, and which data settings held then.
//! Content has one place, [`Content`], and stands there as [`Text`] everywhere behind `redact`; paths have no field.
//! Data only, no I/O; decided in `docs/adr/0002-redact-before-the-spool.md` and `docs/adr/0041-opt-in-content.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::redact::Text;

/// One hook call, reduced to the fields that may leave the hook process; content only where the user asked for it.
///
/// Every field but the conversation is optional: all of them are missing in some payload of some agy version. `C` is
/// what content is: as it came in what a host has read, [`Text`] in what `redact` has passed. Only the latter can be
/// written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event<C = Text> {
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
    /// What was said, asked and answered; None unless the user opted in. In a box, since most events have none.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub told: Option<Box<Told<C>>>,
}

impl<C> Event<C> {
    /// An event without content.
    #[must_use]
    pub const fn new(conversation: String, action: Action) -> Self {
        Self { conversation, model: None, surface: None, action, told: None }
    }

    /// The event without its content and digests.
    #[must_use]
    pub fn bare(&self) -> Self {
        let (model, surface) = (self.model.clone(), self.surface);
        Self { model, surface, ..Self::new(self.conversation.clone(), self.action.clone()) }
    }

    /// Whether two reports are of the same event. Content is not asked: it is of no use for that, and would have to be
    /// kept.
    #[must_use]
    pub fn is_same_report(&self, other: &Self) -> bool {
        (&self.conversation, &self.model, self.surface, &self.action)
            == (&other.conversation, &other.model, other.surface, &other.action)
    }
}

impl Event {
    /// What was said, asked and answered.
    #[must_use]
    pub fn told(&self) -> &Told {
        const NOTHING: &Told = &Told::none();
        self.told.as_deref().unwrap_or(NOTHING)
    }
}

/// What goes beyond names, numbers and times: content, and digests of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told<C = Text> {
    /// What was said, asked and answered.
    #[serde(default = "Content::none", skip_serializing_if = "Content::is_empty")]
    pub content: Content<C>,
    /// Keyed digests of it, if the user asked for them.
    #[serde(default, skip_serializing_if = "Digests::is_empty")]
    pub digests: Digests,
}

impl<C> Told<C> {
    /// Nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self { content: Content::none(), digests: Digests::NONE }
    }

    /// Whether there is nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.content.is_empty() && self.digests.is_empty()
    }

    /// In a box, if there is something.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (!self.is_empty()).then(|| Box::new(self))
    }
}

impl<C> Default for Told<C> {
    fn default() -> Self {
        Self::none()
    }
}

impl<C> From<Content<C>> for Told<C> {
    fn from(content: Content<C>) -> Self {
        Self { content, digests: Digests::NONE }
    }
}

/// The content of an event, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content<C = Text> {
    /// `toolCall.args`.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub args: Option<C>,
    /// `error`.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub error: Option<C>,
    /// `lastUserInput` (measured 1.4.7).
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub prompt: Option<C>,
    /// `modelOutput` (in the protocol of 1.2.5; no version was seen to fill it).
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub output: Option<C>,
    /// `result` (in the protocol of 1.2.5; no version was seen to fill it).
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub result: Option<C>,
}

impl<C> Content<C> {
    /// No content.
    #[must_use]
    pub const fn none() -> Self {
        Self { args: None, error: None, prompt: None, output: None, result: None }
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self { args: None, error: None, prompt: None, output: None, result: None })
    }
}

impl<C> Default for Content<C> {
    fn default() -> Self {
        Self::none()
    }
}

/// `Option::default` would ask for a default of what is not there.
const fn nothing<C>() -> Option<C> {
    None
}

/// Keyed digests, 32 hex digits each: the same for equal content in one state folder, and nothing else is to be had of
/// them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// Of the arguments, without what agy adds to them for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// Of the error text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Digests {
    /// No digest.
    pub const NONE: Self = Self { args: None, error: None };

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self { args: None, error: None })
    }
}

/// Which content the user wants; nothing unless FI_HOOK_CAPTURE_CONTENT says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Tool arguments.
    pub args: bool,
    /// Error texts.
    pub errors: bool,
    /// The user's prompts.
    pub prompts: bool,
    /// The model's output.
    pub outputs: bool,
    /// Tool results.
    pub results: bool,
}

impl Wanted {
    /// All there is.
    pub const ALL: Self = Self { args: true, errors: true, prompts: true, outputs: true, results: true };
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
