//! The shapes that load, the mistakes that void a file, and those that only cost an action.

use super::*;

/// Event and command of each action of the only hook.
fn actions(text: &str) -> Vec<(Event, String)> {
    let file = HookFile::parse(text).unwrap();
    assert_eq!(file.hooks.len(), 1, "{text}");
    file.hooks[0].actions.iter().map(|action| (action.event, action.handler.command.clone())).collect()
}

#[test]
fn flat_and_grouped_events_load_in_the_order_of_their_lists() {
    let found = actions(
        r#"{"x": {"Stop": [{"type": "command", "command": "a"}, {"command": "b", "timeout": 3}],
                  "PreToolUse": [{"matcher": "view_file", "hooks": [{"command": "c"}, {"command": "d"}]}, {"hooks": [{"command": "e"}]}]}}"#,
    );
    let expected = [
        (Event::PreToolUse, "c"),
        (Event::PreToolUse, "d"),
        (Event::PreToolUse, "e"),
        (Event::Stop, "a"),
        (Event::Stop, "b"),
    ];
    assert_eq!(found, expected.map(|(event, command)| (event, command.to_owned())));
}

#[test]
fn a_timeout_is_in_seconds_and_thirty_by_default() {
    let file = HookFile::parse(
        r#"{"x": {"Stop": [{"command": "a"}, {"command": "b", "timeout": 3}, {"command": "c", "timeout": 0}]}}"#,
    )
    .unwrap();
    let timeouts: Vec<_> = file.hooks[0].actions.iter().map(|action| action.handler.timeout.as_secs()).collect();
    assert_eq!(timeouts, [30, 3, 30]);
}

#[test]
fn a_group_without_a_matcher_is_for_all_tools() {
    let file = HookFile::parse(r#"{"x": {"PostToolUse": [{"hooks": [{"command": "a"}]}, {"matcher": "view_file", "hooks": [{"command": "b"}]}]}}"#).unwrap();
    let takes: Vec<_> =
        file.hooks[0].actions.iter().map(|action| action.matcher.matches(Some("run_command"))).collect();
    assert_eq!(takes, [true, false]);
}

#[test]
fn disabled_is_kept_and_marked() {
    let file =
        HookFile::parse(r#"{"x": {"enabled": false, "Stop": [{"command": "a"}]}, "y": {"enabled": true}}"#).unwrap();
    assert_eq!(file.hooks.iter().map(|hook| hook.enabled).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_hook_may_be_called_hooks() {
    assert_eq!(actions(r#"{"hooks": {"Stop": [{"command": "a"}]}}"#), [(Event::Stop, "a".to_owned())]);
}

#[test]
fn what_voids_the_whole_file() {
    let good = r#""good": {"Stop": [{"command": "a"}]}"#;
    let cases = [
        (r#""version": 1"#, "version"),
        (r#""$schema": "x""#, "$schema"),
        (r#""x": []"#, "x"),
        (r#""x": null"#, "x"),
        (r#""x": {"enabled": "yes"}"#, "x.enabled"),
        (r#""x": {"description": "text"}"#, "x.description"),
        (r#""x": {"NoSuchEvent": {}}"#, "x.NoSuchEvent"),
        (r#""x": {"Stop": [{"matcher": "*", "hooks": [{"command": "a"}]}]}"#, "x.Stop[0]"),
        (r#""x": {"SessionStart": [{"hooks": [{"command": "a"}]}]}"#, "x.SessionStart[0]"),
        (r#""x": {"PreInvocation": [{"timeout": 3}]}"#, "x.PreInvocation[0].command"),
        (r#""x": {"PreInvocation": [{"command": ""}]}"#, "x.PreInvocation[0].command"),
        (r#""x": {"PostInvocation": ["a"]}"#, "x.PostInvocation[0]"),
        (r#""x": {"Stop": [{"command": "a", "timeout": "3"}]}"#, "x.Stop[0].timeout"),
        (r#""x": {"Stop": [{"command": "a", "timeout": 0.5}]}"#, "x.Stop[0].timeout"),
        (r#""x": {"Stop": [{"command": "a", "async": true}]}"#, "x.Stop[0].async"),
        (r#""x": {"Stop": [{"command": "a", "type": "http"}]}"#, "x.Stop[0].type"),
        (r#""x": {"PreToolUse": [{"matcher": 3, "hooks": []}]}"#, "x.PreToolUse[0].matcher"),
        (r#""x": {"PreToolUse": [{"matcher": "*", "hooks": {}}]}"#, "x.PreToolUse[0].hooks"),
        (r#""x": {"PostToolUse": [{"hooks": [{"command": 3}]}]}"#, "x.PostToolUse[0].hooks[0].command"),
        (r#""x": {"PostToolUse": [{"hooks": [{"hooks": [{"command": "a"}]}]}]}"#, "x.PostToolUse[0].hooks[0]"),
    ];
    for (member, named) in cases {
        let reason = HookFile::parse(&format!("{{{good}, {member}}}")).expect_err(member).to_string();
        assert!(reason.contains(named), "{member}: {reason}");
    }
}

#[test]
fn text_that_is_not_plain_json_voids_the_file() {
    for text in ["", "[]", "{", "{} x", "// comment\n{}", r#"{"x": {"Stop": [{"command": "a"},]}}"#, "\u{feff}{}"] {
        assert!(HookFile::parse(text).is_err(), "loaded: {text:?}");
    }
}

#[test]
fn a_flat_tool_action_is_dropped_alone() {
    let text = r#"{"x": {"PreToolUse": [{"type": "command", "command": "lost"}, {"matcher": "*", "hooks": [{"command": "kept"}]}],
                         "PostToolUse": [{"command": "lost"}], "Stop": [{"command": "kept"}]}}"#;
    assert_eq!(actions(text), [(Event::PreToolUse, "kept".to_owned()), (Event::Stop, "kept".to_owned())]);
    assert_eq!(HookFile::parse(text).unwrap().notes.len(), 2);
}

#[test]
fn a_broken_matcher_and_a_prompt_handler_run_nothing_and_cost_no_other_action() {
    let text = r#"{"x": {"PreToolUse": [{"matcher": "(", "hooks": [{"command": "lost"}]}],
                         "Stop": [{"type": "prompt", "prompt": "?"}, {"command": "kept"}]}}"#;
    assert_eq!(actions(text), [(Event::Stop, "kept".to_owned())]);
}

#[test]
fn an_unknown_event_is_accepted_and_noted() {
    let file = HookFile::parse(r#"{"x": {"SessionEnd": [{"anything": 1}], "BeforeTool": []}}"#).unwrap();
    assert!(file.hooks[0].actions.is_empty());
    assert_eq!(file.notes.len(), 2);
}

#[test]
fn places_are_those_of_the_handler_ids() {
    let file = HookFile::parse(r#"{"x": {"PreToolUse": [{"hooks": []}, {"hooks": [{"command": "a"}, {"command": "b"}]}], "Stop": [{"command": "c"}, {"command": "d"}]}}"#).unwrap();
    let places: Vec<_> = file.hooks[0].actions.iter().map(|action| (action.group, action.place)).collect();
    assert_eq!(places, [(1, 0), (1, 1), (0, 0), (1, 0)]);
}
