//! Field reports C7, C8 and C13 on the disk: full, read-only, forbidden, out of descriptors, damaged, from the future.
//! The agent's reply is always the same; what was in the spool before is delivered when the disk is well again.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use fi_hook_to_otlp::store::SCHEMA_VERSION;
use support::confined::Confined;
use support::ledger::{assert_tools, flush, post, tool};
use support::lock::HeldLock;
use support::program::copy_program;
use support::receiver::Receiver;
use support::sandbox::{PROGRAM, Sandbox, eventually, feed};

const FULL_DISK: &str = r#"mkdir -p "$0/.local/state"; mount -t tmpfs -o size=512k,mode=700 none "$0/.local/state""#;

fn settings(receiver: &Receiver) -> String {
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_IDLE_SECONDS=0\n", receiver.url())
}

fn names(steps: impl IntoIterator<Item = u64>) -> BTreeSet<String> {
    steps.into_iter().map(|step| tool("c", step)).collect()
}

#[track_caller]
fn assert_neutral(output: &Output) {
    assert_eq!((output.stdout.as_slice(), output.status.code()), (b"{}".as_slice(), Some(0)), "{output:?}");
}

#[test]
fn c8_a_full_disk_costs_no_event_that_was_in_the_spool() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    let confined = Confined::new(&sandbox, FULL_DISK);
    let profile = confined.outside(&sandbox.profile());
    let lock = HeldLock::take(&profile);
    for step in 0..5 {
        assert_neutral(&confined.hook("PostToolUse", &post("c", step)));
    }
    confined.shell(r#"dd if=/dev/zero of="$0/.local/state/filler" bs=4k 2>/dev/null || true"#);
    drop(lock);
    // More tries than a record that kills its senders would get.
    for step in 5..12 {
        let output = confined.hook("PostToolUse", &post("full", step));
        assert_neutral(&output);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(complaint.contains("No space left") && complaint.contains("FI_HOOK_STATE_DIR"), "{complaint}");
    }
    assert!(receiver.requests().is_empty());
    confined.shell(r#"rm "$0/.local/state/filler""#);
    assert_neutral(&confined.hook("PostToolUse", &post("c", 12)));
    let output = confined.command(&["flush"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_tools(&receiver, &names((0..5).chain([12])));
}

#[test]
fn c13_a_read_only_disk_changes_no_reply_and_is_named() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("{}FI_HOOK_IDLE_SECONDS=0\n", settings(&receiver)));
    let confined = Confined::new(&sandbox, FULL_DISK);
    for (mode, step) in [("rw", 0), ("ro", 1), ("rw", 2)] {
        // A sender has files open for writing, and a disk in use cannot be made read-only.
        let remount = format!(r#"mount -o remount,{mode} "$0/.local/state""#);
        confined.shell(&format!("for i in $(seq 100); do {remount} 2>/dev/null && exit 0; sleep 0.1; done; {remount}"));
        let output = confined.hook("PostToolUse", &post("c", step));
        assert_neutral(&output);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let named = complaint.contains("Read-only") && complaint.contains("FI_HOOK_STATE_DIR");
        assert_eq!(named, mode == "ro", "{complaint}");
        if mode == "rw" {
            let output = confined.command(&["flush"]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            // Else the file system is busy and cannot be made read-only.
            sandbox.senders_end();
        }
    }
    assert_tools(&receiver, &names([0, 2]));
}

#[test]
fn c13_a_forbidden_folder_changes_no_reply_and_is_named() {
    let sandbox = Sandbox::new();
    let state = sandbox.path().join("state");
    let own = |mode: u32| {
        fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(&state, Some(61_234), Some(61_234)).unwrap();
    };
    fs::create_dir(&state).unwrap();
    fs::set_permissions(sandbox.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = sandbox.path().join("program");
    copy_program(PROGRAM.as_ref(), &program);
    for (mode, refused) in [(0o500, true), (0o000, true), (0o700, false)] {
        own(mode);
        let mut hook = Command::new(&program);
        hook.args(["hook", "antigravity", "PostToolUse"]);
        sandbox.dress(&mut hook);
        // As root, permissions would not bite.
        hook.uid(61_234).gid(61_234).current_dir("/").env("FI_HOOK_STATE_DIR", &state).env("FI_HOOK_IDLE_SECONDS", "0");
        let output = feed(hook.spawn().unwrap(), post("c", 1).as_bytes());
        assert_neutral(&output);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let named = complaint.contains("Permission denied") && complaint.contains("FI_HOOK_STATE_DIR");
        assert_eq!(named, refused, "{mode:o}: {complaint}");
    }
}

/// A hook with limits of a shell's `ulimit`; its stdout is read to the end, as an agent does.
fn limited(sandbox: &Sandbox, limits: &str, payload: &str) -> (String, Output) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!(r#"{limits}; exec "$0" hook antigravity PostToolUse"#), PROGRAM]);
    sandbox.dress(&mut shell);
    let child = shell.stdout(writer).spawn().unwrap();
    drop(shell);
    let output = feed(child, payload.as_bytes());
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    (said, output)
}

#[test]
fn c3_without_descriptors_the_reply_is_the_same_and_no_sender_keeps_the_agents_pipe() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_IDLE_SECONDS=5\n", receiver.url()));
    sandbox.hook("PostToolUse", post("c", 0).as_bytes());
    let mut expected = names([0]);
    for descriptors in 4..=24 {
        sandbox.kill_sender();
        let (said, output) = limited(&sandbox, &format!("ulimit -n {descriptors}"), &post("c", descriptors));
        // A sender that has the pipe would hold up the reader until it ends.
        for sender in sandbox.senders() {
            let links = fs::read_dir(format!("/proc/{sender}/fd")).into_iter().flatten().flatten();
            let pipes = links.filter(|link| fs::read_link(link.path()).is_ok_and(|to| to.starts_with("pipe:")));
            assert_eq!(pipes.count(), 0, "{descriptors} descriptors: the sender has a pipe");
        }
        assert_eq!((said.as_str(), output.status.code()), ("{}", Some(0)), "{descriptors} descriptors: {output:?}");
        if output.stderr.is_empty() {
            expected.insert(tool("c", descriptors));
        }
    }
    assert!(expected.len() > 10, "{expected:?}");
    flush(&sandbox);
    let arrived: BTreeSet<_> = support::ledger::tools(&receiver.accepted_spans()).into_keys().collect();
    assert!(arrived.is_superset(&expected), "lost {:?}", expected.difference(&arrived));
}

#[test]
fn c7_a_record_that_is_cut_short_by_a_size_limit_is_none() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    // The limit counts blocks of 512 bytes; a record of a conversation with this name is longer than one.
    let long = post(&"c".repeat(250), 1);
    for (blocks, complaint) in [(0, true), (1, true)] {
        let (said, output) = limited(&sandbox, &format!("ulimit -f {blocks}"), &long);
        assert_eq!((said.as_str(), output.status.code()), ("{}", Some(0)), "{blocks} blocks: {output:?}");
        assert_eq!(!output.stderr.is_empty(), complaint, "{blocks} blocks: {output:?}");
    }
    assert_eq!(fs::read_dir(sandbox.profile().join("spool/tmp")).unwrap().count(), 0, "no half record is left");
    sandbox.hook("PostToolUse", post("c", 2).as_bytes());
    flush(&sandbox);
    assert_tools(&receiver, &names([2]));
    assert_eq!(sandbox.counter("spool_garbage"), 0);
}

#[test]
fn c7_garbage_in_the_spool_is_set_aside_and_a_newer_record_left_alone() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    let lock = HeldLock::take(&sandbox.profile());
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    let inbox = sandbox.inbox();
    // As if they were the oldest.
    let named = |number: u32| inbox.join(format!("00000000000000{number:02x}-1-0000000000000001"));
    let garbage: [&[u8]; 4] = [b"", b"\0\xff\xfe garbage", b"{\"v\":1}", b"{\"v\":1,\"capture\":"];
    for (number, bytes) in (0u32..).zip(garbage) {
        fs::write(named(number), bytes).unwrap();
    }
    let endless = fs::File::create(named(10)).unwrap();
    endless.set_len(1 << 40).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, named(11), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    fs::create_dir(named(12)).unwrap();
    fs::write(named(13), r#"{"v":2,"anything":[]}"#).unwrap();
    fs::write(inbox.join("README"), "none of ours").unwrap();
    // A sender died while it read all of them.
    let all: Vec<_> =
        fs::read_dir(&inbox).unwrap().map(|file| format!("0 0 {}", file.unwrap().file_name().display())).collect();
    fs::write(sandbox.profile().join("spool/folding"), format!("{}\n{}", all.len(), all.join("\n"))).unwrap();
    drop(lock);
    sandbox.hook("PostToolUse", post("c", 2).as_bytes());
    eventually("the others arrive", || (receiver.accepted_spans().len() >= 2).then_some(()));
    assert_tools(&receiver, &names([1, 2]));
    // It lingers no time, and what it cannot read is no reason to stay.
    sandbox.senders_end();
    assert_eq!(sandbox.counter("spool_garbage"), 7);
    assert_eq!(fs::read_dir(sandbox.profile().join("spool/garbage")).unwrap().count(), 7);
    assert_eq!(fs::read(named(13)).unwrap(), br#"{"v":2,"anything":[]}"#);
    let output = sandbox.command(&["flush", "--timeout", "2"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && complaint.contains("newer"), "{complaint}");
    let log = fs::read_to_string(sandbox.profile().join("sender.log")).unwrap();
    assert!(log.lines().count() < 200, "it ran round and round:\n{log}");
}

#[test]
fn c7_two_thousand_newer_records_do_not_hide_ours() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    let inbox = sandbox.inbox();
    for number in 0..2000 {
        fs::write(inbox.join(format!("{number:016x}-1-0000000000000001")), r#"{"v":2}"#).unwrap();
    }
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    receiver.wait_for_spans(1);
    assert_tools(&receiver, &names([1]));
    sandbox.senders_end();
}

#[test]
fn c7_a_damaged_store_is_set_aside_also_by_flush() {
    for whole in [true, false] {
        let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
        sandbox.settings(&settings(&receiver));
        sandbox.hook("PostToolUse", post("c", 1).as_bytes());
        receiver.wait_for_spans(1);
        sandbox.senders_end();
        let store = sandbox.profile().join("store.db");
        let mut bytes = fs::read(&store).unwrap();
        let from = if whole { 0 } else { bytes.len() / 2 };
        bytes[from..].fill(b'#');
        fs::write(&store, bytes).unwrap();
        let lock = HeldLock::take(&sandbox.profile());
        sandbox.hook("PostToolUse", post("c", 2).as_bytes());
        drop(lock);
        flush(&sandbox);
        assert_tools(&receiver, &names([1, 2]));
        assert_eq!(sandbox.counter("store_damaged"), 1);
    }
}

#[test]
fn c7_a_newer_store_is_left_alone_and_its_events_wait() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    receiver.wait_for_spans(1);
    sandbox.senders_end();
    let set_version = |version: i64| {
        let db = rusqlite::Connection::open(sandbox.profile().join("store.db")).unwrap();
        db.pragma_update(None, "user_version", version).unwrap();
        db.close().unwrap();
        fs::read(sandbox.profile().join("store.db")).unwrap()
    };
    let before = set_version(SCHEMA_VERSION + 1);
    for step in 2..4 {
        assert_neutral(&sandbox.hook("PostToolUse", post("c", step).as_bytes()));
        sandbox.senders_end();
    }
    let output = sandbox.command(&["flush", "--timeout", "2"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && complaint.contains("update it"), "{complaint}");
    assert_eq!(fs::read(sandbox.profile().join("store.db")).unwrap(), before);
    set_version(SCHEMA_VERSION);
    flush(&sandbox);
    assert_tools(&receiver, &names([1, 2, 3]));
}

#[test]
fn c8_events_that_no_sender_can_fold_stay_within_the_bound() {
    let sandbox = Sandbox::new();
    sandbox.settings("FI_HOOK_MAX_MB=1\nFI_HOOK_IDLE_SECONDS=0\n");
    let inbox = sandbox.inbox();
    let db = rusqlite::Connection::open(sandbox.profile().join("store.db")).unwrap();
    db.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    db.close().unwrap();
    for number in 0..400 {
        fs::write(inbox.join(format!("{number:016x}-1-0000000000000001")), vec![b' '; 4096]).unwrap();
    }
    assert_neutral(&sandbox.hook("PostToolUse", post("c", 1).as_bytes()));
    sandbox.senders_end();
    let mut left: Vec<_> = fs::read_dir(&inbox).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert!((100..256).contains(&left.len()), "{} are left", left.len());
    assert!(!left.last().unwrap().to_str().unwrap().starts_with("00000000000000"), "the newest stay");
}

#[test]
fn c7_a_store_that_is_locked_for_a_while_is_waited_for() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    receiver.wait_for_spans(1);
    sandbox.senders_end();
    let db = rusqlite::Connection::open(sandbox.profile().join("store.db")).unwrap();
    db.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_neutral(&sandbox.hook("PostToolUse", post("c", 2).as_bytes()));
    // Longer than the store waits by itself.
    std::thread::sleep(std::time::Duration::from_secs(7));
    assert_eq!(receiver.accepted_spans().len(), 1);
    db.execute_batch("ROLLBACK").unwrap();
    // No further hook, no flush.
    eventually("the event arrives", || (receiver.accepted_spans().len() >= 2).then_some(()));
    assert_tools(&receiver, &names([1, 2]));
}

#[test]
fn c8_a_store_that_refuses_is_not_taken_for_a_deadly_record() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    receiver.wait_for_spans(1);
    sandbox.senders_end();
    let db = rusqlite::Connection::open(sandbox.profile().join("store.db")).unwrap();
    let refusal = "CREATE TRIGGER refusal BEFORE INSERT ON folded_files BEGIN SELECT RAISE(ABORT, 'refused'); END";
    db.execute_batch(refusal).unwrap();
    for step in 2..9 {
        assert_neutral(&sandbox.hook("PostToolUse", post("c", step).as_bytes()));
        sandbox.senders_end();
    }
    let log = fs::read_to_string(sandbox.profile().join("sender.log")).unwrap();
    assert!(log.matches("refused").count() >= 5, "{log}");
    db.execute_batch("DROP TRIGGER refusal").unwrap();
    flush(&sandbox);
    assert_tools(&receiver, &names(1..9));
    assert_eq!(sandbox.counter("spool_deadly"), 0);
}
