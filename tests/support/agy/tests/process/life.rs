//! The end of the program: killed, interrupted, and what is left behind.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use agy_stand_in::report::Totals;
use agy_stand_in::script::{Ending, ModelCall, Outcome, Script, Signal, Tool, Turn};
use agy_stand_in::{Event, Report};
use rustix::process::{Pid, Signal as Sent, kill_process};

use crate::world::{World, conversation, lines, one_answer};

#[test]
fn killed_while_a_tool_runs() {
    let turn = Turn::prompt("go").tool(Tool::new("run_command").outcome(Outcome::Killed)).answer();
    let run = World::silent().run(&Script::of(conversation().turn(turn)));
    assert_eq!(run.status.signal(), Some(9));
    assert_eq!(run.report.events(), [Event::SessionStart, Event::PreInvocation, Event::PreToolUse]);
    assert!(run.report.totals.is_none() && run.report.tools.is_empty());
}

#[test]
fn killed_between_tools_and_instead_of_a_stop() {
    let between = Turn::prompt("go")
        .call(ModelCall::new().tool(Tool::new("list_dir")).kill(Signal::Kill).tool(Tool::new("view_file")));
    let run = World::silent().run(&Script::of(conversation().turn(between)));
    assert_eq!((run.status.signal(), run.report.events().last()), (Some(9), Some(&Event::PostToolUse)));
    let instead = Turn::prompt("go").answer().ending(Ending::Killed { signal: Signal::Term });
    let run = World::silent().run(&Script::of(conversation().turn(instead).turn(Turn::prompt("never").answer())));
    assert_eq!((run.status.code(), run.report.events().last()), (Some(143), Some(&Event::PreInvocation)));
    assert_eq!(run.report.totals.unwrap().interrupted_by, Some(15));
}

#[test]
fn killed_inside_a_hook_leaves_the_hook_running() {
    let world =
        World::with(&[(Event::Stop, r#"while kill -0 $PPID 2>/dev/null; do sleep 0.02; done; echo alone >> "$LOG""#)]);
    let run = world.run(&one_answer().kill_after_ms(300));
    assert_eq!((run.status.signal(), run.report.hooks.len()), (Some(9), 0));
    wait_for(&world.path("log"), "alone");
}

#[test]
fn a_term_signal_fires_nothing_more_and_leaves_the_hook_to_end() {
    let world = World::with(&[
        (
            Event::PreInvocation,
            r#"echo in >> "$LOG"; while [ ! -e "$LOG.go" ]; do sleep 0.02; done; echo out >> "$LOG""#,
        ),
        (Event::Stop, r#"echo stop >> "$LOG""#),
    ]);
    let totals = interrupted(&world, Sent::TERM, 143);
    assert_eq!((totals.interrupted_by, totals.exit_code, totals.hooks.len()), (Some(15), 143, 0));
    world.write("log.go", "");
    wait_for(&world.path("log"), "out");
    assert_eq!(world.log(), ["in", "out"]);
}

#[test]
fn an_interrupt_reaches_the_running_hook_as_from_a_terminal() {
    let world = World::with(&[(
        Event::PreInvocation,
        r#"trap 'echo interrupted >> "$LOG"; exit' INT; echo in >> "$LOG"; while :; do sleep 0.02; done"#,
    )]);
    let totals = interrupted(&world, Sent::INT, 130);
    assert_eq!(totals.interrupted_by, Some(2));
    wait_for(&world.path("log"), "interrupted");
}

#[test]
fn a_signal_between_hooks_wins_over_the_ordinary_end() {
    for _ in 0..5 {
        let world = World::with(&[(Event::Stop, r#"[ -e "$LOG" ] || echo in >> "$LOG""#)]);
        let report = world.path("report");
        let script =
            Script::of((0..5_000).fold(conversation(), |conversation, _| conversation.turn(Turn::prompt("hi"))));
        let mut child = world.agy().spawn(&script, &report).unwrap();
        wait_for(&world.path("log"), "in");
        kill_process(Pid::from_child(&child), Sent::TERM).unwrap();
        assert_eq!(exit_code(&mut child), Some(143));
        assert_eq!(Report::read(&report).unwrap().totals.unwrap().exit_code, 143);
    }
}

/// Starts a conversation, waits until its hook has written `in`, sends the signal, and waits for the exit code.
fn interrupted(world: &World, signal: Sent, code: i32) -> Totals {
    let report = world.path("report");
    let mut child = world.agy().spawn(&one_answer(), &report).unwrap();
    wait_for(&world.path("log"), "in");
    kill_process(Pid::from_child(&child), signal).unwrap();
    assert_eq!(exit_code(&mut child), Some(code));
    Report::read(&report).unwrap().totals.unwrap()
}

fn exit_code(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    panic!("the program did not end");
}

/// Waits for a line in a file that another process writes.
fn wait_for(path: &Path, line: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while !lines(path).iter().any(|found| found == line) {
        assert!(Instant::now() < end, "no {line:?} in {}: {:?}", path.display(), lines(path));
        std::thread::sleep(Duration::from_millis(5));
    }
}
