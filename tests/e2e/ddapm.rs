//! Datadog's test agent: decodes OTLP with Google's protobuf and gRPC libraries and keeps all of it.

use std::fs;
use std::process::Command;

use agy_stand_in::script::{Conversation, Script, Tool, Turn};
use serde_json::Value;

use crate::conversation;
use crate::expected::{self, assert_same};
use crate::otlp_json::{self, Seen};
use crate::process::{Running, free_ports, get, get_json, provided};
use crate::support::sandbox::eventually;

/// A test agent that somebody runs.
pub(crate) struct Ddapm {
    ports: Ports,
    _running: Running,
    _folder: tempfile::TempDir,
}

/// Where a test agent listens, or will.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    apm: u16,
    pub(crate) http: u16,
    pub(crate) grpc: u16,
}

impl Ports {
    pub(crate) fn choose() -> Self {
        let [apm, http, grpc] = free_ports();
        Self { apm, http, grpc }
    }

    /// The settings that send there.
    fn settings(self, protocol: &str, compression: &str) -> String {
        let port = if protocol == "grpc" { self.grpc } else { self.http };
        format!(
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{port}\nOTEL_EXPORTER_OTLP_PROTOCOL={protocol}\n\
             OTEL_EXPORTER_OTLP_COMPRESSION={compression}\nOTEL_EXPORTER_OTLP_HEADERS=x-team=blue%20one,api-key=k1\n{}",
            conversation::COMMON
        )
    }
}

impl Ddapm {
    pub(crate) fn start() -> Self {
        Self::start_at(Ports::choose())
    }

    pub(crate) fn start_at(ports: Ports) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(provided("E2E_VENV").join("bin/python"));
        command.args(["-c", "from ddapm_test_agent.agent import main; main()", "--host", "127.0.0.1"]);
        for (flag, port) in [("--port", ports.apm), ("--otlp-http-port", ports.http), ("--otlp-grpc-port", ports.grpc)]
        {
            command.arg(flag).arg(port.to_string());
        }
        command.arg("--snapshot-dir").arg(folder.path()).current_dir(folder.path());
        let mut running = Running::start(&mut command, &folder.path().join("log"));
        let answers = |port, path| get(port, path).is_some_and(|(status, _)| status == 200);
        running.wait_until("the test agent is up", || {
            answers(ports.apm, "/info") && answers(ports.http, "/test/session/traces")
        });
        Self { ports, _running: running, _folder: folder }
    }

    /// Where it listens.
    pub(crate) const fn ports(&self) -> Ports {
        self.ports
    }

    /// All spans that came, in whatever order.
    pub(crate) fn spans(&self) -> Vec<Seen> {
        let requests = get_json(self.ports.http, "/test/session/traces");
        otlp_json::spans(requests.as_array().unwrap())
    }

    /// The requests as they came: URL, headers, base64 body.
    fn requests(&self) -> Vec<Value> {
        let requests = get_json(self.ports.apm, "/test/session/requests");
        let ours = |request: &&Value| request["url"].as_str().is_some_and(|url| url.ends_with("/v1/traces"));
        requests.as_array().unwrap().iter().filter(ours).cloned().collect()
    }
}

/// One conversation over one protocol, compared in full.
fn whole_conversation(protocol: &str, compression: &str) -> Ddapm {
    let ddapm = Ddapm::start();
    let sandbox = conversation::sandbox(&ddapm.ports.settings(protocol, compression));
    let whole = conversation::play_and_deliver(&sandbox);
    assert_same(&whole, &ddapm.spans());
    ddapm
}

fn over_http(protocol: &str, content_type: &str, compression: &str) {
    let ddapm = whole_conversation(protocol, compression);
    let requests = ddapm.requests();
    assert!(!requests.is_empty());
    for request in requests {
        let header = |name: &str| {
            let headers = request["headers"].as_object().unwrap();
            headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.as_str())
        };
        assert_eq!(header("content-type"), Some(content_type));
        assert_eq!(header("content-encoding"), (compression == "gzip").then_some("gzip"));
        assert_eq!((header("x-team"), header("api-key")), (Some("blue one"), Some("k1")));
        assert!(header("user-agent").unwrap().starts_with("fi-hook-to-otlp/"), "{request}");
    }
}

#[test]
fn http_protobuf() {
    over_http("http/protobuf", "application/x-protobuf", "none");
}

#[test]
fn http_protobuf_with_gzip() {
    over_http("http/protobuf", "application/x-protobuf", "gzip");
}

#[test]
fn http_json() {
    over_http("http/json", "application/json", "none");
}

#[test]
fn http_json_with_gzip() {
    over_http("http/json", "application/json", "gzip");
}

// The test agent keeps no gRPC metadata; tests/export_grpc.rs looks at that.

#[test]
fn grpc() {
    whole_conversation("grpc", "none");
}

#[test]
fn grpc_with_gzip() {
    whole_conversation("grpc", "gzip");
}

#[test]
fn a_collector_that_is_started_after_the_conversation_gets_all_of_it() {
    let ports = Ports::choose();
    let sandbox = conversation::sandbox(&ports.settings("http/protobuf", "none"));
    conversation::play(&sandbox);
    expected::ended(&sandbox, conversation::ID);
    let log = || fs::read_to_string(sandbox.profile().join("sender.log")).unwrap_or_default();
    eventually("a try fails", || log().contains(" retry reason=").then_some(()));
    assert!(sandbox.spans(conversation::ID).iter().all(|stored| stored.outcome.is_none()), "{}", log());
    let ddapm = Ddapm::start_at(ports);
    let whole = expected::delivered(&sandbox, conversation::ID);
    assert_eq!(expected::shape(&whole), conversation::WHOLE);
    assert_same(&whole, &ddapm.spans());
}

#[test]
fn a_sender_that_is_killed_half_way_loses_nothing_and_invents_nothing() {
    let ddapm = Ddapm::start();
    let sandbox = conversation::sandbox(&ddapm.ports.settings("http/protobuf", "none"));
    let id = conversation::ID;
    let turn = || Turn::prompt("go on").tool(Tool::run_command("make", ".").run_ms(5)).answer();
    let run = sandbox.agy().run(&Script::of(Conversation::new().id(id).turn(turn()))).unwrap();
    let steps = run.report.totals.unwrap().conversations[id];
    // The first spans are there, and the answer to them perhaps not yet written down.
    eventually("the first spans", || (!ddapm.spans().is_empty()).then_some(()));
    for pid in sandbox.senders() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    eventually("the sender is gone", || sandbox.senders().is_empty().then_some(()));
    let run = sandbox.agy().run(&Script::of(Conversation::new().id(id).resume_at(steps).turn(turn()))).unwrap();
    assert_eq!(run.report.faults().count(), 0, "{:?}", run.report);

    let whole = expected::delivered(&sandbox, id);
    let tools = |spans: &[Seen]| spans.iter().filter(|span| span["name"] == "run_command").count();
    assert_eq!((whole.len(), tools(&whole)), (9, 2), "{:#?}", expected::shape(&whole));
    // What was sent but not yet recorded as such is sent again, under the same ids.
    assert_same(&whole, &expected::without_copies(&ddapm.spans()));
}
