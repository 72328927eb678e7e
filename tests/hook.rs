//! The hook process with the real binary: whatever comes in, the agent gets the same reply and exit 0.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use support::sandbox::{HANG, PROGRAM, Sandbox, eventually, feed};

const PAYLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/payloads");
const CONVERSATION: &str = "7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11";

/// The replies of every event, as agy must read them.
const REPLIES: [(&str, &str); 6] = [
    ("SessionStart", "{}"),
    ("PreInvocation", "{}"),
    ("PreToolUse", ""),
    ("PostToolUse", "{}"),
    ("PostInvocation", "{}"),
    ("Stop", r#"{"decision":""}"#),
];

fn reply(event: &str) -> &'static str {
    REPLIES.iter().find(|(known, _)| *known == event).map_or("", |(_, reply)| reply)
}

#[track_caller]
fn assert_neutral(output: &Output, event: &str, case: &str) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), reply(event), "{event} {case}");
    assert_eq!(output.status.code(), Some(0), "{event} {case}");
}

/// Name, event and bytes of every sample payload.
fn payloads() -> Vec<(String, String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(PAYLOADS)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let event = name.split('.').next().unwrap().to_owned();
            (name, event, fs::read(path).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() >= 40, "the samples are there");
    found
}

#[test]
fn every_sample_payload_gets_its_reply_and_reaches_the_store() {
    let sandbox = Sandbox::new();
    for (name, event, bytes) in payloads() {
        let output = sandbox.hook(&event, &bytes);
        assert_neutral(&output, &event, &name);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
    }
    let inbox = sandbox.profile().join("spool/new");
    eventually("the spool is folded", || (fs::read_dir(&inbox).ok()?.count() == 0).then_some(()));
    assert_eq!(sandbox.counter("unknown_event:AnyEvent"), 1);
    assert_eq!(sandbox.counter("surface_left_out"), 1, "the desktop app's payload");
    for rejected in ["payload_empty", "payload_truncated", "payload_not_an_object", "payload_without_conversation"] {
        assert_eq!(sandbox.counter(rejected), 0, "{rejected}");
    }
    assert!(!sandbox.spans(CONVERSATION).is_empty());
}

#[test]
fn odd_input_gets_the_same_reply_and_is_counted() {
    let sandbox = Sandbox::new();
    let large = fs::read(format!("{PAYLOADS}/PreToolUse.derived-large-args-200k.json")).unwrap();
    let whole = fs::read(format!("{PAYLOADS}/Stop.v1.4.7-NO_TOOL_CALL.json")).unwrap();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("blanks", b" \n\t ".to_vec()),
        ("garbage", b"\x00\x01\x02 not json at all".to_vec()),
        ("a list", b"[1,2,3]".to_vec()),
        ("cut in a string", large[..large.len() / 2].to_vec()),
        ("cut at the last brace", whole[..whole.len() - 3].to_vec()),
        ("not UTF-8", b"{\"conversationId\":\"odd-\xff\xfe\",\"stepIdx\":1,\"x\":\"\xc3\x28\"}".to_vec()),
        ("deeply nested", [b"{\"x\":".to_vec(), vec![b'['; 1_000_000], b"1".to_vec()].concat()),
        ("no conversation", b"{\"stepIdx\":1}".to_vec()),
        (
            "wrong types",
            br#"{"conversationId":{"a":1},"stepIdx":[],"toolCall":7,"error":{},"workspacePaths":{}}"#.to_vec(),
        ),
    ];
    for (event, _) in REPLIES {
        for (case, bytes) in &cases {
            assert_neutral(&sandbox.hook(event, bytes), event, case);
        }
    }
    let events = REPLIES.len() as u64;
    eventually("all is counted", || (sandbox.counter("payload_without_conversation") == 2 * events).then_some(()));
    assert_eq!(sandbox.counter("payload_empty"), 2 * events);
    assert_eq!(sandbox.counter("payload_not_an_object"), 2 * events);
    assert_eq!(sandbox.counter("payload_truncated"), 3 * events);
}

#[test]
fn fifty_megabytes_are_taken_in_bounded_memory() {
    let sandbox = Sandbox::new();
    // On a busy machine the writer may be quiet for so long that the hook stops waiting, and counts that: then once more.
    for given_up in 1..=5 {
        let head = format!(r#"{{"conversationId":"big","stepIdx":{given_up},"toolCall":{{"args":{{"CodeContent":""#);
        let mut payload = head.into_bytes();
        payload.resize(50 << 20, b'x');
        payload.extend_from_slice(br#""},"name":"write_to_file"}}"#);
        // The limit is on address space: the program, its libraries and the stack fit, the payload does not.
        let mut limited = Command::new("sh");
        limited.args(["-c", r#"ulimit -v 40000 && exec "$0" hook antigravity PostToolUse"#, PROGRAM]);
        sandbox.dress(&mut limited);
        let output = feed(limited.spawn().unwrap(), &payload);
        assert_neutral(&output, "PostToolUse", "50 MB");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let stored = eventually("its span is stored, or it was cut", || {
            let stored = sandbox.spans("big").iter().any(|stored| stored.span.name == "write_to_file");
            (stored || sandbox.counter("payload_truncated") == given_up).then_some(stored)
        });
        if stored {
            return;
        }
    }
    panic!("50 MB were never read to their end");
}

#[test]
fn a_stdin_that_never_closes_ends_at_the_closing_brace_or_after_a_bounded_wait() {
    let sandbox = Sandbox::new();
    let whole = fs::read(format!("{PAYLOADS}/PreToolUse.docs-run_command.json")).unwrap();
    for (case, bytes) in
        [("whole payload", &whole[..]), ("half a payload", &whole[..whole.len() / 2]), ("nothing", b"")]
    {
        let begun = Instant::now();
        let mut child = sandbox.command(&["hook", "antigravity", "PreToolUse"]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_neutral(&output, "PreToolUse", case);
        assert!(begun.elapsed() < HANG, "{case}");
        drop(stdin);
    }
}

#[test]
fn closed_descriptors_change_nothing() {
    let sandbox = Sandbox::new();
    let payload = fs::read(format!("{PAYLOADS}/Stop.v1.4.7-NO_TOOL_CALL.json")).unwrap();
    for closed in ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!(r#"exec "$0" hook antigravity Stop {closed}"#), PROGRAM]);
        sandbox.dress(&mut shell);
        let output = feed(shell.spawn().unwrap(), &payload);
        assert_eq!(output.status.code(), Some(0), "{closed}");
        let expected = if closed.contains("1>") { "" } else { reply("Stop") };
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{closed}");
    }
    // Nobody reads the reply or the complaint any more: no signal, no panic.
    let mut child =
        sandbox.command(&["hook", "antigravity", "Stop"]).env("FI_HOOK_STATE_DIR", "/proc/no").spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    let status = feed(child, &payload).status;
    assert_eq!(status.code(), Some(0));
    // A reply that went into a descriptor the spool file got would be in the record.
    for (path, bytes) in sandbox.files() {
        assert!(!bytes.starts_with(br#"{"decision""#), "{}", path.display());
    }
}

#[test]
fn words_that_are_missing_or_unknown_never_make_a_veto() {
    let sandbox = Sandbox::new();
    for words in [
        &["hook"][..],
        &["hook", "antigravity"],
        &["hook", "nobody", "PreToolUse"],
        &["hook", "antigravity", "SessionEnd"],
        &["hook", "antigravity", "PreToolUse", "--future-flag", "x"],
        &["hook", "--help"],
        &["hook", "antigravity", "PreToolUse", "--reply"],
    ] {
        let output = feed(sandbox.command(words).spawn().unwrap(), b"{\"conversationId\":\"c\"}");
        assert_neutral(&output, "", &format!("{words:?}"));
    }
    let output = feed(
        sandbox.command(&["hook", "antigravity", "PreToolUse", "--reply", "empty-decision"]).spawn().unwrap(),
        b"{\"conversationId\":\"c\"}",
    );
    assert_eq!(output.stdout, br#"{"decision":""}"#);
    eventually("counted by name", || (sandbox.counter("unknown_event:SessionEnd") == 1).then_some(()));
}

#[test]
fn without_a_place_for_state_the_reply_is_the_same() {
    let payload = fs::read(format!("{PAYLOADS}/PreToolUse.docs-run_command.json")).unwrap();
    for (event, _) in REPLIES {
        let sandbox = Sandbox::new();
        // An unprivileged user that no passwd entry knows, without HOME; as root, permissions would not bite.
        let mut nobody = sandbox.command(&["hook", "antigravity", event]);
        nobody.env_remove("HOME").uid(61_234).gid(61_234).current_dir("/");
        let output = feed(nobody.spawn().unwrap(), &payload);
        assert_neutral(&output, event, "no HOME");
        assert!(String::from_utf8_lossy(&output.stderr).contains("set HOME"), "{output:?}");

        for (case, state) in [("not writable", "/"), ("below a file", "/etc/passwd/x"), ("in /proc", "/proc/1/x")] {
            let mut denied = sandbox.command(&["hook", "antigravity", event]);
            denied.env("FI_HOOK_STATE_DIR", Path::new(state).join("state")).uid(61_234).gid(61_234).current_dir("/");
            let output = feed(denied.spawn().unwrap(), &payload);
            assert_neutral(&output, event, case);
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(complaint.contains("FI_HOOK_STATE_DIR"), "{case}: {complaint}");
        }
    }
}

#[test]
fn a_user_without_home_has_a_state_folder_where_the_environment_names_one() {
    let sandbox = Sandbox::new();
    for (number, name) in ["XDG_STATE_HOME", "XDG_RUNTIME_DIR", "FI_HOOK_STATE_DIR"].into_iter().enumerate() {
        let folder = sandbox.path().join(format!("place {number}"));
        fs::create_dir(&folder).unwrap();
        for open in [sandbox.path(), &folder] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::chown(&folder, Some(61_234), Some(61_234)).unwrap();
        let mut nobody = sandbox.command(&["hook", "antigravity", "PostToolUse"]);
        nobody.env_remove("HOME").env(name, &folder).uid(61_234).gid(61_234).current_dir("/");
        let output = feed(nobody.spawn().unwrap(), b"{\"conversationId\":\"c\"}");
        assert_neutral(&output, "PostToolUse", name);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
        assert!(fs::read_dir(&folder).unwrap().count() > 0, "{name}");
    }
}

#[test]
fn a_state_folder_that_is_not_ours_is_refused_in_plain_words() {
    let sandbox = Sandbox::new();
    let shared = sandbox.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    let mut hook = sandbox.command(&["hook", "antigravity", "PreToolUse"]);
    let output = feed(hook.env("FI_HOOK_STATE_DIR", &shared).spawn().unwrap(), b"{\"conversationId\":\"c\"}");
    assert_neutral(&output, "PreToolUse", "shared folder");
    assert!(String::from_utf8_lossy(&output.stderr).contains("writable by others"));
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0);
}

#[test]
fn a_disabled_hook_answers_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    for (event, _) in REPLIES {
        for switch in ["FI_HOOK_DISABLED", "OTEL_SDK_DISABLED"] {
            let mut hook = sandbox.command(&["hook", "antigravity", event]);
            let output = feed(hook.env(switch, "true").spawn().unwrap(), b"{\"conversationId\":\"c\"}");
            assert_neutral(&output, event, switch);
        }
    }
    assert!(!sandbox.state().exists());
}

#[test]
fn stdout_ends_with_the_hook_while_its_sender_lives() {
    let sandbox = Sandbox::new();
    let payload = fs::read(format!("{PAYLOADS}/SessionStart.v1.4.7.json")).unwrap();
    // A descriptor the agent left open, as descriptor 9, must not live on in the sender either.
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"exec "$0" hook antigravity SessionStart 9>&1 8>&2"#, PROGRAM]);
    sandbox.dress(&mut shell);
    let mut child = shell.stdout(writer.try_clone().unwrap()).stderr(Stdio::from(writer)).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&payload).unwrap();
    drop(shell);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert_eq!(said, "{}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // It may not have its own name yet: the hook does not wait until it has.
    let sender = eventually("the sender outlives the hook", || sandbox.senders().first().copied());
    let links: Vec<_> = fs::read_dir(format!("/proc/{sender}/fd"))
        .unwrap()
        .filter_map(|fd| fs::read_link(fd.unwrap().path()).ok()?.into_os_string().into_string().ok())
        .collect();
    assert!(links.iter().all(|link| !link.starts_with("pipe:")), "{links:?}");
    assert_eq!(fs::read_link(format!("/proc/{sender}/cwd")).unwrap(), Path::new("/"));
    assert!(fs::read_link(format!("/proc/{sender}/fd/0")).unwrap().ends_with("default/sender.lock"));
    let stat = fs::read_to_string(format!("/proc/{sender}/stat")).unwrap();
    let session: u32 = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().parse().unwrap();
    assert_eq!(session, sender, "a session of its own");
}

#[test]
fn the_senders_environment_is_an_allow_list() {
    let sandbox = Sandbox::new();
    let mut hook = sandbox.command(&["hook", "antigravity", "SessionStart"]);
    hook.env("GEMINI_API_KEY", "canary-key").env("LD_PRELOAD_X", "canary").env("OTEL_EXPORTER_OTLP_HEADERS", "a=b");
    feed(hook.spawn().unwrap(), b"{\"conversationId\":\"c\"}");
    let sender = eventually("a sender", || sandbox.senders().first().copied());
    let environment = fs::read(format!("/proc/{sender}/environ")).unwrap();
    let names: Vec<_> = environment
        .split(|byte| *byte == 0)
        .filter(|variable| !variable.is_empty())
        .map(|variable| String::from_utf8_lossy(variable).split('=').next().unwrap().to_owned())
        .collect();
    assert!(names.contains(&"HOME".to_owned()) && names.contains(&"FI_HOOK_STATE_DIR".to_owned()), "{names:?}");
    for name in &names {
        let allowed = name == "HOME" || ["FI_", "XDG_", "SSL_CERT_"].iter().any(|prefix| name.starts_with(prefix));
        assert!(allowed, "{name}");
    }
}

#[test]
fn two_hundred_hooks_at_a_cold_start_find_one_sender_and_lose_nothing() {
    let sandbox = Sandbox::new();
    let start = std::sync::Barrier::new(20);
    std::thread::scope(|scope| {
        for thread in 0..20 {
            let (sandbox, start) = (&sandbox, &start);
            scope.spawn(move || {
                start.wait();
                for hook in 0..10 {
                    let step = thread * 10 + hook;
                    let payload = format!(
                        r#"{{"conversationId":"race-{thread}","stepIdx":{step},"toolCall":{{"name":"tool_{step}"}},"error":""}}"#
                    );
                    assert_neutral(&sandbox.hook("PostToolUse", payload.as_bytes()), "PostToolUse", "race");
                    assert!(sandbox.senders().len() <= 1, "two senders");
                }
            });
        }
    });
    eventually("every event is a span", || {
        let tools = |thread| {
            sandbox.spans(&format!("race-{thread}")).iter().filter(|s| s.span.name.starts_with("tool_")).count()
        };
        ((0..20).map(tools).sum::<usize>() == 200).then_some(())
    });
    assert_eq!(sandbox.senders().len(), 1);
    let log = fs::read_to_string(sandbox.profile().join("sender.log")).unwrap();
    assert_eq!(log.matches(" start ").count(), 1, "{log}");
    for (path, _) in sandbox.files() {
        assert_eq!(fs::metadata(&path).map_or(0, |file| file.permissions().mode() & 0o077), 0, "{}", path.display());
    }
}
