//! The conversation that is played to every receiver: in two runs of the agent, with everything that a trace can hold.

use std::fs;
use std::os::unix::fs::symlink;

use agy_stand_in::behaviour::Behaviour;
use agy_stand_in::report::ToolResult;
use agy_stand_in::script::{Conversation, Ending, ModelCall, Outcome, Schedule, Script, Signal, Tool, Turn};

use crate::expected;
use crate::process::provided;
use crate::support::sandbox::Sandbox;

/// The conversation.
pub(crate) const ID: &str = "7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11";
/// What every settings file has besides the destination.
pub(crate) const COMMON: &str = "FI_HOOK_USER_ID=user-of-the-test\nFI_PROJECT_NAME=project of the test\n\
    OTEL_SERVICE_NAME=service-of-the-test\nOTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=e2e,team=a%20b\n";
/// Somebody else's span, in whose course the agent is started.
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The trace as it must be: see [`expected::shape`].
pub(crate) const WHOLE: [&str; 19] = [
    "- Antigravity session < -: 0 session.end=process_exit link=00f067aa0ba902b7",
    "0 Antigravity turn < Antigravity session: 1",
    "0 Model call < Antigravity turn: 1",
    "0 Model call < Antigravity turn: 1",
    "0 Model call < Antigravity turn: 1",
    "0 grep_search < Antigravity turn: 1 timing=includes_approval",
    "0 run_command < Antigravity turn: 2 timing=includes_approval",
    "0 view_file < Antigravity turn: 1 timing=includes_approval",
    "1 Antigravity turn < Antigravity session: 0 turn.interrupted=true \
     turn.unobserved_tools=[run_command] event=antigravity.tool.unobserved",
    "1 Model call < Antigravity turn: 0 timing=inferred",
    "2 Antigravity turn < Antigravity session: 2",
    "2 Model call < Antigravity turn: 0 timing=inferred",
    "3 Antigravity turn < Antigravity session: 1 session.resumed=true \
     turn.unnamed_steps=3 event=antigravity.step.unnamed event=antigravity.step.unnamed event=antigravity.step.unnamed",
    "3 Model call < Antigravity turn: 1",
    "3 Model call < Antigravity turn: 1",
    "3 list_dir < Antigravity turn: 1 timing=includes_approval",
    "4 Antigravity turn < Antigravity session: 0 session.resumed=true turn.interrupted=true \
     turn.unnamed_steps=2 event=antigravity.step.unnamed event=antigravity.step.unnamed",
    "4 Model call < Antigravity turn: 0 timing=inferred",
    "4 view_file < Antigravity turn: 1 timing=includes_approval",
];

/// A machine with these settings, on which the build that was given is installed for the agent's folder.
pub(crate) fn sandbox(settings: &str) -> Sandbox {
    sandbox_installed_with(&[], settings)
}

/// The same with options of `install`.
pub(crate) fn sandbox_installed_with(options: &[&str], settings: &str) -> Sandbox {
    let (program, sandbox) = (provided("E2E_BINARY"), Sandbox::new());
    sandbox.settings(settings);
    let folder = sandbox.home().join(".local/bin");
    fs::create_dir_all(&folder).unwrap();
    // A link, since a test build has 50 MB.
    symlink(program, folder.join("fi-hook-to-otlp")).unwrap();
    let output = sandbox.command(&[&["install"], options].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    sandbox
}

/// Five turns: tools one after the other, at the same time, with an error; a tool that the user stops with Esc; a model
/// error; and, resumed by an older agy in a process of its own, a turn with thin payloads and one that is killed.
pub(crate) fn play(sandbox: &Sandbox) {
    let steps = play_first_run(sandbox);
    // The session has ended before it is resumed; otherwise it would be one that never stopped.
    expected::ended(sandbox, ID);
    let run = sandbox.agy().run(&second_run(steps)).unwrap();
    assert_eq!(run.report.faults().count(), 0, "{:?}", run.report);
}

/// The turns before the resume; returns how many steps the conversation has then.
pub(crate) fn play_first_run(sandbox: &Sandbox) -> u64 {
    let run = sandbox.agy().env("TRACEPARENT", TRACEPARENT).run(&first_run()).unwrap();
    assert_eq!(run.report.faults().count(), 0, "{:?}", run.report);
    let ran = run.report.tools.iter().filter(|tool| tool.result == ToolResult::Ran).count();
    assert_eq!((ran, run.report.tools.len()), (3, 4), "{:?}", run.report.tools);
    run.report.totals.unwrap().conversations[ID]
}

/// Plays it, waits until it is delivered, and says what must have arrived.
pub(crate) fn play_and_deliver(sandbox: &Sandbox) -> Vec<expected::Seen> {
    play(sandbox);
    let whole = expected::delivered(sandbox, ID);
    assert_eq!(expected::shape(&whole), WHOLE);
    whole
}

/// The trace where the root is sent again after the resume, as for Future AGI, and so tells of it.
pub(crate) fn whole_with_root_updated() -> Vec<String> {
    WHOLE.iter().map(|line| line.replace("end=process_exit", "end=process_exit session.resumed=true")).collect()
}

fn first_run() -> Script {
    let tools = Turn::prompt("fix the test")
        .call(ModelCall::new().think_ms(20).tool(Tool::run_command("make test", ".").fails("exit status 2").run_ms(20)))
        .call(
            ModelCall::new().parallel(
                Schedule::Threads,
                vec![Tool::new("view_file").run_ms(30), Tool::new("grep_search").run_ms(10)],
            ),
        )
        .answer();
    let escaped = Turn::prompt("delete it").tool(Tool::run_command("rm -r x", ".").outcome(Outcome::Escaped));
    let failed = Turn::prompt("go on").ending(Ending::ModelError { message: "quota".to_owned() });
    let conversation = Conversation::new().id(ID).model("gemini-3.8-flash-high");
    Script::of(conversation.turn(tools).turn(escaped).turn(failed))
}

fn second_run(steps: u64) -> Script {
    let thin = Turn::prompt("list it").tool(Tool::new("list_dir").run_ms(10)).answer();
    let killed =
        Turn::prompt("and on").tool(Tool::new("view_file").run_ms(10)).ending(Ending::Killed { signal: Signal::Kill });
    let behaviour = Behaviour { profile: "1.1.0".parse().unwrap(), ..Behaviour::default() };
    Script::of(Conversation::new().id(ID).resume_at(steps).turn(thin).turn(killed)).behaviour(behaviour)
}
