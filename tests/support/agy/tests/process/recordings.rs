//! Recorded payloads, played as they are.

use agy_stand_in::report::{ToolResult, TurnEnd};
use agy_stand_in::{Event, Recording};

use crate::world::{ID, World};

/// Spaces, key order and an unknown field as no encoder of ours would write them.
fn recording() -> Recording {
    let text = format!(
        r#"{{"event": "PreInvocation", "payload": {{ "initialNumSteps":1,  "invocationNum" : 0, "conversationId": "{ID}", "future": [1.50] }}}}
{{"event": "PreToolUse", "payload": {{"conversationId": "{ID}", "stepIdx": 2, "toolCall": {{"args": {{}}, "name": "run_command"}}}}}}

{{"event": "AnyEvent", "payload": {{"conversationId": "{ID}"}}}}
{{"event": "PostToolUse", "payload": {{"conversationId": "{ID}", "stepIdx": 2, "error": ""}}, "delayMs": 1}}
{{"event": "Stop", "payload": {{"conversationId": "{ID}", "terminationReason": "NO_TOOL_CALL"}}}}
"#
    );
    Recording::parse(&text).unwrap()
}

#[test]
fn payloads_arrive_byte_for_byte_in_their_order() {
    let world =
        World::with(&Event::ALL.map(|event| {
            (event, r#"cat >> "$LOG"; echo >> "$LOG"; echo "$ANTIGRAVITY_CONVERSATION_ID" >> "$LOG.ids""#)
        }));
    let run = world.agy().play(&recording()).unwrap();
    let expected: Vec<_> = recording()
        .lines
        .iter()
        .filter(|line| line.event != "AnyEvent")
        .map(|line| line.payload.get().to_owned())
        .collect();
    assert_eq!(world.log(), expected);
    assert_eq!(crate::world::lines(&world.path("log.ids")), [ID; 4]);
    assert_eq!((run.report.tools[0].result, run.report.tools[0].name.as_str()), (ToolResult::Ran, "run_command"));
    assert_eq!((run.report.turns[0].ended, run.report.turns[0].reason.as_str()), (TurnEnd::Stopped, "NO_TOOL_CALL"));
}

#[test]
fn a_denied_tool_has_no_post_tool_use() {
    let world = World::with(&[
        (Event::PreToolUse, "printf '{}'"),
        (Event::PostToolUse, "cat > /dev/null"),
        (Event::Stop, "cat > /dev/null"),
    ]);
    let run = world.agy().play(&recording()).unwrap();
    assert_eq!(run.report.events(), [Event::PreToolUse, Event::Stop]);
    assert_eq!(run.report.tools[0].result, ToolResult::Denied);
}

#[test]
fn an_aborted_invocation_ends_the_program() {
    let world = World::with(&[(Event::PreInvocation, "exit 1"), (Event::Stop, "cat > /dev/null")]);
    let run = world.agy().play(&recording()).unwrap();
    assert_eq!((run.status.code(), run.report.events()), (Some(1), vec![Event::PreInvocation]));
}

#[test]
fn a_thin_post_tool_use_is_matched_by_the_name_before_it() {
    let world = World::new();
    let text = r#"{"x": {"PostToolUse": [{"matcher": "run_command", "hooks": [{"command": "cat > /dev/null"}]}]}}"#;
    world.write("home/.gemini/config/hooks.json", text);
    assert_eq!(world.agy().play(&recording()).unwrap().report.events(), [Event::PostToolUse]);
    world.write("home/.gemini/config/hooks.json", &text.replace("run_command", "view_file"));
    assert!(world.agy().play(&recording()).unwrap().report.hooks.is_empty());
}

#[test]
fn the_same_recording_can_be_played_as_another_conversation() {
    let other = "1f0a2c1e-9b1d-4a2e-8a53-55d7c0f2ab01";
    let world = World::silent();
    let run = world.agy().arg("--conversation").arg(other).play(&recording()).unwrap();
    assert!(run.report.hooks.iter().all(|hook| hook.conversation == other && !hook.payload.get().contains(ID)));
}
