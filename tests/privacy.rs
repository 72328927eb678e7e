//! By default no content leaves the hook process: a different canary in every string of every payload shape is found
//! neither in the spool, nor the store and its journal, nor a log, nor on the wire, nor in a process's words.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a failure here is a failed test")]

#[path = "privacy/content.rs"]
mod content;
mod support;

use std::fs;

use serde_json::{Map, Value};
use support::lock::HeldLock;
use support::receiver::Receiver;
use support::sandbox::{Sandbox, eventually, feed};

const PAYLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/payloads");
const MARK: &str = "canary";
const CONVERSATION: &str = "5d3c1f0e-6a52-4e39-9c1c-0c8f2a7be001";

/// Strings that may leave: names, ids, reasons. At the top of a payload, or in `toolCall` for `name`.
const ALLOWED: [&str; 3] = ["conversationId", "modelName", "terminationReason"];

/// Puts a canary of its own into every string and every key that is not on the allow-list.
fn plant(value: &Value, path: &str, canaries: &mut Vec<String>) -> Value {
    let mut canary = || {
        let made = format!("{MARK}{:04}", canaries.len());
        canaries.push(made.clone());
        made
    };
    match value {
        // Paths keep their shape, since they are looked at for the surface.
        Value::String(text) => Value::String(format!("{text}/{}", canary())),
        Value::Array(entries) => Value::Array(entries.iter().map(|entry| plant(entry, path, canaries)).collect()),
        Value::Object(members) => {
            let mut planted = Map::new();
            for (key, member) in members {
                let inner = format!("{path}.{key}");
                let allowed = (path.is_empty() && ALLOWED.contains(&key.as_str())) || inner == ".toolCall.name";
                let member = if allowed { member.clone() } else { plant(member, &inner, canaries) };
                planted.insert(key.clone(), member);
                if !allowed {
                    planted.insert(format!("{key}-{MARK}key"), Value::String(format!("{MARK}unknown")));
                }
            }
            Value::Object(planted)
        }
        other => other.clone(),
    }
}

/// Every shape there is, with what later versions may send on top.
fn planted() -> Vec<(String, Vec<u8>)> {
    let mut canaries = Vec::new();
    let mut all = Vec::new();
    let mut paths: Vec<_> = fs::read_dir(PAYLOADS).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
        let event = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
        let mut payload: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let members = payload.as_object_mut().unwrap();
        members.insert("conversationId".into(), CONVERSATION.into());
        for later in
            ["lastUserInput", "modelOutput", "modelThinking", "result", "error", "agentName", "parentConversationId"]
        {
            members.entry(later).or_insert_with(|| "x".into());
        }
        members.insert("future".into(), serde_json::json!({"deep": [{"deeper": {"deepest": ["x"]}}]}));
        all.push((event, plant(&payload, "", &mut canaries).to_string().into_bytes()));
    }
    assert!(all.len() >= 40 && canaries.len() > 500);
    all
}

#[track_caller]
fn assert_clean(place: &str, bytes: &[u8]) {
    let found = bytes.windows(MARK.len()).position(|window| window == MARK.as_bytes());
    assert!(
        found.is_none(),
        "{place}: {:?}",
        found.map(|at| String::from_utf8_lossy(bytes.get(at..at + 40).unwrap_or_default()))
    );
}

#[test]
fn no_content_reaches_disk_wire_or_process_words() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    let log = sandbox.home().join("hooks.log");
    sandbox.settings(&format!(
        "OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_LOG_FILE={}\nFI_HOOK_SESSION_SPAN=update\n",
        receiver.url(),
        log.display()
    ));
    // While somebody else holds the sender's lock, everything stays in the spool, where it can be looked at.
    let lock = HeldLock::take(&sandbox.profile());
    let payloads = planted();
    for (event, payload) in &payloads {
        feed(sandbox.command(&["hook", "antigravity", event]).spawn().unwrap(), payload);
    }
    let spooled = fs::read_dir(sandbox.profile().join("spool/new")).unwrap().count();
    assert_eq!(spooled, payloads.len(), "all of it is in the spool");
    for (path, bytes) in sandbox.files() {
        assert_clean(&path.display().to_string(), &bytes);
    }
    drop(lock);
    let stop = br#"{"conversationId":"other"}"#;
    sandbox.hook("Stop", stop);
    eventually("everything is folded and sent", || {
        let empty = fs::read_dir(sandbox.profile().join("spool/new")).ok()?.count() == 0;
        let spans = sandbox.spans(CONVERSATION);
        (empty && !spans.is_empty() && spans.iter().all(|stored| stored.outcome.is_some())).then_some(())
    });
    for request in receiver.requests() {
        assert_clean("the wire", &request.raw);
        assert_clean("the headers", format!("{:?}", request.headers).as_bytes());
    }
    assert!(receiver.accepted_spans().iter().any(|span| span.name == "run_command"), "there was something to leak");
    for (path, bytes) in sandbox.files() {
        assert_clean(&path.display().to_string(), &bytes);
    }
    let names: Vec<_> = sandbox.files().into_iter().map(|(path, _)| path.display().to_string()).collect();
    assert!(
        names.iter().any(|name| name.ends_with("store.db-wal")) && names.iter().any(|name| name.ends_with("hooks.log"))
    );
    for sender in sandbox.senders() {
        for words in ["cmdline", "environ"] {
            assert_clean(words, &fs::read(format!("/proc/{sender}/{words}")).unwrap_or_default());
        }
    }
    let shown = sandbox.command(&["show", CONVERSATION]).output().unwrap();
    assert_clean("show", &shown.stdout);
}

#[test]
fn an_excluded_workspace_leaves_no_event() {
    let sandbox = Sandbox::new();
    sandbox.settings("FI_HOOK_EXCLUDE_PATHS=/srv/secret\n");
    for (conversation, workspace) in [("in", "/srv/secret/deep"), ("out", "/srv/secrets")] {
        let payload = serde_json::json!({
            "conversationId": conversation, "stepIdx": 1, "error": "",
            "workspacePaths": ["/home/user/other", workspace], "toolCall": {"name": "view_file"},
        });
        sandbox.hook("PostToolUse", payload.to_string().as_bytes());
    }
    eventually("the other one is stored", || (!sandbox.spans("out").is_empty()).then_some(()));
    assert!(sandbox.spans("in").is_empty());
    assert_eq!(sandbox.counter("path_excluded"), 1);
    for (path, bytes) in sandbox.files() {
        let store = path.to_string_lossy().contains("store.db");
        assert!(!store || !bytes.windows(10).any(|window| window == b"srv/secret"), "{}", path.display());
    }
}
