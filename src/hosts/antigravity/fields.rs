//! The fields of a payload that are looked at, by name: whatever is not here stays out, so a field of a future version
//! does, too. No I/O; decided in `docs/adr/0020-own-payload-scanner.md` and `docs/adr/0041-opt-in-content.md`.

use crate::event::Wanted;
use crate::redact::Raw;

/// The fields that are looked at. Whatever is not here stays out, so a field of a future version does, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `conversationId`.
    Conversation,
    /// `modelName`.
    Model,
    /// `stepIdx`.
    Step,
    /// `toolCall.name`.
    ToolName,
    /// `error`: whether it is empty; its text is a [`Part`].
    Error,
    /// `invocationNum`.
    InvocationNum,
    /// `initialNumSteps`.
    InitialSteps,
    /// `terminationReason`.
    Reason,
    /// `executionNum`.
    ExecutionNum,
    /// `fullyIdle`.
    FullyIdle,
    /// `transcriptPath`: tells the surface, goes no further.
    TranscriptPath,
    /// `artifactDirectoryPath`: tells the surface, goes no further.
    ArtifactPath,
    /// `workspacePaths`: for FI_HOOK_EXCLUDE_PATHS, goes no further.
    Workspace,
}

/// The fields that are content: kept only if the user asked for them, and then exactly as they came.
///
/// `modelThinking` is none of them, and neither is any path outside of the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `toolCall.args`.
    Args,
    /// `error`.
    Error,
    /// `lastUserInput`.
    Prompt,
    /// `modelOutput`.
    Output,
    /// `result`.
    Result,
}

/// A value of a kept field.
#[derive(Debug, PartialEq, Eq)]
pub enum Kept<'a> {
    /// A string, its escapes decoded, cut at [`KEPT_BYTES`](super::wire::KEPT_BYTES).
    Text(String),
    /// A number, `true`, `false` or `null`, as written.
    Bare(&'a str),
    /// An object or list where a plain value was expected.
    Nested,
}

/// Where kept values go.
pub trait Fields {
    /// Takes one value; a field that comes twice is set twice.
    fn set(&mut self, field: Field, value: Kept<'_>);

    /// Takes the content of one field; a field that comes twice is set twice.
    fn content(&mut self, part: Part, raw: Raw);
}

/// What the value after a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// One value.
    Plain(Field),
    /// A list of values.
    List(Field),
    /// The object that names the tool.
    ToolCall,
}

/// What the value of this key is for; None for one that is skipped.
pub(super) fn target(in_tool_call: bool, key: &[u8]) -> Option<Target> {
    Some(match (in_tool_call, key) {
        (true, b"name") => Target::Plain(Field::ToolName),
        (true, _) => return None,
        (false, b"conversationId") => Target::Plain(Field::Conversation),
        (false, b"modelName") => Target::Plain(Field::Model),
        (false, b"stepIdx") => Target::Plain(Field::Step),
        (false, b"toolCall") => Target::ToolCall,
        (false, b"error") => Target::Plain(Field::Error),
        (false, b"invocationNum") => Target::Plain(Field::InvocationNum),
        (false, b"initialNumSteps") => Target::Plain(Field::InitialSteps),
        (false, b"terminationReason") => Target::Plain(Field::Reason),
        (false, b"executionNum") => Target::Plain(Field::ExecutionNum),
        (false, b"fullyIdle") => Target::Plain(Field::FullyIdle),
        (false, b"transcriptPath") => Target::Plain(Field::TranscriptPath),
        (false, b"artifactDirectoryPath") => Target::Plain(Field::ArtifactPath),
        (false, b"workspacePaths") => Target::List(Field::Workspace),
        (false, _) => return None,
    })
}

/// The content that the value of this key is, if the user wants it.
pub(super) fn part(in_tool_call: bool, key: &[u8], wanted: Wanted) -> Option<Part> {
    let (part, wanted) = match (in_tool_call, key) {
        (true, b"args") => (Part::Args, wanted.args),
        (false, b"error") => (Part::Error, wanted.errors),
        (false, b"lastUserInput") => (Part::Prompt, wanted.prompts),
        (false, b"modelOutput") => (Part::Output, wanted.outputs),
        (false, b"result") => (Part::Result, wanted.results),
        _ => return None,
    };
    wanted.then_some(part)
}
