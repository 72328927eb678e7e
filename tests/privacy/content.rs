//! With content asked for: only what was asked for, only redacted, only on its way; nothing of it stays once delivered.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::support::lock::HeldLock;
use crate::support::receiver::{Receiver, Reply};
use crate::support::sandbox::{Sandbox, eventually};

const CONVERSATION: &str = "5d3c1f0e-6a52-4e39-9c1c-0c8f2a7be002";
/// Made up, in the shape of a token.
const SECRET: &str = "ghp_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX";
const EVENTS: [&str; 6] = ["SessionStart", "PreInvocation", "PreToolUse", "PostToolUse", "PostInvocation", "Stop"];

/// The word that marks one field of one event.
fn canary(field: &str, event: &str) -> String {
    format!("canary-{field}-{event}-end")
}

/// Every field that any version has, in every event.
fn payload(event: &str) -> Vec<u8> {
    let said = |field: &str| format!("{} token {SECRET} in /home/somebody/project", canary(field, event));
    let args = json!({
        "CommandLine": said("args"), "Env": {"API_TOKEN": SECRET}, "Deep": [{"CommandLine": [said("args")]}],
        "toolAction": said("args"),
    });
    let mut payload = json!({
        "conversationId": CONVERSATION, "modelName": "m", "stepIdx": 3, "invocationNum": 0, "initialNumSteps": 1,
        "toolCall": {"args": args, "name": "run_command", "other": said("unknown")},
        "error": said("error"), "lastUserInput": said("prompt"), "modelOutput": said("output"),
        "modelThinking": said("thinking"), "result": {"stdout": said("result")},
        "terminationReason": "ERROR", "executionNum": 0, "fullyIdle": true,
        "agentName": said("unknown"), "future": {"args": said("unknown"), "error": [said("unknown")]},
    });
    for path in ["transcriptPath", "artifactDirectoryPath"] {
        payload[path] = format!("/home/somebody/.gemini/antigravity-cli/{}", canary(path, event)).into();
    }
    payload["workspacePaths"] = json!([format!("/home/somebody/{}", canary("workspacePaths", event))]);
    if event == "SessionStart" || event.ends_with("Invocation") || event == "Stop" {
        payload["toolCall"]["name"] = Value::Null;
    }
    payload.to_string().into_bytes()
}

/// Which field goes out with which event, by the word that asks for it.
fn places(word: &str) -> &'static [(&'static str, &'static str)] {
    match word {
        "args" => &[("args", "PreToolUse"), ("args", "PostToolUse")],
        "errors" => &[("error", "PostToolUse"), ("error", "Stop")],
        "prompts" => &[("prompt", "PreInvocation")],
        "outputs" => &[("output", "PostInvocation")],
        "results" => &[("result", "PostToolUse")],
        other => panic!("no kind of content is called {other}"),
    }
}

/// The canaries in some bytes; panics at a secret or an account's name.
#[track_caller]
fn canaries(place: &str, bytes: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(bytes);
    assert!(!text.contains("0aB1cD2eF3gH4iJ5") && !text.contains("home/somebody"), "{place} holds a secret");
    let words = text.split("canary-").skip(1).filter_map(|rest| rest.split_once("-end"));
    words.map(|(word, _)| word.chars().take(64).collect()).collect()
}

/// What the state folder, the logs and the settings hold.
#[track_caller]
fn on_disk(sandbox: &Sandbox) -> BTreeSet<String> {
    sandbox.files().into_iter().flat_map(|(path, bytes)| canaries(&path.display().to_string(), &bytes)).collect()
}

fn on_wire(receiver: &Receiver) -> BTreeSet<String> {
    let requests = receiver.requests();
    requests.iter().flat_map(|request| canaries("the wire", &request.raw)).collect()
}

/// Plays the conversation with this setting, looks at every place it passes, and checks what is there.
fn check(setting: &str, words: &[&str]) {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!(
        "OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_LOG_FILE={}\nFI_HOOK_SESSION_SPAN=update\n{setting}\n",
        receiver.url(),
        sandbox.home().join("hooks.log").display(),
    ));
    let allowed: BTreeSet<String> =
        words.iter().flat_map(|word| places(word)).map(|(field, event)| format!("{field}-{event}")).collect();
    // What PostToolUse says of the arguments goes before what PreToolUse said.
    let mut sent = allowed.clone();
    sent.remove("args-PreToolUse");

    let lock = HeldLock::take(&sandbox.profile());
    for event in EVENTS {
        sandbox.hook(event, &payload(event));
    }
    assert_eq!(on_disk(&sandbox), allowed, "{setting}: the spool");
    receiver.otherwise(Reply::status(503).header("retry-after", "1").body("down"));
    drop(lock);
    sandbox.hook("SessionStart", br#"{"conversationId":"other"}"#);
    eventually("all spans were tried", || {
        (sandbox.spans(CONVERSATION).len() == 4 && receiver.requests().len() > 1).then_some(())
    });
    assert_eq!(on_disk(&sandbox), sent, "{setting}: the store");
    receiver.otherwise(Reply::ok());
    eventually("all is delivered", || {
        let spans = sandbox.spans(CONVERSATION);
        spans.iter().all(|stored| stored.outcome.as_deref() == Some("delivered")).then_some(())
    });
    assert_eq!(on_wire(&receiver), sent, "{setting}: the wire");
    eventually("nothing is left", || on_disk(&sandbox).is_empty().then_some(()));
    for sender in sandbox.senders() {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{sender}/{file}")).unwrap_or_default();
            assert_eq!(canaries(file, &bytes), BTreeSet::new(), "{setting}");
        }
    }
    let shown = sandbox.command(&["show", CONVERSATION]).output().unwrap();
    assert_eq!(canaries("show", &shown.stdout), BTreeSet::new(), "{setting}");
}

#[test]
fn each_word_lets_out_its_own_content_redacted_until_it_is_delivered() {
    let all = ["args", "errors", "prompts", "outputs", "results"];
    std::thread::scope(|scope| {
        for word in all {
            scope.spawn(move || check(&format!("FI_HOOK_CAPTURE_CONTENT={word}"), &[word]));
        }
        scope.spawn(|| check("FI_HOOK_CAPTURE_CONTENT=1\nFI_HOOK_DIGEST=1", &all));
        scope.spawn(|| check("FI_HOOK_DIGEST=1", &[]));
    });
}

#[test]
fn a_receiver_that_quotes_what_it_was_sent_is_not_quoted() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    let quote = "you sent canary-quote-word-end";
    receiver.script([
        Reply::status(503).header("retry-after", "0").body(quote),
        Reply::status(401).header("content-type", "text/plain").body(quote),
        Reply::status(302).header("location", "http://127.0.0.1/canary-quote-word-end"),
        Reply::partial(1, quote),
    ]);
    let log = sandbox.home().join("hooks.log");
    sandbox.settings(&format!(
        "OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_CAPTURE_CONTENT=args\nFI_HOOK_LOG_FILE={}\n",
        receiver.url(),
        log.display()
    ));
    for event in ["PreToolUse", "PostToolUse"] {
        sandbox.hook(event, &payload(event));
    }
    let log_says = |word: &str| eventually(word, || fs::read_to_string(&log).ok()?.contains(word).then_some(()));
    log_says("reason=unauthorized");
    let args = BTreeSet::from(["args-PostToolUse".to_owned()]);
    eventually("the arguments are all that is kept", || (on_disk(&sandbox) == args).then_some(()));
    log_says("reason=redirect");
    log_says("reason=partial_success");
    eventually("nothing is left", || on_disk(&sandbox).is_empty().then_some(()));
}

#[test]
fn without_a_destination_content_stays_in_the_local_store() {
    let sandbox = Sandbox::new();
    sandbox.settings("FI_HOOK_CAPTURE_CONTENT=args\n");
    for event in ["PreToolUse", "PostToolUse"] {
        sandbox.hook(event, &payload(event));
    }
    eventually("the tool is stored", || (!sandbox.spans(CONVERSATION).is_empty()).then_some(()));
    let args = BTreeSet::from(["args-PostToolUse".to_owned()]);
    eventually("the arguments are all that is kept", || (on_disk(&sandbox) == args).then_some(()));
    assert!(sandbox.spans(CONVERSATION).iter().any(|stored| stored.span.has_content()));
}
