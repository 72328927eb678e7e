//! Datadog's test agent: decodes OTLP with Google's protobuf and gRPC libraries and keeps all of it.

use std::process::Command;

use base64::Engine;
use serde_json::Value;

use crate::conversation;
use crate::expected::assert_same;
use crate::otlp_json::{self, Seen};
use crate::process::{Running, free_ports, get, get_json, provided};
use crate::support::sandbox::Sandbox;

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
    http: u16,
    grpc: u16,
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

    /// The port for OTLP over HTTP.
    pub(crate) fn http_port(&self) -> u16 {
        self.ports.http
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

/// One conversation over one protocol, compared in full. gRPC's metadata is not kept by the test agent.
fn whole_conversation(protocol: &str, compression: &str) -> Ddapm {
    let (sandbox, ddapm) = (Sandbox::new(), Ddapm::start());
    sandbox.settings(&ddapm.ports.settings(protocol, compression));
    sandbox.register();
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
        let body = base64::engine::general_purpose::STANDARD.decode(request["body"].as_str().unwrap()).unwrap();
        println!("{compression} {:?}", &body[..2]);
    }
}

#[test]
fn http_protobuf() {
    over_http("http/protobuf", "application/x-protobuf", "none");
}
