//! Every attribute key once: its type, where it stands, when, which convention it comes from, who reads it.
//! `docs/attributes.md` is rendered from this table and a test keeps the two equal. Data only.
//! Decided in `docs/adr/0009-own-attribute-table.md`.

use crate::span::Role;

/// Where an attribute can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The resource that all spans of a conversation share.
    Resource,
    /// The session root.
    Session,
    /// A turn.
    Turn,
    /// A model call.
    ModelCall,
    /// A tool call.
    Tool,
    /// A span event.
    Event,
    /// A span link.
    Link,
}

impl Place {
    /// The heading used in `docs/attributes.md`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Session => "session",
            Self::Turn => "turn",
            Self::ModelCall => "model call",
            Self::Tool => "tool",
            Self::Event => "span event",
            Self::Link => "span link",
        }
    }
}

impl From<Role> for Place {
    fn from(role: Role) -> Self {
        match role {
            Role::Session => Self::Session,
            Role::Turn => Self::Turn,
            Role::ModelCall => Self::ModelCall,
            Role::Tool => Self::Tool,
        }
    }
}

/// The type of an attribute's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// A list of strings.
    Texts,
    /// A whole number.
    Int,
    /// True or false; marks are left out unless true.
    Bool,
    /// A string that is content: there only if the user opted in, and gone from the store once it is delivered.
    Content,
}

impl Kind {
    /// The word used in `docs/attributes.md`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Texts => "string[]",
            Self::Int => "int",
            Self::Bool => "bool",
            Self::Content => "string, content",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The attribute key as exported.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// Where it can stand.
    pub places: &'static [Place],
    /// When it is there.
    pub when: &'static str,
    /// The convention it belongs to, its requirement level there, and that convention's stability.
    pub convention: &'static str,
    /// The back ends that give it a meaning of its own.
    pub read_by: &'static str,
    /// One line for the reader of a trace.
    pub doc: &'static str,
}

const SPANS: &[Place] = &[Place::Session, Place::Turn, Place::ModelCall, Place::Tool];
const AGENTS: &[Place] = &[Place::Session, Place::Turn];
const MODELS: &[Place] = &[Place::Session, Place::Turn, Place::ModelCall];
const IN_TURN: &[Place] = &[Place::Turn, Place::ModelCall, Place::Tool];
const OPERATIONS: &[Place] = IN_TURN;
const RESOURCE: &[Place] = &[Place::Resource];
const SESSION: &[Place] = &[Place::Session];
const TURN: &[Place] = &[Place::Turn];
const CALL: &[Place] = &[Place::ModelCall];
const TOOL: &[Place] = &[Place::Tool];

macro_rules! keys {
    ($($id:ident = $name:literal, $kind:ident, $places:expr, $when:literal, $convention:literal, $read_by:literal, $doc:literal;)+) => {
        $(#[doc = $doc] pub const $id: &str = $name;)+

        /// All keys, in the order of the documentation.
        pub const KEYS: &[Key] = &[$(Key {
            name: $name, kind: Kind::$kind, places: $places, when: $when, convention: $convention, read_by: $read_by, doc: $doc,
        },)+];
    };
}

keys! {
    SERVICE_NAME = "service.name", Text, RESOURCE, "always", "OTel (required, stable)", "Jaeger, Future AGI", "The service: `antigravity-cli` unless OTEL_SERVICE_NAME says otherwise; frozen per conversation.";
    PROJECT_NAME = "project_name", Text, RESOURCE, "always", "Future AGI (required)", "Future AGI", "The project that the trace is filed under; frozen per conversation.";
    PROJECT_TYPE = "project_type", Text, RESOURCE, "always", "Future AGI", "Future AGI", "Always `observe`: only then an end user is told from `user.id`.";
    OPENINFERENCE_PROJECT_NAME = "openinference.project.name", Text, RESOURCE, "always", "OpenInference", "Phoenix", "The same project, for Phoenix.";
    FI_SEMCONV = "fi.semconv", Text, RESOURCE, "always", "Future AGI", "Future AGI", "Always `otel_genai`: the conventions these spans follow.";
    TELEMETRY_DISTRO_NAME = "telemetry.distro.name", Text, RESOURCE, "always", "OTel (recommended, stable)", "", "The name of this program.";
    TELEMETRY_DISTRO_VERSION = "telemetry.distro.version", Text, RESOURCE, "always", "OTel (recommended, stable)", "", "The version of this program.";

    FI_SPAN_KIND = "fi.span.kind", Text, SPANS, "always", "Future AGI", "Future AGI", "CHAIN, AGENT, LLM or TOOL.";
    OPENINFERENCE_SPAN_KIND = "openinference.span.kind", Text, SPANS, "always", "OpenInference (required)", "Phoenix, Langfuse, Future AGI", "CHAIN, AGENT, LLM or TOOL.";
    OPERATION_NAME = "gen_ai.operation.name", Text, OPERATIONS, "always", "GenAI (required, development)", "Langfuse, Phoenix, Future AGI", "`invoke_agent`, `chat` or `execute_tool`.";
    SESSION_ID = "session.id", Text, SPANS, "always", "OTel (opt-in, development), OpenInference", "Future AGI, Phoenix, Langfuse", "The conversation id of agy.";
    CONVERSATION_ID = "gen_ai.conversation.id", Text, SPANS, "always", "GenAI (if available, development)", "Langfuse, Phoenix", "The conversation id of agy.";
    USER_ID = "user.id", Text, SPANS, "if FI_HOOK_USER_ID is set", "OTel (opt-in, development), OpenInference", "Future AGI, Phoenix, Langfuse", "Who uses the agent, as configured.";
    GEN_AI_AGENT_NAME = "gen_ai.agent.name", Text, AGENTS, "always", "GenAI (if available, development)", "", "Always `antigravity`.";
    AGENT_NAME = "agent.name", Text, AGENTS, "always", "OpenInference", "Phoenix", "Always `antigravity`.";
    PROVIDER_NAME = "gen_ai.provider.name", Text, CALL, "always", "GenAI (required, development)", "Future AGI, Phoenix", "Always `gcp.gen_ai`: agy does not tell which back end served the model.";
    REQUEST_MODEL = "gen_ai.request.model", Text, MODELS, "if agy tells it", "GenAI (if available, development)", "Future AGI, Langfuse", "The model: of this call; the turn's first; the session's newest.";
    LLM_MODEL_NAME = "llm.model_name", Text, CALL, "if agy tells it", "OpenInference", "Phoenix, Future AGI", "The model of this call.";
    LLM_PROVIDER = "llm.provider", Text, CALL, "always", "OpenInference", "Phoenix", "Always `google`.";
    GEN_AI_TOOL_NAME = "gen_ai.tool.name", Text, &[Place::Tool, Place::Event], "always on a tool; on an event if told", "GenAI (required, development)", "Langfuse, Phoenix", "The tool's name as agy gives it; `call_mcp_tool` for MCP tools called through the dispatcher.";
    TOOL_NAME = "tool.name", Text, TOOL, "always", "OpenInference", "Phoenix", "The same.";
    GEN_AI_TOOL_CALL_ID = "gen_ai.tool.call.id", Text, TOOL, "if the step is numbered", "GenAI (recommended, development)", "", "`step-` and the step's index.";
    TOOL_ID = "tool.id", Text, TOOL, "if the step is numbered", "OpenInference", "Phoenix", "The same.";
    GEN_AI_TOOL_TYPE = "gen_ai.tool.type", Text, TOOL, "always", "GenAI (recommended, development)", "", "Always `function`.";
    ERROR_TYPE = "error.type", Text, &[Place::Turn, Place::Tool], "on an error", "OTel (on error, stable)", "", "Turn: the termination reason in lower case, without its prefix. Tool: `tool_error`.";

    SURFACE = "antigravity.surface", Text, SPANS, "if a path told it", "antigravity", "", "The product: `cli`, `ide` or `desktop`.";
    SESSION_END = "antigravity.session.end", Text, SESSION, "once the session has ended", "antigravity", "", "How the end was told: `process_exit` or `idle`.";
    SESSION_RESUMED = "antigravity.session.resumed", Bool, AGENTS, "after a resume", "antigravity", "", "The session had ended before, and this turn began after that.";
    TURN_INDEX = "antigravity.turn.index", Int, IN_TURN, "always", "antigravity", "", "Which turn of the conversation, from 0.";
    TURN_CONTINUED = "antigravity.turn.continued", Bool, TURN, "if so", "antigravity", "", "Not begun by the user: it goes on where the linked turn stopped.";
    TURN_PARTIAL = "antigravity.turn.partial", Bool, TURN, "if so", "antigravity", "", "Its beginning was not observed.";
    TURN_INTERRUPTED = "antigravity.turn.interrupted", Bool, TURN, "if so", "antigravity", "", "No Stop was observed: it ends with its last event.";
    TURN_UNNAMED_STEPS = "antigravity.turn.unnamed_steps", Int, TURN, "if any", "antigravity", "", "How many steps ended of which no event told a tool name.";
    TURN_UNOBSERVED_TOOLS = "antigravity.turn.unobserved_tools", Texts, TURN, "if any", "antigravity", "", "Tools asked for whose end was not observed by the turn's end: denied, rejected or still running.";
    TERMINATION_REASON = "antigravity.termination_reason", Text, TURN, "if agy tells it", "antigravity", "", "Why the agent stopped, exactly as agy sent it.";
    EXECUTION_NUM = "antigravity.execution_num", Int, TURN, "if agy tells it", "antigravity", "", "0 at first, counted up when a hook made the agent go on.";
    FULLY_IDLE = "antigravity.fully_idle", Bool, TURN, "if agy tells it", "antigravity", "", "Whether no background work was left (false is kept).";
    INVOCATION_NUM = "antigravity.invocation.num", Int, CALL, "if agy tells it", "antigravity", "", "Which model call of its execution, from 0.";
    INITIAL_NUM_STEPS = "antigravity.invocation.initial_num_steps", Int, CALL, "if agy tells it", "antigravity", "", "How many steps the conversation had before this call.";
    RESPONSE_MS = "antigravity.model.response_ms", Int, CALL, "always", "antigravity", "", "Milliseconds from the call's start to its first tool, else to its end: agy runs the tools inside the call.";
    STEP_INDEX = "antigravity.step.index", Int, &[Place::Tool, Place::Event], "if the step is numbered", "antigravity", "", "The step's index in the conversation.";
    TIMING = "antigravity.timing", Text, &[Place::ModelCall, Place::Tool], "tool: always; model call: if inferred", "antigravity", "", "`includes_approval`: agy may have asked the user inside this time; `end_only`: the start was not observed; `inferred`: the end was not observed.";
    CLAMPED = "antigravity.clamped", Bool, SPANS, "if so", "antigravity", "", "A time was bent so that nothing ends before it starts or starts before its parent.";
    LATE = "antigravity.late", Bool, &[Place::ModelCall, Place::Tool], "if so", "antigravity", "", "Observed after its turn had been exported, so it may lie outside of it.";
    OPEN = "antigravity.open", Bool, SPANS, "only in `show`", "antigravity", "", "Still running: shown as if it ended at the last event; never exported.";

    INPUT_VALUE = "input.value", Content, &[Place::Turn, Place::Tool], "turn: `prompts`, if agy tells it; tool: `args`", "OpenInference", "Future AGI, Phoenix, Langfuse", "Turn: what the user said. Tool: its arguments.";
    INPUT_MIME_TYPE = "input.mime_type", Text, &[Place::Turn, Place::Tool], "with `input.value`", "OpenInference", "Future AGI, Phoenix", "`application/json`, or `text/plain`: no JSON, or JSON that was cut.";
    OUTPUT_VALUE = "output.value", Content, &[Place::ModelCall, Place::Tool], "model call: `outputs`; tool: `results`; if agy tells it", "OpenInference", "Future AGI, Phoenix, Langfuse", "Model call: what the model answered. Tool: its result.";
    OUTPUT_MIME_TYPE = "output.mime_type", Text, &[Place::ModelCall, Place::Tool], "with `output.value`", "OpenInference", "Future AGI, Phoenix", "As `input.mime_type`.";
    TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments", Content, TOOL, "`args`", "GenAI (opt-in, development)", "Langfuse, Phoenix", "The same as `input.value`.";
    TOOL_CALL_RESULT = "gen_ai.tool.call.result", Content, TOOL, "`results`, if agy tells it", "GenAI (opt-in, development)", "Langfuse", "The same as `output.value`.";
    TRUNCATED = "antigravity.truncated", Bool, IN_TURN, "if so", "antigravity", "", "Content of this span was cut: at 4096 characters, or because it was longer than what is looked at (64 KiB).";
    REDACTED = "antigravity.redacted", Texts, IN_TURN, "if any", "antigravity", "", "The rules that took something out of this span's content.";
    ARGS_DIGEST = "antigravity.args_digest", Text, TOOL, "if FI_HOOK_DIGEST is set", "antigravity", "", "Keyed digest of the arguments: the same for equal calls on this machine.";
    ERROR_DIGEST = "antigravity.error_digest", Text, &[Place::Turn, Place::Tool], "on an error, if FI_HOOK_DIGEST is set", "antigravity", "", "Keyed digest of the error text.";

    LINK_REASON = "antigravity.link.reason", Text, &[Place::Link], "always", "antigravity", "", "`continues` (the turn before) or `traceparent` (the caller's span).";
}

/// Span event of a turn: a step ended of which no event told a tool name.
pub const EVENT_STEP_UNNAMED: &str = "antigravity.step.unnamed";
/// Span event of a turn: a tool was asked for at this time, its end was not observed.
pub const EVENT_TOOL_UNOBSERVED: &str = "antigravity.tool.unobserved";

/// The span events: name, and one line for the reader of a trace.
pub const EVENTS: &[(&str, &str)] = &[
    (EVENT_STEP_UNNAMED, "A step ended of which no event told a tool name."),
    (EVENT_TOOL_UNOBSERVED, "A tool was asked for at this time; its end was not observed by the turn's end."),
];

/// Looks a key up.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Whether the table allows this key at this place.
#[must_use]
pub fn allows(place: Place, name: &str) -> bool {
    find(name).is_some_and(|key| key.places.contains(&place))
}

/// Renders `docs/attributes.md`.
#[must_use]
pub fn render() -> String {
    let mut page = String::from(HEAD);
    section(&mut page, "Resource", |key| key.places == RESOURCE);
    page.push_str("\nEvery attribute of OTEL_RESOURCE_ATTRIBUTES is added, but cannot replace one of these.\n");
    section(&mut page, "Spans, events and links", |key| key.places != RESOURCE);
    page.push_str("\n## Span events\n\n| name | meaning |\n|---|---|\n");
    for (name, doc) in EVENTS {
        page.push_str(&row(&[&format!("`{name}`"), doc]));
    }
    page
}

const HEAD: &str = "# Attributes\n\n\
<!-- Rendered from src/semconv.rs; `UPDATE_DOCS=1 cargo test --lib semconv` writes it anew. -->\n\n\
All of these are exported by default, but those that are content: a word in `code` under *when* is one of\n\
`FI_HOOK_CAPTURE_CONTENT`, and with `errors` the error text of a turn or tool is its status message\n\
([privacy.md](privacy.md)). Of the others none holds a prompt, an argument, a result, an error text or a path.\n\
Spans: `Antigravity session` (INTERNAL) holds `Antigravity turn`s (INTERNAL), each of these its `Model call`s (CLIENT) and\n\
its tools (INTERNAL, named by the tool). With `FI_HOOK_SPAN_NAMES=semconv`: `invoke_agent antigravity`, `chat {model}`,\n\
`execute_tool {tool}`. Status is OK only where success was observed: a turn by its termination reason, a model call by its\n\
PostInvocation, a tool by a PostToolUse without error, a session at its end when all of its turns were OK.\n\n\
The GenAI conventions are those of `semantic-conventions-genai` of November 2026; all of them are in development.\n";

fn section(page: &mut String, title: &str, wanted: impl Fn(&Key) -> bool) {
    page.push_str("\n## ");
    page.push_str(title);
    page.push_str("\n\n| key | type | on | when | convention | read by | meaning |\n");
    page.push_str("|---|---|---|---|---|---|---|\n");
    for key in KEYS.iter().filter(|key| wanted(key)) {
        let places: Vec<&str> = key.places.iter().map(|place| place.as_str()).collect();
        let name = format!("`{}`", key.name);
        page.push_str(&row(&[
            &name,
            key.kind.as_str(),
            &places.join(", "),
            key.when,
            key.convention,
            key.read_by,
            key.doc,
        ]));
    }
}

fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    use super::*;

    #[test]
    fn keys_are_listed_once() {
        let mut names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }

    #[test]
    fn the_page_shows_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/attributes.md");
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, render()).unwrap();
        }
        let page = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            page == render(),
            "docs/attributes.md is not what the table renders: run UPDATE_DOCS=1 cargo test --lib semconv"
        );
    }
}
