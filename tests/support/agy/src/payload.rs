//! The JSON that agy writes to a hook's stdin.
//!
//! protojson in lower camel case, keys sorted, zero values present (captures of 1.1.7 to 1.2.7); no field names the event.
//! Which fields a version sends is asked of `version`. Pure.

use serde_json::{Map, Value, json};

use crate::behaviour::{Behaviour, PostShape};

/// What all events of a conversation share.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// The agy that is played.
    pub behaviour: &'a Behaviour,
    /// The user's home folder.
    pub home: &'a str,
    /// The conversation.
    pub conversation: &'a str,
    /// The model in use.
    pub model: &'a str,
    /// The open workspaces.
    pub workspace_paths: &'a [String],
    /// The newest prompt.
    pub last_user_input: &'a str,
    /// The execution's id; an unproven field.
    pub execution_id: &'a str,
    /// The subagent's name; an unproven field.
    pub agent_name: &'a str,
    /// The conversation that started this one; an unproven field.
    pub parent: &'a str,
}

/// A tool call as a payload shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The model-facing name.
    pub name: String,
    /// The arguments.
    pub args: Value,
}

/// An event and what it alone carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'a> {
    /// `SessionStart`.
    SessionStart,
    /// `PreInvocation`.
    PreInvocation {
        /// The place of the model call in its execution, from 0.
        invocation_num: u64,
        /// The number of steps before it.
        initial_num_steps: u64,
    },
    /// `PostInvocation`; byte for byte its `PreInvocation` unless unproven fields are on.
    PostInvocation {
        /// As in its `PreInvocation`.
        invocation_num: u64,
        /// As in its `PreInvocation`.
        initial_num_steps: u64,
        /// The model's text.
        output: &'a str,
        /// The model's thinking.
        thinking: &'a str,
    },
    /// `PreToolUse`.
    PreToolUse {
        /// The step of the tool.
        step_idx: u64,
        /// The call.
        tool: &'a ToolCall,
    },
    /// `PostToolUse`.
    PostToolUse {
        /// The step of the tool, the same as before it (measured, 16 of 16).
        step_idx: u64,
        /// The call as it was executed; `None` for a step that is no tool (before 1.1.9).
        tool: Option<&'a ToolCall>,
        /// The error; empty for none.
        error: &'a str,
        /// The result.
        result: &'a str,
    },
    /// `Stop`.
    Stop {
        /// 0, and one more after each forced continuation of the turn (1.2.7).
        execution_num: u32,
        /// The termination reason.
        reason: &'a str,
        /// The error; empty for none.
        error: &'a str,
        /// Whether nothing goes on in the background.
        fully_idle: bool,
    },
}

/// The payload as the text a hook reads.
#[must_use]
pub fn payload(frame: &Frame<'_>, body: &Body<'_>) -> String {
    let mut fields = common(frame);
    let unproven = frame.behaviour.unproven_fields;
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    match *body {
        Body::SessionStart => {}
        Body::PreInvocation { invocation_num, initial_num_steps } => {
            put("invocationNum", json!(invocation_num));
            put("initialNumSteps", json!(initial_num_steps));
        }
        Body::PostInvocation { invocation_num, initial_num_steps, output, thinking } => {
            put("invocationNum", json!(invocation_num));
            put("initialNumSteps", json!(initial_num_steps));
            if unproven {
                put("modelOutput", json!(output));
                put("modelThinking", json!(thinking));
            }
        }
        Body::PreToolUse { step_idx, tool } => {
            put("stepIdx", json!(step_idx));
            put("toolCall", tool_call(frame.behaviour, tool));
        }
        Body::PostToolUse { step_idx, tool, error, result } => {
            put("stepIdx", json!(step_idx));
            put("error", json!(error));
            match tool {
                None => _ = put("toolCall", Value::Null),
                Some(tool) if is_full(frame.behaviour) => {
                    _ = put("toolCall", tool_call(frame.behaviour, &with_summary(tool)));
                }
                Some(_) => {}
            }
            if unproven && tool.is_some() {
                put("result", json!(result));
            }
        }
        Body::Stop { execution_num, reason, error, fully_idle } => {
            put("executionNum", json!(execution_num));
            put("terminationReason", json!(reason));
            put("error", json!(error));
            put("fullyIdle", json!(fully_idle));
        }
    }
    sorted(Value::Object(fields)).to_string()
}

fn common(frame: &Frame<'_>) -> Map<String, Value> {
    let version = frame.behaviour.profile;
    let artifacts =
        format!("{}/.gemini/{}/brain/{}", frame.home, frame.behaviour.product.app_data(), frame.conversation);
    let transcript = if version.names_full_transcript() { "transcript_full.jsonl" } else { "transcript.jsonl" };
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("transcriptPath", json!(format!("{artifacts}/.system_generated/logs/{transcript}")));
    put("artifactDirectoryPath", json!(artifacts));
    put("conversationId", json!(frame.conversation));
    put("workspacePaths", json!(frame.workspace_paths));
    if version.sends_model_name() {
        put("modelName", json!(frame.model));
    }
    if version.sends_last_user_input() {
        put("lastUserInput", json!(frame.last_user_input));
    }
    if frame.behaviour.unproven_fields {
        put("executionId", json!(frame.execution_id));
        put("agentName", json!(frame.agent_name));
        put("parentConversationId", json!(frame.parent));
    }
    fields
}

fn is_full(behaviour: &Behaviour) -> bool {
    match behaviour.post_tool_use {
        PostShape::ByVersion => behaviour.profile.sends_tool_call_after(),
        PostShape::Thin => false,
        PostShape::Full => true,
    }
}

/// The executed arguments carry two texts that the model wrote and `PreToolUse` does not show (1.1.7, 1.1.18).
fn with_summary(tool: &ToolCall) -> ToolCall {
    let mut tool = tool.clone();
    if let Value::Object(args) = &mut tool.args {
        args.entry("toolAction").or_insert_with(|| json!(format!("Using {}", tool.name)));
        args.entry("toolSummary").or_insert_with(|| json!(format!("Use of {}", tool.name)));
    }
    tool
}

fn tool_call(behaviour: &Behaviour, tool: &ToolCall) -> Value {
    let mut args = tool.args.clone();
    if let (true, Value::Object(args)) = (behaviour.profile.encodes_args_twice(), &mut args) {
        for value in args.values_mut() {
            *value = Value::String(value.to_string());
        }
    }
    json!({"name": tool.name, "args": args})
}

/// Sorts the keys at every depth, whichever map `serde_json` was built with in this workspace.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            members.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
