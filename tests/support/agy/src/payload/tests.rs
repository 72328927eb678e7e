//! The fields of each event, version by version, against captured payloads whose values were replaced.

use super::*;
use crate::behaviour::Product;
use crate::version::Version;

fn behaviour(version: &str) -> Behaviour {
    Behaviour { profile: version.parse().unwrap(), ..Behaviour::default() }
}

fn frame<'a>(behaviour: &'a Behaviour, workspace_paths: &'a [String]) -> Frame<'a> {
    Frame {
        behaviour,
        home: "/home/user",
        conversation: "7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11",
        model: "gemini-3.5-flash-low",
        workspace_paths,
        last_user_input: "say hello",
        execution_id: "e",
        agent_name: "research",
        parent: "p",
    }
}

fn call() -> ToolCall {
    ToolCall {
        name: "run_command".to_owned(),
        args: json!({"Overwrite": true, "CommandLine": "echo hello", "WaitMsBeforeAsync": 1000}),
    }
}

fn value(version: &str, body: &Body<'_>) -> Value {
    let behaviour = behaviour(version);
    serde_json::from_str(&payload(&frame(&behaviour, &[]), body)).unwrap()
}

#[test]
fn a_lifecycle_event_of_1_1_7_is_as_captured() {
    let behaviour = behaviour("1.1.7");
    let text = payload(&frame(&behaviour, &[]), &Body::PreInvocation { invocation_num: 7, initial_num_steps: 17 });
    let expected = concat!(
        r#"{"artifactDirectoryPath":"/home/user/.gemini/antigravity-cli/brain/7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11","#,
        r#""conversationId":"7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11","initialNumSteps":17,"invocationNum":7,"modelName":"gemini-3.5-flash-low","#,
        r#""transcriptPath":"/home/user/.gemini/antigravity-cli/brain/7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11/.system_generated/logs/transcript.jsonl","#,
        r#""workspacePaths":[]}"#
    );
    assert_eq!(text, expected);
}

#[test]
fn pre_and_post_invocation_are_the_same_bytes() {
    let behaviour = behaviour("1.4.7");
    let frame = frame(&behaviour, &[]);
    let before = payload(&frame, &Body::PreInvocation { invocation_num: 1, initial_num_steps: 3 });
    let after =
        payload(&frame, &Body::PostInvocation { invocation_num: 1, initial_num_steps: 3, output: "o", thinking: "t" });
    assert_eq!(before, after);
}

#[test]
fn common_fields_come_and_go_with_the_version() {
    let cases = [
        ("1.0.1", false, "transcript.jsonl", false),
        ("1.0.5", false, "transcript.jsonl", false),
        ("1.1.7", true, "transcript.jsonl", false),
        ("1.2.7", true, "transcript_full.jsonl", false),
        ("1.4.2", true, "transcript_full.jsonl", false),
        ("1.4.7", true, "transcript_full.jsonl", true),
    ];
    for (version, model, transcript, prompt) in cases {
        let value = value(version, &Body::SessionStart);
        assert_eq!(value.get("modelName").is_some(), model, "{version}");
        assert_eq!(value.get("lastUserInput").is_some(), prompt, "{version}");
        assert!(value["transcriptPath"].as_str().unwrap().ends_with(&format!("/{transcript}")), "{version}");
        assert_eq!(value["workspacePaths"], json!([]), "{version}");
    }
}

#[test]
fn every_argument_of_1_0_0_is_json_inside_a_string() {
    let call = call();
    let twice = value("1.0.0", &Body::PreToolUse { step_idx: 2, tool: &call });
    assert_eq!(
        twice["toolCall"]["args"],
        json!({"Overwrite": "true", "CommandLine": "\"echo hello\"", "WaitMsBeforeAsync": "1000"})
    );
    let once = value("1.0.1", &Body::PreToolUse { step_idx: 2, tool: &call });
    assert_eq!(once["toolCall"], json!({"name": "run_command", "args": call.args}));
}

#[test]
fn post_tool_use_is_thin_before_1_1_7_and_shows_two_more_arguments_since() {
    let call = call();
    let body = Body::PostToolUse { step_idx: 2, tool: Some(&call), error: "", result: "r" };
    let thin = value("1.0.5", &body);
    assert_eq!((thin.get("toolCall"), &thin["error"], &thin["stepIdx"]), (None, &json!(""), &json!(2)));
    let full = value("1.1.7", &body);
    assert_eq!(full["toolCall"]["name"], "run_command");
    let args = full["toolCall"]["args"].as_object().unwrap();
    assert!(args.contains_key("toolAction") && args.contains_key("toolSummary") && args.len() == 5, "{args:?}");
    assert_eq!(full.get("result"), None);
    let spurious = value("1.0.5", &Body::PostToolUse { step_idx: 0, tool: None, error: "", result: "" });
    assert_eq!(spurious.get("toolCall"), Some(&Value::Null));
}

#[test]
fn the_shape_of_post_tool_use_can_be_forced() {
    let call = call();
    let body = Body::PostToolUse { step_idx: 2, tool: Some(&call), error: "", result: "" };
    for (shape, expected) in [(PostShape::Thin, false), (PostShape::Full, true)] {
        let behaviour = Behaviour { post_tool_use: shape, ..Behaviour::default() };
        let value: Value = serde_json::from_str(&payload(&frame(&behaviour, &[]), &body)).unwrap();
        assert_eq!(value.get("toolCall").is_some(), expected);
    }
}

#[test]
fn a_stop_names_its_zero_values() {
    let value = value("1.2.7", &Body::Stop { execution_num: 0, reason: "NO_TOOL_CALL", error: "", fully_idle: false });
    assert_eq!(value["executionNum"], 0);
    assert_eq!(value["error"], "");
    assert_eq!(value["fullyIdle"], false);
    assert_eq!(value["terminationReason"], "NO_TOOL_CALL");
}

#[test]
fn unproven_fields_are_sent_only_when_asked_for() {
    let behaviour = Behaviour { unproven_fields: true, profile: Version::new(1, 5, 0), ..Behaviour::default() };
    let frame = frame(&behaviour, &[]);
    let call = call();
    let after: Value = serde_json::from_str(&payload(
        &frame,
        &Body::PostToolUse { step_idx: 2, tool: Some(&call), error: "", result: "done" },
    ))
    .unwrap();
    assert_eq!(
        (&after["result"], &after["agentName"], &after["parentConversationId"]),
        (&json!("done"), &json!("research"), &json!("p"))
    );
}

#[test]
fn a_product_has_a_folder_of_its_own() {
    for (product, folder) in
        [(Product::Cli, "antigravity-cli"), (Product::Ide, "antigravity-ide"), (Product::Desktop, "antigravity")]
    {
        let behaviour = Behaviour { product, ..Behaviour::default() };
        let value: Value = serde_json::from_str(&payload(&frame(&behaviour, &[]), &Body::SessionStart)).unwrap();
        assert!(value["artifactDirectoryPath"].as_str().unwrap().contains(&format!("/.gemini/{folder}/brain/")));
    }
}
