//! What a hook's reply does to the conversation.

use agy_stand_in::behaviour::{EmptyDecision, Mode};
use agy_stand_in::report::{ToolResult, TurnEnd};
use agy_stand_in::script::{Interleave, ModelCall, Permission, Script, Tool, Turn};
use agy_stand_in::{Behaviour, Event, Version};
use serde_json::{Value, json};

use crate::world::{World, conversation, hook, numbers, one_answer, one_tool, payload};

/// All events silent but one.
fn world_where(event: Event, command: &str) -> World {
    World::with(&Event::ALL.map(|each| (each, if each == event { command } else { "cat > /dev/null" })))
}

/// A hook that prints this and reads its payload.
fn print(text: &str) -> String {
    format!("cat > /dev/null; printf '%s' '{text}'")
}

#[test]
fn nothing_from_a_hook_lets_the_tool_run() {
    let run = World::silent().run(&one_tool());
    assert_eq!(run.report.tools[0].result, ToolResult::Ran);
    assert_eq!(run.status.code(), Some(0));
    assert_eq!(run.report.faults().count(), 0);
}

#[test]
fn an_empty_object_before_a_tool_denies_it_and_the_turn_goes_on() {
    for reply in
        ["{}", r#"{"decision":""}"#, r#"{"decision":"deny","reason":"no"}"#, r#"{"decision":"allow","x":1}"#, "hello"]
    {
        let run = world_where(Event::PreToolUse, &print(reply)).run(&one_tool());
        assert_eq!(run.report.tools[0].result, ToolResult::Denied, "{reply}");
        assert_eq!(run.report.hooks_of(Event::PostToolUse).count(), 0, "{reply}");
        assert_eq!(run.report.hooks_of(Event::Stop).count(), 1, "{reply}");
        assert_eq!(run.report.hooks_of(Event::PreInvocation).count(), 2, "{reply}");
        assert_eq!(run.status.code(), Some(0), "{reply}");
    }
}

#[test]
fn a_failed_hook_or_a_missing_program_denies_the_tool() {
    for command in ["exit 1", "/no/such/program", "kill -9 $$"] {
        let run = world_where(Event::PreToolUse, command).run(&one_tool());
        assert_eq!(run.report.tools[0].result, ToolResult::Denied, "{command}");
    }
    let guarded = world_where(Event::PreToolUse, "/no/such/program 2>/dev/null || :").run(&one_tool());
    assert_eq!(guarded.report.tools[0].result, ToolResult::Ran);
}

#[test]
fn one_denying_hook_is_enough_and_the_others_still_run() {
    let world = World::new();
    world.global(&json!({"a": hook(&[(Event::PreToolUse, "printf '{}'")]), "b": hook(&[(Event::PreToolUse, "cat > /dev/null")])}));
    let run = world.run(&one_tool());
    assert_eq!(run.report.tools[0].result, ToolResult::Denied);
    assert_eq!(run.report.hooks.len(), 2);
}

#[test]
fn an_empty_decision_is_neutral_where_that_is_chosen() {
    let world = world_where(Event::PreToolUse, &print(r#"{"decision":""}"#));
    let neutral = Behaviour { empty_decision: EmptyDecision::Neutral, ..Behaviour::default() };
    assert_eq!(world.run(&one_tool().behaviour(neutral)).report.tools[0].result, ToolResult::Ran);
    let flagged = world.agy().arg("--empty-decision").arg("neutral").run(&one_tool()).unwrap();
    assert_eq!(flagged.report.tools[0].result, ToolResult::Ran);
}

#[test]
fn a_question_nobody_can_answer_ends_the_turn_without_a_stop() {
    let run = world_where(Event::PreToolUse, &print(r#"{"decision":"ask"}"#)).run(&one_tool());
    assert_eq!(run.report.tools[0].result, ToolResult::SoftDenied);
    assert_eq!(run.report.turns[0].ended, TurnEnd::SoftDenied);
    assert_eq!(run.report.events().last(), Some(&Event::PreToolUse));
    let interactive = Behaviour { mode: Mode::Interactive, ..Behaviour::default() };
    let run = world_where(Event::PreToolUse, &print(r#"{"decision":"ask"}"#)).run(&one_tool().behaviour(interactive));
    assert_eq!(run.report.tools[0].result, ToolResult::Ran);
    let asks =
        Script::of(conversation().turn(Turn::prompt("go").tool(Tool::new("run_command").permission(Permission::Asks))));
    assert_eq!(World::silent().run(&asks).report.tools[0].result, ToolResult::SoftDenied);
}

#[test]
fn arguments_are_those_that_a_hook_wrote_over() {
    let world = world_where(Event::PreToolUse, &print(r#"{"decision":"allow","overwrite":{"CommandLine":"true"}}"#));
    let run = world.run(&one_tool());
    let after = payload(run.report.hooks_of(Event::PostToolUse).next().unwrap());
    assert_eq!(
        (&after["toolCall"]["args"]["CommandLine"], &after["toolCall"]["args"]["Cwd"]),
        (&json!("true"), &json!("."))
    );
}

#[test]
fn an_unknown_key_before_a_model_call_aborts_the_turn_and_the_program() {
    for command in [print(r#"{"decision":"allow"}"#), "exit 1".to_owned(), print("ok")] {
        let script = one_tool()
            .with(conversation().id("1f0a2c1e-9b1d-4a2e-8a53-55d7c0f2ab01").turn(Turn::prompt("later").answer()));
        let run = world_where(Event::PreInvocation, &command).run(&script);
        assert_eq!(run.status.code(), Some(1), "{command}");
        assert_eq!(run.report.events(), [Event::SessionStart, Event::PreInvocation], "{command}");
        assert_eq!(run.report.turns.len(), 1, "{command}");
        assert_eq!(run.report.turns[0].ended, TurnEnd::Aborted, "{command}");
        assert_eq!(run.report.totals.unwrap().exit_code, 1, "{command}");
    }
}

#[test]
fn an_abort_asks_no_further_hook() {
    let world = World::new();
    let probe = |command: &str| hook(&[(Event::PreInvocation, command)]);
    world.global(&json!({"a": probe("exit 1"), "b": probe("cat > /dev/null")}));
    assert_eq!(world.run(&one_answer()).report.hooks.len(), 1);
}

#[test]
fn an_abort_stops_the_other_conversations_too() {
    let world = world_where(Event::PreInvocation, r#"case "$(cat)" in *1f0a2c1e*) echo '{"x":1}';; esac"#);
    let slow = Turn::prompt("slow").call(ModelCall::new().pause_ms(60_000)).answer();
    let script = Script::new()
        .with(conversation().turn(slow))
        .with(conversation().id("1f0a2c1e-9b1d-4a2e-8a53-55d7c0f2ab01").pause_ms(50).turn(Turn::prompt("bad").answer()))
        .interleave(Interleave::Concurrent);
    let run = world.run(&script);
    assert_eq!(run.status.code(), Some(1));
    let mut ends: Vec<_> = run.report.turns.iter().map(|turn| turn.ended).collect();
    ends.sort_unstable();
    assert_eq!(ends, [TurnEnd::Aborted, TurnEnd::Halted]);
}

#[test]
fn a_stop_hook_continues_the_turn_and_is_capped() {
    let once = world_where(
        Event::Stop,
        r#"case "$(cat)" in *'"executionNum":0'*) echo '{"decision":"continue","reason":"more"}';; esac"#,
    );
    let turn =
        Turn::prompt("go").answer().continuation(vec![ModelCall::new().tool(Tool::new("list_dir")), ModelCall::new()]);
    let run = once.run(&Script::of(conversation().turn(turn)));
    let expected = [
        "SessionStart",
        "PreInvocation 0/1",
        "PostInvocation 0/1",
        "Stop 0 idle",
        "PreInvocation 0/3",
        "PreToolUse 4",
        "PostToolUse 4",
        "PostInvocation 0/3",
        "PreInvocation 1/5",
        "PostInvocation 1/5",
        "Stop 1 idle",
    ];
    assert_eq!(numbers(&run.report), expected);
    assert_eq!(run.report.turns[0].continued, 1);
    let always = world_where(Event::Stop, &print(r#"{"decision":"continue"}"#));
    let capped = Behaviour { max_continues: 3, ..Behaviour::default() };
    let run = always.run(&one_answer().behaviour(capped));
    let executions: Vec<Value> =
        run.report.hooks_of(Event::Stop).map(|hook| payload(hook)["executionNum"].clone()).collect();
    assert_eq!(executions, [0, 1, 2, 3]);
    assert_eq!(run.report.turns[0].ended, TurnEnd::Stopped);
}

#[test]
fn invocations_can_go_on_counting_after_a_continuation() {
    let world = world_where(Event::Stop, &print(r#"{"decision":"continue"}"#));
    let behaviour = Behaviour { max_continues: 1, continue_restarts_invocations: false, ..Behaviour::default() };
    let run = world.run(&one_answer().behaviour(behaviour));
    let invocations: Vec<Value> =
        run.report.hooks_of(Event::PreInvocation).map(|hook| payload(hook)["invocationNum"].clone()).collect();
    assert_eq!(invocations, [0, 1]);
}

#[test]
fn injected_steps_move_the_numbers() {
    let world = world_where(Event::PreInvocation, &print(r#"{"injectSteps":[{"ephemeralMessage":"look"}]}"#));
    let run = world.run(&one_tool());
    // As captured on 1.2.7 with a hook that injects one step: three steps a round.
    let before: Vec<_> = numbers(&run.report).into_iter().filter(|line| line.starts_with("Pre")).collect();
    assert_eq!(before, ["PreInvocation 0/1", "PreToolUse 3", "PreInvocation 1/4"]);
}

#[test]
fn a_hook_after_a_model_call_can_end_the_turn_or_force_another_call() {
    let end = world_where(Event::PostInvocation, &print(r#"{"terminationBehavior":"terminate"}"#)).run(&one_tool());
    assert_eq!(end.report.hooks_of(Event::PreInvocation).count(), 1);
    assert_eq!(end.report.turns[0].reason, "TERMINAL_CUSTOM_HOOK");
    let command =
        r#"case "$(cat)" in *'"invocationNum":1'*) ;; *) echo '{"terminationBehavior":"force_continue"}';; esac"#;
    let more = world_where(Event::PostInvocation, command).run(&one_answer());
    assert_eq!(more.report.hooks_of(Event::PreInvocation).count(), 2);
    assert_eq!(more.report.turns[0].reason, "NO_TOOL_CALL");
    let endless =
        world_where(Event::PostInvocation, &print(r#"{"terminationBehavior":"force_continue"}"#)).run(&one_answer());
    assert_eq!(endless.report.turns[0].reason, "MAX_FORCED_INVOCATIONS");
}

#[test]
fn a_session_start_that_fails_stops_nothing() {
    let world = world_where(Event::SessionStart, &print(r#"{"decision":"allow"}"#));
    let run = world.run(&one_tool().behaviour(Behaviour { profile: Version::new(1, 2, 7), ..Behaviour::default() }));
    assert_eq!((run.report.tools[0].result, run.report.totals.unwrap().faults), (ToolResult::Ran, 1));
}
