//! The sender with the real binary, a real agent process and a real receiver.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use agy_stand_in::report::ToolResult;
use agy_stand_in::script::{Conversation, Ending, Script, Tool, Turn};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use support::receiver::{Received, Receiver, Reply};
use support::sandbox::{Sandbox, eventually};

const CONVERSATION: &str = "0b9d1c0f-55e1-4c3e-8a44-1f0a2c1e9b1d";

fn settings(receiver: &Receiver) -> String {
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", receiver.url())
}

fn future_agi(receiver: &Receiver) -> String {
    format!(
        "FI_BASE_URL={}\nFI_API_KEY=key-of-the-test\nFI_SECRET_KEY=secret-of-the-test\nFI_PROJECT_NAME=my project\n",
        receiver.url()
    )
}

/// One turn: a tool that works, a tool that fails, an answer.
fn script() -> Script {
    let turn = Turn::prompt("fix the test")
        .tool(Tool::run_command("make test", ".").fails("exit status 2").run_ms(20))
        .tool(Tool::new("view_file").run_ms(10))
        .answer();
    Script::of(Conversation::new().id(CONVERSATION).turn(turn))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Name, parent's name and status code of each span, sorted; the root's parent is "-".
fn shape(spans: &[Span]) -> Vec<String> {
    let names: BTreeMap<&[u8], &str> = spans.iter().map(|span| (&span.span_id[..], span.name.as_str())).collect();
    let mut lines: Vec<_> = spans
        .iter()
        .map(|span| {
            let parent =
                if span.parent_span_id.is_empty() { "-" } else { names.get(&span.parent_span_id[..]).unwrap_or(&"?") };
            format!("{} < {parent}: {}", span.name, span.status.as_ref().map_or(0, |status| status.code))
        })
        .collect();
    lines.sort();
    lines
}

/// A request with its resource attributes in order: the SDK keeps them in a hash map.
fn ordered(request: &Received) -> ExportTraceServiceRequest {
    let mut request = request.request.clone().unwrap();
    for resource in request.resource_spans.iter_mut().filter_map(|spans| spans.resource.as_mut()) {
        resource.attributes.sort_by(|a, b| a.key.cmp(&b.key));
    }
    request
}

const WHOLE: [&str; 7] = [
    "Antigravity session < -: 1",
    "Antigravity turn < Antigravity session: 1",
    "Model call < Antigravity turn: 1",
    "Model call < Antigravity turn: 1",
    "Model call < Antigravity turn: 1",
    "run_command < Antigravity turn: 2",
    "view_file < Antigravity turn: 1",
];

#[test]
fn a_conversation_arrives_as_one_trace_when_the_agent_ends() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.register();
    let run = sandbox.agy().run(&script()).unwrap();
    assert_eq!(run.report.faults().count(), 0, "{:?}", run.report);
    assert!(run.report.tools.iter().all(|tool| matches!(tool.result, ToolResult::Ran)));

    let spans = receiver.wait_for_spans(WHOLE.len());
    assert_eq!(shape(&spans), WHOLE);
    assert!(spans.iter().all(|span| hex(&span.trace_id) == CONVERSATION.replace('-', "")));
    let root = spans.iter().find(|span| span.parent_span_id.is_empty()).unwrap();
    let ended = root.attributes.iter().find(|attribute| attribute.key == "antigravity.session.end").unwrap();
    assert_eq!(format!("{:?}", ended.value).matches("process_exit").count(), 1);
    for span in &spans {
        assert!(
            root.start_time_unix_nano <= span.start_time_unix_nano
                && span.end_time_unix_nano <= root.end_time_unix_nano
        );
    }
    let request = &receiver.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
    assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
}

#[test]
fn future_agi_gets_its_headers_its_resource_and_the_root_first() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&future_agi(&receiver));
    sandbox.register();
    sandbox.agy().run(&script()).unwrap();
    eventually("the session's end", || {
        let newest = receiver.accepted_spans().into_iter().rfind(|span| span.name == "Antigravity session")?;
        newest.attributes.iter().any(|attribute| attribute.key == "antigravity.session.end").then_some(())
    });
    let mut known = Vec::new();
    for request in receiver.requests() {
        assert_eq!(request.path, "/tracer/v1/traces");
        assert_eq!(request.header("x-api-key"), Some("key-of-the-test"));
        assert_eq!(request.header("x-secret-key"), Some("secret-of-the-test"));
        assert_eq!(request.header("content-encoding"), None);
        for resource in &request.request.as_ref().unwrap().resource_spans {
            let attributes = format!("{:?}", resource.resource);
            assert!(attributes.contains("my project") && attributes.contains("observe"), "{attributes}");
        }
        for span in request.spans() {
            known.push(span.span_id.clone());
            if span.name == "Antigravity turn" {
                assert!(known.contains(&span.parent_span_id), "the root comes first");
            }
        }
    }
    let mut newest: BTreeMap<Vec<u8>, Span> = BTreeMap::new();
    for span in receiver.accepted_spans() {
        let sent_again = newest.insert(span.span_id.clone(), span.clone());
        assert!(sent_again.is_none() || span.name == "Antigravity session", "only the root is sent again");
    }
    assert_eq!(shape(&newest.into_values().collect::<Vec<_>>()), WHOLE);
}

#[test]
fn what_is_recorded_while_the_collector_is_down_arrives_when_it_is_back() {
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.register();
    receiver.stop();
    sandbox.agy().run(&script()).unwrap();
    eventually("the failure is recorded", || {
        let log = fs::read_to_string(sandbox.profile().join("sender.log")).ok()?;
        log.contains(" retry reason=").then_some(())
    });
    assert!(sandbox.spans(CONVERSATION).iter().all(|stored| stored.outcome.is_none()));
    receiver.restart();
    let spans = receiver.wait_for_spans(WHOLE.len());
    assert_eq!(shape(&spans), WHOLE);
    eventually("all is settled", || {
        sandbox.spans(CONVERSATION).iter().all(|stored| stored.outcome.as_deref() == Some("delivered")).then_some(())
    });
}

#[test]
fn answers_are_told_apart_and_a_repaired_setting_delivers_what_waits() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&future_agi(&receiver));
    receiver.otherwise(Reply::status(401));
    let (pre, post) = (
        format!(r#"{{"conversationId":"{CONVERSATION}","stepIdx":3,"toolCall":{{"name":"run_command"}}}}"#),
        format!(r#"{{"conversationId":"{CONVERSATION}","stepIdx":3,"toolCall":{{"name":"run_command"}},"error":""}}"#),
    );
    sandbox.hook("PreToolUse", pre.as_bytes());
    sandbox.hook("PostToolUse", post.as_bytes());
    let log = || fs::read_to_string(sandbox.profile().join("sender.log")).unwrap_or_default();
    eventually("a configuration answer", || log().contains("http=401 configuration").then_some(()));
    assert!(!log().contains("key-of-the-test") && !log().contains("secret-of-the-test"));
    // 503 passes; 200 takes it; between them the user has corrected the file.
    receiver.clear();
    receiver.script([Reply::status(503).header("retry-after", "1"), Reply::ok()]);
    receiver.otherwise(Reply::ok());
    sandbox.settings(&future_agi(&receiver).replace("key-of-the-test", "right-key"));
    let spans = receiver.wait_for_spans(2);
    assert!(spans.iter().any(|span| span.name == "run_command"));
    let requests = receiver.requests();
    assert_eq!(requests[0].answered, 503);
    assert!(ordered(&requests[0]) == ordered(&requests[1]), "the same batch again");
    assert!(requests[1].at - requests[0].at >= Duration::from_millis(900), "Retry-After");
    assert!(requests.iter().all(|request| request.header("x-api-key") == Some("right-key")));
}

#[test]
fn a_receiver_that_cannot_unpack_gzip_gets_it_plain_from_then_on() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("{}OTEL_EXPORTER_OTLP_COMPRESSION=gzip\nFI_HOOK_IDLE_SECONDS=0\n", settings(&receiver)));
    receiver.script([Reply::status(400)]);
    for step in 1..3 {
        let payload = format!(
            r#"{{"conversationId":"{CONVERSATION}","stepIdx":{step},"toolCall":{{"name":"tool_{step}"}},"error":""}}"#
        );
        sandbox.hook("PostToolUse", payload.as_bytes());
        receiver.wait_for_spans(step);
        sandbox.senders_end();
    }
    let encodings: Vec<_> =
        receiver.requests().iter().map(|request| request.header("content-encoding").is_some()).collect();
    assert_eq!(encodings, [true, false, false], "remembered, also by the next sender");
}

#[test]
fn a_sender_killed_between_sending_and_recording_sends_the_same_batch_again() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    receiver.script([Reply::ok().after(Duration::from_secs(3))]);
    let post = |step: u32| {
        format!(
            r#"{{"conversationId":"{CONVERSATION}","stepIdx":{step},"toolCall":{{"name":"tool_{step}"}},"error":""}}"#
        )
    };
    sandbox.hook("PostToolUse", post(1).as_bytes());
    receiver.wait_for(1);
    sandbox.kill_sender();
    sandbox.hook("PostToolUse", post(2).as_bytes());
    eventually("both tools", || {
        let spans = receiver.accepted_spans();
        (spans.iter().filter(|span| span.name == "tool_2").count() == 1).then_some(())
    });
    let requests = receiver.requests();
    assert!(ordered(&requests[0]) == ordered(&requests[1]), "the same batch again");
    assert_eq!(requests.iter().flat_map(Received::spans).filter(|span| span.name == "tool_2").count(), 1);
}

#[test]
fn a_sender_that_lingers_no_time_never_strands_an_event() {
    let sandbox = Sandbox::new();
    sandbox.settings("FI_HOOK_IDLE_SECONDS=0\n");
    for step in 0..120 {
        let payload = format!(
            r#"{{"conversationId":"{CONVERSATION}","stepIdx":{step},"toolCall":{{"name":"tool_{step}"}},"error":""}}"#
        );
        sandbox.hook("PostToolUse", payload.as_bytes());
        // Pauses around the hold-back, where a sender is most likely about to end.
        std::thread::sleep(Duration::from_millis(45 + step % 20));
    }
    sandbox.senders_end();
    let inbox = sandbox.profile().join("spool/new");
    assert_eq!(fs::read_dir(inbox).unwrap().count(), 0, "nothing is stranded");
    let tools = sandbox.spans(CONVERSATION).iter().filter(|stored| stored.span.name.starts_with("tool_")).count();
    assert_eq!(tools, 120);
}

#[test]
fn a_killed_agent_ends_its_session_and_a_living_one_holds_it_open() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("{}FI_HOOK_IDLE_SECONDS=0\n", settings(&receiver)));
    sandbox.register();
    let turn = Turn::prompt("go on").tool(Tool::run_command("true", ".")).answer();
    let killed =
        Turn::prompt("and on").pause_ms(1500).ending(Ending::Killed { signal: agy_stand_in::script::Signal::Kill });
    let script = Script::of(Conversation::new().id(CONVERSATION).turn(turn).turn(killed));
    let mut agent = sandbox.agy().spawn(&script, &sandbox.path().join("report")).unwrap();
    receiver.wait_for_spans(3);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(sandbox.senders().len(), 1, "an agent with an open session keeps its sender");
    assert!(receiver.accepted_spans().iter().all(|span| span.name != "Antigravity session"));
    agent.wait().unwrap();
    let root = eventually("the root", || {
        receiver.accepted_spans().into_iter().find(|span| span.name == "Antigravity session")
    });
    assert!(format!("{:?}", root.attributes).contains("process_exit"));
    let turns: Vec<_> = receiver.accepted_spans().into_iter().filter(|span| span.name == "Antigravity turn").collect();
    assert_eq!(turns.len(), 2, "the turn that was killed is closed, too");
    sandbox.senders_end();
}

#[test]
fn environments_with_other_destinations_are_profiles_that_never_mix() {
    let (sandbox, one, two) = (Sandbox::new(), Receiver::start(), Receiver::start());
    for round in 0..10 {
        for (name, receiver) in [("one", &one), ("two", &two)] {
            let payload = format!(
                r#"{{"conversationId":"{name}","stepIdx":{round},"toolCall":{{"name":"{name}_{round}"}},"error":""}}"#
            );
            let mut hook = sandbox.command(&["hook", "antigravity", "PostToolUse"]);
            hook.env("FI_BASE_URL", receiver.url()).env("FI_API_KEY", name).env("FI_SECRET_KEY", "s");
            support::sandbox::feed(hook.spawn().unwrap(), payload.as_bytes());
        }
    }
    for (name, receiver) in [("one", &one), ("two", &two)] {
        eventually("all tools", || {
            (receiver.accepted_spans().iter().filter(|span| span.name.starts_with(name)).count() == 10).then_some(())
        });
        let other = if name == "one" { "two" } else { "one" };
        assert!(receiver.accepted_spans().iter().all(|span| !span.name.starts_with(other)));
        assert!(receiver.requests().iter().all(|request| request.header("x-api-key") == Some(name)));
    }
    let profiles: Vec<_> =
        fs::read_dir(sandbox.state()).unwrap().flatten().filter(|entry| entry.path().is_dir()).collect();
    assert_eq!(profiles.len(), 2);
    for (path, bytes) in sandbox.files() {
        assert!(!bytes.windows(11).any(|window| window == b"FI_API_KEY="), "{}", path.display());
    }
}

#[test]
fn show_prints_the_stored_conversation() {
    let sandbox = Sandbox::new();
    sandbox.register();
    sandbox.agy().run(&script()).unwrap();
    eventually("the session is stored", || (sandbox.spans(CONVERSATION).len() == WHOLE.len()).then_some(()));
    let output = sandbox.command(&["show", "0b9d1c0f"]).output().unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    for name in ["Antigravity session", "Antigravity turn", "Model call", "run_command", "view_file", "ERROR"] {
        assert!(tree.contains(name), "{name} in\n{tree}");
    }
    let list = sandbox.command(&["show", "--list"]).output().unwrap();
    assert!(String::from_utf8(list.stdout).unwrap().starts_with(CONVERSATION));
    let missing = sandbox.command(&["show", "nosuch"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("show --list"));
}
