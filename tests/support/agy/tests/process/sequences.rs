//! The order and the numbers of events: what the captured and measured sequences show.

use std::collections::BTreeSet;

use agy_stand_in::report::{ToolResult, TurnEnd};
use agy_stand_in::script::{
    Background, Conversation, Ending, Interleave, ModelCall, Outcome, Schedule, Script, Tool, Turn,
};
use agy_stand_in::{Behaviour, Event};
use serde_json::json;

use crate::world::{ID, World, conversation, numbers, one_tool, payload};

const CHILD: &str = "1f0a2c1e-9b1d-4a2e-8a53-55d7c0f2ab01";

fn played(script: &Script) -> Vec<String> {
    numbers(&World::silent().run(script).report)
}

fn profile(version: &str) -> Behaviour {
    Behaviour { profile: version.parse().unwrap(), ..Behaviour::default() }
}

#[test]
fn one_tool_turn() {
    let expected = [
        "SessionStart",
        "PreInvocation 0/1",
        "PreToolUse 2",
        "PostToolUse 2",
        "PostInvocation 0/1",
        "PreInvocation 1/3",
        "PostInvocation 1/3",
        "Stop 0 idle",
    ];
    assert_eq!(played(&one_tool()), expected);
}

#[test]
fn a_second_turn_and_a_resume_go_on_counting_steps_and_start_no_session() {
    let script = Script::of(conversation().turn(Turn::prompt("one").answer()).turn(Turn::prompt("two").answer()));
    let run = World::silent().run(&script);
    let expected = [
        "SessionStart",
        "PreInvocation 0/1",
        "PostInvocation 0/1",
        "Stop 0 idle",
        "PreInvocation 0/3",
        "PostInvocation 0/3",
        "Stop 0 idle",
    ];
    assert_eq!(numbers(&run.report), expected);
    let steps = run.report.totals.unwrap().conversations[ID];
    assert_eq!(steps, 4);
    let resumed = Script::of(conversation().resume_at(steps).turn(Turn::prompt("three").answer()));
    assert_eq!(played(&resumed), ["PreInvocation 0/5", "PostInvocation 0/5", "Stop 0 idle"]);
}

#[test]
fn nothing_follows_an_escaped_or_denied_tool_but_the_next_prompt() {
    for (outcome, result, ended) in [
        (Outcome::Escaped, ToolResult::Escaped, TurnEnd::Escaped),
        (Outcome::UserDenied, ToolResult::UserDenied, TurnEnd::UserDenied),
    ] {
        let turn = Turn::prompt("one").tool(Tool::new("write_to_file").outcome(outcome)).answer();
        let run = World::silent().run(&Script::of(conversation().turn(turn).turn(Turn::prompt("two").answer())));
        let expected = [
            "SessionStart",
            "PreInvocation 0/1",
            "PreToolUse 2",
            "PreInvocation 0/4",
            "PostInvocation 0/4",
            "Stop 0 idle",
        ];
        assert_eq!(numbers(&run.report), expected);
        assert_eq!((run.report.tools[0].result, run.report.turns[0].ended), (result, ended));
    }
}

#[test]
fn a_call_that_agy_refuses_fires_no_hook_after_and_its_step_counts() {
    let turn = |outcome| {
        Script::of(conversation().turn(Turn::prompt("go").tool(Tool::new("view_file").outcome(outcome)).answer()))
    };
    let rejected = [
        "SessionStart",
        "PreInvocation 0/1",
        "PostInvocation 0/1",
        "PreInvocation 1/3",
        "PostInvocation 1/3",
        "Stop 0 idle",
    ];
    assert_eq!(played(&turn(Outcome::Rejected)), rejected);
    let failed = played(&turn(Outcome::FailedCheck));
    assert_eq!(failed.iter().filter(|line| line.contains("ToolUse")).collect::<Vec<_>>(), ["PreToolUse 2"]);
    assert_eq!(failed.last().map(String::as_str), Some("Stop 0 idle"));
}

#[test]
fn a_failing_tool_says_so_after_it_ran() {
    let turn =
        Turn::prompt("go").tool(Tool::new("replace_file_content").fails("target content not found in file")).answer();
    let run = World::silent().run(&Script::of(conversation().turn(turn)));
    let after = payload(run.report.hooks_of(Event::PostToolUse).next().unwrap());
    assert_eq!(after["error"], "target content not found in file");
    assert_eq!(
        (run.report.tools[0].result, run.report.tools[0].reason.as_str()),
        (ToolResult::Ran, "target content not found in file")
    );
}

#[test]
fn endings_of_a_turn() {
    let cases = [
        (
            Ending::stop("EXECUTOR_TERMINATION_REASON_MAX_INVOCATIONS"),
            true,
            Some("EXECUTOR_TERMINATION_REASON_MAX_INVOCATIONS"),
            "",
        ),
        (Ending::ModelError { message: "quota".to_owned() }, false, Some("ERROR"), "quota"),
        (Ending::Cancelled, false, Some("USER_CANCELED"), ""),
        (Ending::Escape, false, None, ""),
        (Ending::NoStop, true, None, ""),
    ];
    for (ending, post_invocation, reason, error) in cases {
        let run =
            World::silent().run(&Script::of(conversation().turn(Turn::prompt("go").answer().ending(ending.clone()))));
        assert_eq!(run.report.hooks_of(Event::PostInvocation).count() == 1, post_invocation, "{ending:?}");
        let stop = run.report.hooks_of(Event::Stop).next().map(payload);
        assert_eq!(
            stop.as_ref().map(|stop| (&stop["terminationReason"], &stop["error"])),
            reason.map(|reason| (json!(reason), json!(error))).as_ref().map(|(a, b)| (a, b)),
            "{ending:?}"
        );
    }
}

#[test]
fn background_work_stops_twice() {
    let work = Background { run_ms: 5, steps: 3, calls: vec![ModelCall::new()] };
    let script = Script::of(conversation().turn(Turn::prompt("go").answer().ending(Ending::with_background(work))));
    let expected = [
        "SessionStart",
        "PreInvocation 0/1",
        "PostInvocation 0/1",
        "Stop 0 busy",
        "PreInvocation 0/5",
        "PostInvocation 0/5",
        "Stop 0 idle",
    ];
    assert_eq!(played(&script), expected);
    let only =
        Script::of(conversation().turn(Turn::prompt("go").ending(Ending::with_background(Background::default()))));
    assert_eq!(played(&only)[3..], ["Stop 0 busy", "Stop 0 idle"]);
}

#[test]
fn before_1_1_9_post_tool_use_fires_for_other_steps_and_past_its_matcher() {
    let script = one_tool().behaviour(profile("1.1.7"));
    let world = World::silent();
    let tool_events =
        |lines: Vec<String>| lines.into_iter().filter(|line| line.contains("ToolUse")).collect::<Vec<_>>();
    let spurious = tool_events(numbers(&world.run(&script).report));
    assert_eq!(
        spurious,
        ["PostToolUse 0 no tool", "PreToolUse 2", "PostToolUse 1 no tool", "PostToolUse 2", "PostToolUse 3 no tool"]
    );
    let narrow = json!({"x": {"PostToolUse": [{"matcher": "view_file", "hooks": [{"command": "cat > /dev/null"}]}]}});
    world.global(&narrow);
    assert_eq!(world.run(&script).report.hooks.len(), 4);
    assert_eq!(world.run(&one_tool().behaviour(profile("1.1.9"))).report.hooks.len(), 0);
}

#[test]
fn a_matcher_chooses_the_tools() {
    let world = World::new();
    let group = |matcher: &str| json!([{"matcher": matcher, "hooks": [{"command": "cat > /dev/null"}]}]);
    world.global(&json!({"x": {"PreToolUse": group("view_file|browser_.*"), "PostToolUse": group("view")}}));
    let names = ["view_file", "view_file_outline", "browser_click", "run_command"];
    let turn = names.iter().fold(Turn::prompt("go"), |turn, name| turn.tool(Tool::new(*name)));
    let run = world.run(&Script::of(conversation().turn(turn)));
    let seen: Vec<_> = run.report.hooks.iter().map(|hook| payload(hook)["toolCall"]["name"].clone()).collect();
    assert_eq!(seen, ["view_file", "browser_click"]);
}

#[test]
fn parallel_tools_in_a_fixed_order() {
    let tools = || ["a", "b"].map(|file| Tool::new("view_file").args(json!({"AbsolutePath": file}))).to_vec();
    for (schedule, order) in [
        (Schedule::Nested, ["PreToolUse 2", "PreToolUse 3", "PostToolUse 3", "PostToolUse 2"]),
        (Schedule::Queued, ["PreToolUse 2", "PreToolUse 3", "PostToolUse 2", "PostToolUse 3"]),
    ] {
        let script = Script::of(
            conversation().turn(Turn::prompt("go").call(ModelCall::new().parallel(schedule, tools())).answer()),
        );
        let lines = played(&script);
        assert_eq!(lines[2..6], order);
        assert_eq!(lines[7], "PreInvocation 1/4");
    }
}

#[test]
fn hooks_of_parallel_tools_overlap_on_threads() {
    // Each hook waits for the other one's mark: one after the other they would never end.
    let meet = r#"step=$(sed 's/.*"stepIdx":\([0-9]*\).*/\1/'); : > "$LOG.$step"; while [ ! -e "$LOG.$((5 - step))" ]; do sleep 0.02; done"#;
    let world = World::with(&[(Event::PreToolUse, meet)]);
    let tools = vec![Tool::new("view_file"), Tool::new("list_dir")];
    let run = world.run(&Script::of(
        conversation().turn(Turn::prompt("go").call(ModelCall::new().parallel(Schedule::Threads, tools))),
    ));
    assert_eq!(run.report.totals.unwrap().timeouts, 0);
    assert_eq!(run.report.hooks.len(), 2);
}

#[test]
fn conversations_take_turns_event_by_event() {
    // The first one starts late: without turns the other would be ahead.
    let answer = |id: &str, count| {
        (0..count).fold(Conversation::new().id(id), |conversation, _| conversation.turn(Turn::prompt("hi").answer()))
    };
    let script =
        Script::new().with(answer(ID, 1).pause_ms(150)).with(answer(CHILD, 2)).interleave(Interleave::Alternate);
    let run = World::silent().run(&script);
    let order: String = run.report.hooks.iter().map(|hook| if hook.conversation == ID { 'a' } else { 'b' }).collect();
    assert_eq!(order, "ababababbbb");
}

#[test]
fn a_subagent_has_a_conversation_of_its_own_inside_the_tool() {
    let child = Conversation::new().id(CHILD).turn(Turn::prompt("look").answer());
    let script =
        Script::of(conversation().turn(Turn::prompt("go").tool(Tool::new("invoke_subagent").subagent(child)).answer()));
    let run = World::silent().run(&script);
    let order: Vec<_> = run.report.hooks.iter().map(|hook| (hook.conversation == CHILD, hook.event)).collect();
    assert_eq!(
        order[2..7],
        [
            (false, Event::PreToolUse),
            (true, Event::SessionStart),
            (true, Event::PreInvocation),
            (true, Event::PostInvocation),
            (true, Event::Stop),
        ]
    );
    assert_eq!(order[7], (false, Event::PostToolUse));
}

#[test]
fn a_subagent_in_the_background_makes_the_parent_stop_twice() {
    let child = Conversation::new().id(CHILD).pause_ms(30).turn(Turn::prompt("look").answer());
    let tool = Tool::new("invoke_subagent").subagent(child).in_background();
    let run = World::silent().run(&Script::of(conversation().turn(Turn::prompt("go").tool(tool))));
    let idle: Vec<_> = run
        .report
        .hooks_of(Event::Stop)
        .filter(|hook| hook.conversation == ID)
        .map(|hook| payload(hook)["fullyIdle"].clone())
        .collect();
    assert_eq!(idle, [false, true]);
    assert_eq!(run.report.hooks.last().map(|hook| hook.conversation.as_str()), Some(ID));
}

#[test]
fn a_conversation_without_an_id_gets_a_fresh_uuid() {
    let script = Script::of(Conversation::new().turn(Turn::prompt("hi").answer()));
    let ids: BTreeSet<_> = (0..2).map(|_| World::silent().run(&script).report.hooks[0].conversation.clone()).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.iter().all(|id| id.len() == 36));
}

#[test]
fn steps_and_model_can_change_inside_a_turn() {
    let first = ModelCall::new().tool(Tool::new("list_dir")).steps(2);
    let script = Script::of(
        conversation().turn(Turn::prompt("go").call(first).call(ModelCall::new().model("gemini-3.5-flash-low"))),
    );
    let run = World::silent().run(&script);
    let models: Vec<_> = run
        .report
        .hooks_of(Event::PreInvocation)
        .map(|hook| (payload(hook)["initialNumSteps"].clone(), payload(hook)["modelName"].clone()))
        .collect();
    assert_eq!(models, [(json!(1), json!("gemini-3.8-flash-high")), (json!(5), json!("gemini-3.5-flash-low"))]);
}
