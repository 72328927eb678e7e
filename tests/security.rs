//! docs/security.md, sentence by sentence, with the real binary: keys stay where they are needed, a workspace sets nothing,
//! nothing listens, no name comes from a payload, nobody is trusted silently.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use support::certificates::Authority;
use support::ledger::{assert_tools, flush, post, tool};
use support::lock::HeldLock;
use support::receiver::{Receiver, Reply, Speaks};
use support::sandbox::{Sandbox, eventually, feed};

const KEYS: [&str; 2] = ["hush-api-4711", "hush-secret-4712"];

fn future_agi(receiver: &Receiver) -> [(&'static str, String); 3] {
    [("FI_BASE_URL", receiver.url()), ("FI_API_KEY", KEYS[0].into()), ("FI_SECRET_KEY", KEYS[1].into())]
}

#[track_caller]
fn assert_no_key(place: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    assert!(KEYS.iter().all(|key| !text.contains(key)), "{place}: {text}");
}

/// No file but the settings, no name of a file, no command line and no output has a key.
#[track_caller]
fn assert_no_key_of(sandbox: &Sandbox) {
    for (path, bytes) in sandbox.files() {
        assert_no_key("a name", path.as_os_str().as_encoded_bytes());
        if !path.ends_with(".config/fi-hook-to-otlp/env") {
            assert_no_key(&path.display().to_string(), &bytes);
        }
    }
    for sender in sandbox.senders() {
        assert_no_key("cmdline", &fs::read(format!("/proc/{sender}/cmdline")).unwrap_or_default());
    }
}

#[test]
fn keys_are_in_no_file_log_output_or_command_line() {
    for in_environment in [false, true] {
        let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
        let log = format!("FI_HOOK_LOG_FILE={}\n", sandbox.home().join("hooks.log").display());
        let keys = future_agi(&receiver);
        let lines: String = keys.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        sandbox.settings(&if in_environment { log } else { log + &lines });
        let command = |words: &[&str]| -> Command {
            let mut command = sandbox.command(words);
            if in_environment {
                command.envs(keys.iter().map(|(name, value)| (name, value)));
            }
            command
        };
        // The receiver knows them, and repeats them in whatever it says.
        receiver.script([Reply::status(401).body(KEYS.join(" and ")), Reply::status(400).body(KEYS.join(" or "))]);
        for step in 0..3 {
            let hook = command(&["hook", "antigravity", "PostToolUse"]).spawn().unwrap();
            let output = feed(hook, post("c", step).as_bytes());
            assert_no_key("a hook", &[output.stdout, output.stderr].concat());
            std::thread::sleep(std::time::Duration::from_millis(60));
            assert_no_key_of(&sandbox);
        }
        for words in [&["flush", "--timeout", "60"][..], &["show"], &["show", "--list"]] {
            let output = command(words).output().unwrap();
            assert!(output.status.success(), "{words:?} {output:?}");
            assert_no_key(words[0], &[output.stdout, output.stderr].concat());
            assert_no_key_of(&sandbox);
        }
        assert_tools(&receiver, &(0..3).map(|step| tool("c", step)).collect());
        assert!(receiver.requests().iter().all(|request| request.header("x-api-key") == Some(KEYS[0])));
    }
}

#[test]
fn a_settings_file_that_others_can_read_is_warned_about() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    let lines: String = future_agi(&receiver).iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    for (mode, warned) in [(0o600, false), (0o644, true)] {
        sandbox.settings(&lines);
        let file = sandbox.home().join(".config/fi-hook-to-otlp/env");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        sandbox.hook("PostToolUse", post("c", mode.into()).as_bytes());
        let output = sandbox.command(&["flush", "--timeout", "60"]).output().unwrap();
        assert!(output.status.success());
        let log = fs::read_to_string(sandbox.profile().join("sender.log")).unwrap();
        for said in [String::from_utf8_lossy(&output.stderr).into_owned(), log] {
            assert_eq!(said.contains("other users can read its keys: chmod 600 it"), warned, "{mode:o}: {said}");
            assert_no_key("a warning", said.as_bytes());
        }
    }
}

#[test]
fn a_workspace_can_set_nothing() {
    let (sandbox, receiver, trap) = (Sandbox::new(), Receiver::start(), Receiver::start());
    sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", receiver.url()));
    let lines = format!(
        "OTEL_EXPORTER_OTLP_ENDPOINT={0}\nFI_BASE_URL={0}\nFI_API_KEY=k\nFI_SECRET_KEY=s\nFI_HOOK_CAPTURE_CONTENT=1\nFI_HOOK_STATE_DIR=.\n",
        trap.url()
    );
    let folders =
        ["", "fi-hook-to-otlp", ".config/fi-hook-to-otlp", ".agents", ".agents/fi-hook-to-otlp", ".local/state"];
    for folder in folders.map(|folder| sandbox.work().join(folder)) {
        fs::create_dir_all(&folder).unwrap();
        for name in ["env", ".env", "hooks.json", "config", "otel.env"] {
            fs::write(folder.join(name), &lines).unwrap();
        }
    }
    let before = listing(&sandbox.work());
    // Names that lead into the workspace, if anybody took them for more than names.
    for (step, variables) in [
        &[][..],
        &[("XDG_CONFIG_HOME", "."), ("XDG_STATE_HOME", ".")],
        &[("XDG_CONFIG_HOME", ""), ("XDG_STATE_HOME", "")],
        &[("FI_HOOK_CONFIG", "env"), ("FI_HOOK_STATE_DIR", ".local/state")],
    ]
    .into_iter()
    .enumerate()
    {
        let payload = format!(
            r#"{{"conversationId":"c","stepIdx":{step},"error":"hush-content","toolCall":{{"name":"{}","args":{{"CommandLine":"hush-content"}}}},"workspacePaths":["{}"]}}"#,
            tool("c", step as u64),
            sandbox.work().display()
        );
        let mut hook = sandbox.command(&["hook", "antigravity", "PostToolUse"]);
        hook.envs(variables.iter().copied());
        assert_eq!(feed(hook.spawn().unwrap(), payload.as_bytes()).stdout, b"{}");
    }
    // A settings file that cannot be used is none; so that hook's spans have no destination and stay here.
    eventually("all is stored", || (sandbox.stored_tools() >= 4).then_some(()));
    assert_eq!(trap.requests().len(), 0);
    assert_eq!(listing(&sandbox.work()), before);
    for (path, bytes) in sandbox.files() {
        assert!(!String::from_utf8_lossy(&bytes).contains("hush-content"), "{}", path.display());
    }
}

/// Every path below a folder.
fn listing(folder: &Path) -> BTreeSet<std::path::PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            found.insert(entry.path());
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn no_name_of_a_file_is_made_of_a_payload_and_all_are_private() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", receiver.url()));
    let lock = HeldLock::take(&sandbox.profile());
    for name in
        ["../../../../../../../../tmp/hush-name", "/etc/hush-name", "hush-name\u{0}", "..", "hush-name\n;rm -rf"]
    {
        let payload =
            serde_json::json!({"conversationId": name, "stepIdx": 1, "toolCall": {"name": name}, "error": name});
        sandbox.hook("PostToolUse", payload.to_string().as_bytes());
    }
    drop(lock);
    flush(&sandbox);
    let files = listing(sandbox.path());
    assert!(!files.iter().any(|path| path.display().to_string().contains("hush-name")), "{files:?}");
    assert!(!Path::new("/tmp/hush-name").exists() && !Path::new("/etc/hush-name").exists());
    for path in listing(&sandbox.state()) {
        // A file of SQLite's may go meanwhile.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let most = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.mode() & 0o777, most, "{}", path.display());
    }
}

#[test]
fn nothing_listens() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", receiver.url()));
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    receiver.wait_for_spans(1);
    let sender = sandbox.senders()[0];
    let links = fs::read_dir(format!("/proc/{sender}/fd")).unwrap().map(|file| fs::read_link(file.unwrap().path()));
    let sockets: BTreeSet<String> = links
        .filter_map(|link| Some(link.ok()?.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    assert!(!sockets.is_empty(), "it has a connection to the receiver");
    let mut seen = 0;
    for (table, listens) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07"), ("raw", "07")] {
        for line in fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default().lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if sockets.contains(words[9]) {
                seen += 1;
                assert_ne!(words[3], listens, "{table}: {line}");
            }
        }
    }
    assert!(seen > 0, "its connection is among what was looked at");
}

#[test]
fn certificates_are_looked_at_whatever_is_set() {
    let authority = Authority::new();
    for (speaks, protocol) in [(Speaks::Http, "http/protobuf"), (Speaks::Grpc, "grpc")] {
        let receiver = Receiver::start_with(speaks, Some(authority.issue(&["127.0.0.1"], 80).server()));
        let sandbox = Sandbox::new();
        sandbox.settings(&format!(
            "OTEL_EXPORTER_OTLP_ENDPOINT={}\nOTEL_EXPORTER_OTLP_PROTOCOL={protocol}\nOTEL_EXPORTER_OTLP_INSECURE=true\nOTEL_EXPORTER_OTLP_TRACES_INSECURE=true\n",
            receiver.url()
        ));
        sandbox.hook("PostToolUse", post("c", 1).as_bytes());
        let output = sandbox.command(&["flush", "--timeout", "3"]).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && complaint.contains("tls"), "{protocol}: {complaint}");
        assert_eq!(receiver.requests().len(), 0, "{protocol}");
    }
}
