//! `flush`: everything is there when it says so, and it says why when not.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::process::{Command, Output};
use std::time::Duration;

use agy_stand_in::script::{Conversation, Script, Tool, Turn};
use fi_hook_to_otlp::store::Store;
use fi_hook_to_otlp::sys;
use support::crafted::{At, post_tool, record};
use support::receiver::{Receiver, Reply};
use support::sandbox::{PROGRAM, Sandbox, eventually, feed};

const CONVERSATION: &str = "9c4e6a0b-1c55-4f0e-9d0a-3b1f7a2c5d42";

fn settings(receiver: &Receiver) -> String {
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", receiver.url())
}

fn script() -> Script {
    let turn = Turn::prompt("go").tool(Tool::run_command("make test", ".")).answer();
    Script::of(Conversation::new().id(CONVERSATION).turn(turn))
}

fn flush(sandbox: &Sandbox, timeout: &str) -> Output {
    sandbox.command(&["flush", "--timeout", timeout]).output().unwrap()
}

fn tool(step: u32) -> String {
    format!(r#"{{"conversationId":"{CONVERSATION}","stepIdx":{step},"toolCall":{{"name":"tool_{step}"}},"error":""}}"#)
}

#[track_caller]
fn assert_left(output: &Output, words: &[&str]) {
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    for word in words {
        assert!(complaint.contains(word), "{word} in {complaint}");
    }
}

#[test]
fn the_ci_recipe_delivers_everything_before_the_machine_goes() {
    for _ in 0..3 {
        let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
        sandbox.settings(&settings(&receiver));
        sandbox.register();
        let script_file = sandbox.path().join("script.json");
        script().write(&script_file).unwrap();
        // As in a pipeline: the agent, then flush, then everything is killed at once.
        let mut recipe = Command::new("sh");
        recipe.args(["-c", r#""$0" --script "$1" --report /dev/null; "$2" flush --timeout 30"#]);
        recipe.arg(support::agent::agy_program()).arg(&script_file).arg(PROGRAM);
        sandbox.dress(&mut recipe);
        let output = feed(recipe.spawn().unwrap(), b"");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let spans = receiver.accepted_spans();
        sandbox.kill_sender();
        let names = |name: &str| spans.iter().filter(|span| span.name == name).count();
        assert_eq!((names("Antigravity session"), names("Antigravity turn"), names("run_command")), (1, 1, 1));
        assert_eq!(spans.len(), sandbox.spans(CONVERSATION).len());
    }
}

#[test]
fn what_is_left_is_said_with_the_reason_and_kept() {
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.hook("PostToolUse", tool(1).as_bytes());
    eventually("the answer is recorded", || {
        sandbox.spans(CONVERSATION).iter().any(|stored| stored.outcome.is_some()).then_some(())
    });
    receiver.stop();
    sandbox.hook("PostToolUse", tool(2).as_bytes());
    assert_left(&flush(&sandbox, "2"), &["1 spans are left", "/v1/traces"]);
    receiver.restart();
    receiver.otherwise(Reply::status(401));
    assert_left(&flush(&sandbox, "2"), &["1 spans are left", "unauthorized"]);
    receiver.otherwise(Reply::ok());
    let done = flush(&sandbox, "30");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let names: Vec<_> = receiver.accepted_spans().into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["tool_1", "tool_2"]);
}

#[test]
fn a_sender_that_is_killed_meanwhile_is_started_again() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    receiver.script([Reply::ok().after(Duration::from_secs(4))]);
    sandbox.hook("PostToolUse", tool(1).as_bytes());
    receiver.wait_for(1);
    let flush = sandbox.command(&["flush"]).spawn().unwrap();
    sandbox.kill_sender();
    assert_eq!(feed(flush, b"").status.code(), Some(0));
    assert!(sandbox.spans(CONVERSATION).iter().all(|stored| stored.outcome.as_deref() == Some("delivered")));
}

#[test]
fn what_is_asked_of_a_sender_that_is_killed_is_asked_of_the_next() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    assert_eq!(flush(&sandbox, "30").status.code(), Some(0));
    sandbox.kill_sender();
    // As long as something is held back nobody is answered, and this is, until it is taken away.
    let hour = 3_600_000_000_000;
    let clocks = sys::clocks();
    let at = At { realtime_ns: clocks.realtime_ns, boottime_ns: clocks.boottime_ns + hour, boot: &sys::boot_id() };
    sandbox.leave(at, 0, &record(CONVERSATION, at, post_tool(CONVERSATION, 1)));
    let flush = sandbox.command(&["flush"]).spawn().unwrap();
    let log = || std::fs::read_to_string(sandbox.profile().join("sender.log")).unwrap_or_default();
    eventually("the sender knows", || (log().matches("settings read again").count() == 2).then_some(()));
    sandbox.kill_sender();
    let held = std::fs::read_dir(sandbox.inbox()).unwrap().flatten().map(|file| file.path());
    for file in held.filter(|file| std::fs::read_to_string(file).unwrap().contains(CONVERSATION)) {
        std::fs::remove_file(file).unwrap();
    }
    assert_eq!(feed(flush, b"").status.code(), Some(0));
}

#[test]
fn a_terminated_sender_records_the_answer_it_waits_for() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    receiver.script([Reply::ok().after(Duration::from_secs(2))]);
    sandbox.hook("PostToolUse", tool(1).as_bytes());
    receiver.wait_for(1);
    for sender in sandbox.senders() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(sender).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
    sandbox.senders_end();
    assert_eq!(flush(&sandbox, "30").status.code(), Some(0));
    assert_eq!(receiver.requests().len(), 1, "what was answered is not sent again");
}

#[test]
fn without_a_destination_or_with_another_environments_spans_it_says_so() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.hook("PostToolUse", tool(1).as_bytes());
    assert_left(&flush(&sandbox, "100000"), &["1 spans are not delivered", "destination none"]);

    let (sandbox, other) = (Sandbox::new(), "http://127.0.0.1:9");
    sandbox.settings(&settings(&receiver));
    let mut hook = sandbox.command(&["hook", "antigravity", "PostToolUse"]);
    hook.env("FI_BASE_URL", other).env("FI_API_KEY", "k").env("FI_SECRET_KEY", "s");
    feed(hook.spawn().unwrap(), tool(1).as_bytes());
    // At once, while it is in the spool, and when it is stored.
    assert_left(&flush(&sandbox, "5"), &["of profile", "environment"]);
    eventually("it is stored", || {
        let folders = std::fs::read_dir(sandbox.state()).ok()?.flatten().map(|entry| entry.path());
        let stored = |folder: &std::path::Path| Store::open_read_only(folder).ok()??.waiting().ok();
        folders.filter_map(|folder| stored(&folder)).any(|waiting| waiting.spans > 0).then_some(())
    });
    // With the session, which Future AGI is told of first.
    assert_left(&flush(&sandbox, "5"), &["2 of profile", "environment"]);
}
