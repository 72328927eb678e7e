//! How a hook command is run: where, with what, after which, and for how long.

use agy_stand_in::report::ToolResult;
use agy_stand_in::script::{Script, Tool, Turn};
use agy_stand_in::{Behaviour, Event, behaviour::TimeoutOutcome};
use serde_json::{Value, json};

use crate::world::{ID, World, conversation, hook, hook_with_timeout, lines, one_answer, one_tool, payload};

#[test]
fn a_hook_runs_in_the_folder_of_its_file_with_the_environment_of_agy() {
    let world = World::new();
    let command = r#"echo "$(pwd -P)|$ANTIGRAVITY_CONVERSATION_ID|$CANARY|$0" >> "$LOG""#;
    world.global(&json!({"a": hook(&[(Event::Stop, command)])}));
    world.workspace(&json!({"b": hook(&[(Event::Stop, command)])}));
    world.agy().env("CANARY", "sings").run(&one_answer()).unwrap();
    let expected = ["home/.gemini/config", "project/.agents"]
        .map(|folder| format!("{}|{ID}|sings|sh", world.path(folder).display()));
    assert_eq!(world.log(), expected);
}

#[test]
fn agy_itself_is_the_parent_of_the_shell() {
    let world = World::with(&[(Event::Stop, r#"echo $PPID >> "$LOG""#)]);
    let run = world.run(&one_answer());
    assert_eq!(world.log(), [run.report.start.unwrap().pid.to_string()]);
}

#[test]
fn the_conversation_variable_can_be_left_out_even_if_agy_has_one_itself() {
    let world = World::with(&[(Event::Stop, r#"echo "${ANTIGRAVITY_CONVERSATION_ID-unset}" >> "$LOG""#)]);
    let script = one_answer().behaviour(Behaviour { conversation_env: false, ..Behaviour::default() });
    world.agy().env("ANTIGRAVITY_CONVERSATION_ID", "outer").run(&script).unwrap();
    assert_eq!(world.log(), ["unset"]);
}

#[test]
fn a_hook_reads_the_payload_to_its_end() {
    let world = World::with(&[(Event::PreToolUse, r#"cat >> "$LOG""#)]);
    let run = world.run(&one_tool());
    let read: Value = serde_json::from_str(&world.log().concat()).unwrap();
    assert_eq!(read, payload(&run.report.hooks[0]));
    assert_eq!(read["toolCall"]["name"], "run_command");
}

#[test]
fn handlers_of_one_event_run_one_after_the_other_in_order() {
    let world = World::new();
    let slow = |name: &str| format!(r#"echo {name} in >> "$LOG"; sleep 0.05; echo {name} out >> "$LOG""#);
    let (a1, a2, b) = (slow("a1"), slow("a2"), slow("b"));
    world.global(&json!({"b": hook(&[(Event::Stop, &b)]), "a": hook(&[(Event::Stop, &a1), (Event::Stop, &a2)])}));
    let run = world.run(&one_answer());
    assert_eq!(world.log(), ["a1 in", "a1 out", "a2 in", "a2 out", "b in", "b out"]);
    let ids: Vec<_> = run.report.hooks.iter().map(|hook| hook.id.as_str()).collect();
    assert_eq!(ids, ["jsonhook__a_Stop_0_0", "jsonhook__a_Stop_1_0", "jsonhook__b_Stop_0_0"]);
}

#[test]
fn agy_waits_for_the_end_of_stdout_and_not_only_for_the_process() {
    let world =
        World::with(&[(Event::Stop, r#"(while [ ! -e "$LOG.go" ]; do sleep 0.02; done; echo late) & : > "$LOG.go""#)]);
    let run = world.run(&one_answer());
    assert_eq!(run.report.hooks[0].stdout, "late\n");
    assert!(!run.report.hooks[0].timed_out);
    let held = World::with(&[(Event::Stop, "sleep 0.4 & echo soon")]);
    let hook = held.run(&one_answer()).report.hooks.remove(0);
    assert_eq!(hook.stdout, "soon\n");
    assert!(hook.stdout_ms.unwrap() >= 400.0 && hook.exit_ms.unwrap() < hook.stdout_ms.unwrap(), "{hook:?}");
}

#[test]
fn a_child_that_holds_stderr_holds_agy_up_too() {
    let world = World::with(&[(Event::Stop, "sleep 0.4 > /dev/null & echo soon")]);
    let hook = world.run(&one_answer()).report.hooks.remove(0);
    assert!(hook.wall_ms >= 400.0 && hook.stdout_ms.unwrap() < hook.wall_ms, "{hook:?}");
}

#[test]
fn a_child_that_lets_go_of_stdout_and_stderr_holds_nobody_up() {
    let world = World::with(&[(Event::Stop, "sleep 20 > /dev/null 2>&1 & echo soon")]);
    let hook = world.run(&one_answer()).report.hooks.remove(0);
    assert!(!hook.timed_out && hook.wall_ms < 15_000.0, "{hook:?}");
}

#[test]
fn a_timeout_kills_the_whole_group_and_denies_the_tool() {
    let world = World::new();
    let command = r#"echo begun >> "$LOG"; (sleep 2; echo survived >> "$LOG") & wait"#;
    world.global(&json!({"x": hook_with_timeout(&[(Event::PreToolUse, command)], 1)}));
    let run = world.run(&one_tool());
    let hook = &run.report.hooks[0];
    assert!(hook.timed_out && hook.wall_ms >= 1000.0 && hook.signal == Some(9), "{hook:?}");
    assert_eq!((run.report.tools[0].result, run.report.tools[0].reason.as_str()), (ToolResult::Denied, "timed out"));
    // Longer than the child would have needed.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(world.log(), ["begun"]);
}

#[test]
fn a_timeout_can_be_open() {
    let world = World::new();
    world.global(&json!({"x": hook_with_timeout(&[(Event::PreToolUse, "sleep 20")], 1)}));
    let run = world.run(&one_tool().behaviour(Behaviour { on_timeout: TimeoutOutcome::Open, ..Behaviour::default() }));
    assert_eq!(run.report.tools[0].result, ToolResult::Ran);
    assert_eq!(run.report.totals.unwrap().timeouts, 1);
}

#[test]
fn a_process_that_left_the_group_and_keeps_stdout_costs_the_timeout_and_no_more() {
    let world = World::new();
    world.global(&json!({"x": hook_with_timeout(&[(Event::Stop, "setsid sleep 20 & echo soon")], 1)}));
    let hook = world.run(&one_answer()).report.hooks.remove(0);
    assert!(
        hook.timed_out && hook.exit_code == Some(0) && hook.stdout_ms.is_none() && hook.wall_ms < 10_000.0,
        "{hook:?}"
    );
    assert_eq!(hook.stdout, "soon\n");
}

#[test]
fn stdin_is_closed_after_the_payload_unless_it_is_kept_open() {
    let world = World::new();
    world.global(&json!({"x": hook_with_timeout(&[(Event::Stop, r#"cat > "$LOG""#)], 1)}));
    assert!(!world.run(&one_answer()).report.hooks[0].timed_out);
    let kept = world.agy().arg("--keep-stdin-open").run(&one_answer()).unwrap();
    assert!(kept.report.hooks[0].timed_out);
    assert_eq!(lines(&world.path("log")).concat(), kept.report.hooks[0].payload.get());
}

#[test]
fn a_hook_that_leaves_before_reading_a_large_payload_is_noticed() {
    let tool = Tool::new("write_to_file").args(json!({"CodeContent": "x".repeat(300_000)}));
    let script = Script::of(conversation().turn(Turn::prompt("write").tool(tool)));
    for (command, unread) in [(":", true), ("exec 0<&-; sleep 0.1", true), ("cat > /dev/null", false)] {
        let run = World::with(&[(Event::PreToolUse, command)]).run(&script);
        assert_eq!(run.report.hooks[0].stdin_unread, unread, "{command}");
        assert_eq!(run.report.tools[0].result, ToolResult::Ran, "{command}");
    }
}

#[test]
fn the_report_has_the_exact_bytes_of_stdout_and_the_exit() {
    let world = World::with(&[(Event::Stop, r"printf '\377\000a'; echo oops >&2; exit 3")]);
    let run = world.run(&one_answer());
    let hook = &run.report.hooks[0];
    assert_eq!(hook.stdout_bytes(), [0xff, 0, b'a']);
    assert_eq!(
        (hook.stderr.as_str(), hook.exit_code, hook.fault.as_deref()),
        ("oops\n", Some(3), Some("exit status 3"))
    );
    assert_eq!(run.report.totals.unwrap().faults, 1);
}
