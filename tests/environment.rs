//! Field report C13: no home, somebody else's folder, no locks, odd umasks, other users and namespaces, and an end of
//! everything right after the last event.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use agy_stand_in::script::{Conversation, Script, Tool, Turn};
use support::ledger::{assert_tools, flush, post, tool};
use support::program::copy_program;
use support::receiver::Receiver;
use support::sandbox::{PROGRAM, Sandbox, eventually, feed};

const NOBODY: u32 = 61_234;
const CONVERSATION: &str = "5b7e2f10-93a4-4c1d-8e6f-2a1b3c4d5e6f";

fn settings(receiver: &Receiver) -> String {
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_IDLE_SECONDS=0\n", receiver.url())
}

#[track_caller]
fn assert_neutral(output: &Output) {
    assert_eq!((output.stdout.as_slice(), output.status.code()), (b"{}".as_slice(), Some(0)), "{output:?}");
}

/// A folder of that user, and a copy of the program that others may run.
fn folder_of(sandbox: &Sandbox, name: &str, user: u32, mode: u32) -> PathBuf {
    let folder = sandbox.path().join(name);
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::chown(&folder, Some(user), Some(user)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    fs::set_permissions(sandbox.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if !sandbox.path().join("program").exists() {
        copy_program(Path::new(PROGRAM), &sandbox.path().join("program"));
    }
    folder
}

/// A hook of that user, without HOME.
fn hook_of(sandbox: &Sandbox, user: u32, environment: &[(&str, &Path)]) -> Output {
    let mut hook = Command::new(sandbox.path().join("program"));
    hook.args(["hook", "antigravity", "PostToolUse"]);
    sandbox.dress(&mut hook);
    hook.env_remove("HOME").envs(environment.iter().copied()).uid(user).gid(user).current_dir("/");
    feed(hook.spawn().unwrap(), post("c", 1).as_bytes())
}

#[test]
fn c13_an_unknown_user_without_home_has_a_state_folder_where_the_environment_names_one() {
    for (variable, inner) in
        [("FI_HOOK_STATE_DIR", ""), ("XDG_STATE_HOME", "fi-hook-to-otlp"), ("XDG_RUNTIME_DIR", "fi-hook-to-otlp")]
    {
        let sandbox = Sandbox::new();
        let folder = folder_of(&sandbox, "theirs", NOBODY, 0o700);
        let output = hook_of(&sandbox, NOBODY, &[(variable, &folder)]);
        assert_neutral(&output);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{variable}");
        let store = folder.join(inner).join("default/store.db");
        eventually("its sender works there", || store.exists().then_some(()));
    }
    let sandbox = Sandbox::new();
    folder_of(&sandbox, "theirs", NOBODY, 0o700);
    let output = hook_of(&sandbox, NOBODY, &[("XDG_STATE_HOME", Path::new("relative"))]);
    assert_neutral(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no state folder"), "{output:?}");
}

#[test]
fn c13_a_folder_of_somebody_else_or_open_to_others_is_refused_in_plain_words() {
    for (owner, mode) in [(0, 0o755), (NOBODY + 1, 0o777), (NOBODY, 0o770), (NOBODY, 0o707)] {
        let sandbox = Sandbox::new();
        let folder = folder_of(&sandbox, "theirs", owner, mode);
        let output = hook_of(&sandbox, NOBODY, &[("FI_HOOK_STATE_DIR", &folder)]);
        assert_neutral(&output);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(complaint.contains("belongs to someone else or is writable by others"), "{owner} {mode:o} {complaint}");
        assert!(complaint.contains("FI_HOOK_STATE_DIR"), "{complaint}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{owner} {mode:o}");
    }
}

#[test]
fn c13_two_users_have_folders_of_their_own() {
    let sandbox = Sandbox::new();
    for user in [NOBODY, NOBODY + 1] {
        let folder = folder_of(&sandbox, &format!("home{user}"), user, 0o700);
        let output = hook_of(&sandbox, user, &[("XDG_STATE_HOME", &folder)]);
        assert_neutral(&output);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let profile = folder.join("fi-hook-to-otlp/default");
        eventually("its sender works there", || profile.join("store.db").exists().then_some(()));
        assert_eq!(fs::metadata(profile).unwrap().uid(), user);
    }
}

#[test]
fn c13_a_file_system_without_locks_is_named_and_changes_no_reply() {
    let sandbox = Sandbox::new();
    for error in ["ENOLCK", "EOPNOTSUPP", "ENOSYS"] {
        let mut hook = Command::new("strace");
        hook.args(["-o", "/dev/null", "-e", &format!("inject=flock:error={error}"), PROGRAM]);
        hook.args(["hook", "antigravity", "PostToolUse"]);
        sandbox.dress(&mut hook);
        let output = feed(hook.spawn().unwrap(), post("c", 1).as_bytes());
        assert_neutral(&output);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(complaint.contains("has no locks") && complaint.contains("FI_HOOK_STATE_DIR"), "{complaint}");
    }
    assert_eq!(fs::read_dir(sandbox.inbox()).unwrap().count(), 3, "events wait in the spool");
}

#[test]
fn c13_whatever_the_umask_files_are_private_and_usable() {
    for umask in ["0000", "0777", "0022"] {
        let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
        sandbox.settings(&settings(&receiver));
        let mut hook = Command::new("sh");
        hook.args(["-c", &format!(r#"umask {umask}; exec "$0" hook antigravity PostToolUse"#), PROGRAM]);
        sandbox.dress(&mut hook);
        assert_neutral(&feed(hook.spawn().unwrap(), post("c", 1).as_bytes()));
        receiver.wait_for_spans(1);
        for (path, _) in sandbox.files() {
            let private = path.starts_with(sandbox.state());
            let mode = fs::metadata(&path).map_or(0o600, |file| file.permissions().mode() & 0o777);
            assert!(!private || mode == 0o600, "{umask}: {mode:o} {}", path.display());
        }
        for folder in [sandbox.state(), sandbox.profile(), sandbox.profile().join("spool/new")] {
            assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700, "{umask}");
        }
    }
}

/// Waits for the agent's first Stop in its report.
fn wait_for_stop(report: &Path) {
    eventually("the agent's Stop", || fs::read_to_string(report).ok()?.contains(r#""event":"Stop""#).then_some(()));
}

/// One turn, then a second one that is never over.
fn script() -> Script {
    let turn = Turn::prompt("go").tool(Tool::run_command("make test", ".")).answer();
    let waits = Turn::prompt("and wait").pause_ms(600_000);
    Script::of(Conversation::new().id(CONVERSATION).turn(turn).turn(waits))
}

/// The first turn has arrived, whole, and nothing of it under two ids. A sender that was killed before it recorded an
/// answer sends the same batch again.
#[track_caller]
fn assert_first_turn(receiver: &Receiver) {
    let spans = receiver.accepted_spans();
    let names: BTreeMap<_, _> = spans.into_iter().map(|span| (span.span_id, span.name)).collect();
    let count = |name: &str| names.values().filter(|other| *other == name).count();
    assert_eq!((count("Antigravity turn"), count("Model call"), count("run_command")), (1, 2, 1), "{names:?}");
}

#[test]
fn c13_an_agent_killed_with_its_process_group_right_after_stop_loses_nothing() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.register();
    let report = sandbox.path().join("report");
    let mut agy = sandbox.agy();
    agy.command().process_group(0);
    let mut agent = agy.spawn(&script(), &report).unwrap();
    wait_for_stop(&report);
    let group = rustix::process::Pid::from_raw(i32::try_from(agent.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    agent.wait().unwrap();
    // Nobody asks for it.
    let root = eventually("the session", || {
        receiver.accepted_spans().into_iter().find(|span| span.name == "Antigravity session")
    });
    assert!(format!("{:?}", root.attributes).contains("process_exit"));
    assert_first_turn(&receiver);
}

#[test]
fn c13_a_container_killed_right_after_stop_loses_nothing_that_its_disk_has() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.register();
    let (report, file) = (sandbox.path().join("report"), sandbox.path().join("script.json"));
    script().write(&file).unwrap();
    // PID 1 of a namespace of its own: its end is the end of everything in it, sender and all.
    let mut container = Command::new("unshare");
    container.args(["-m", "-p", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
    container.arg(r#""$0" --script "$1" --report "$2"; :"#).arg(support::agent::agy_program()).arg(file).arg(&report);
    sandbox.dress(&mut container);
    let mut container = container.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_stop(&report);
    container.kill().unwrap();
    container.wait().unwrap();
    eventually("all of it is gone", || sandbox.senders().is_empty().then_some(()));
    // From outside, where the agent's process id means nothing.
    flush(&sandbox);
    assert_first_turn(&receiver);
    let log = fs::read_to_string(sandbox.profile().join("sender.log")).unwrap();
    assert!(log.matches(" start ").count() >= 2, "there was one inside, and one outside: {log}");
}

#[test]
fn c13_hooks_in_another_pid_namespace_share_the_sender_and_lose_nothing() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver).replace("SECONDS=0", "SECONDS=30"));
    let mut expected = BTreeSet::new();
    for step in 0..20 {
        let words: &[&str] = if step % 2 == 0 { &["env"] } else { &["unshare", "-m", "-p", "--fork", "--mount-proc"] };
        let mut hook = Command::new(words.first().unwrap());
        hook.args(words.iter().skip(1)).args([PROGRAM, "hook", "antigravity", "PostToolUse"]);
        sandbox.dress(&mut hook);
        hook.env("ANTIGRAVITY_CONVERSATION_ID", "c");
        assert_neutral(&feed(hook.spawn().unwrap(), post("c", step).as_bytes()));
        expected.insert(tool("c", step));
    }
    flush(&sandbox);
    assert_tools(&receiver, &expected);
    assert_eq!(sandbox.senders().len(), 1);
}
