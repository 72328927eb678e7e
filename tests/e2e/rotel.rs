//! Through a collector: rotel takes what is sent and passes it on, in one protocol of its own, to the test agent.

use std::process::Command;

use crate::conversation;
use crate::ddapm::Ddapm;
use crate::expected::assert_same;
use crate::process::{Running, free_ports, get, provided};
use crate::support::sandbox::eventually;

/// A collector that somebody runs in front of a test agent.
struct Rotel {
    http: u16,
    grpc: u16,
    _running: Running,
    _folder: tempfile::TempDir,
}

impl Rotel {
    fn start(behind: &Ddapm) -> Self {
        let (folder, [http, grpc]) = (tempfile::tempdir().unwrap(), free_ports());
        let mut command = Command::new(provided("E2E_ROTEL"));
        command.current_dir(folder.path()).arg("start");
        for (flag, value) in [
            ("--otlp-http-endpoint", format!("127.0.0.1:{http}")),
            ("--otlp-grpc-endpoint", format!("127.0.0.1:{grpc}")),
            ("--exporter", "otlp".to_owned()),
            ("--otlp-exporter-protocol", "http".to_owned()),
            ("--otlp-exporter-endpoint", format!("http://127.0.0.1:{}", behind.ports().http)),
            ("--otlp-exporter-compression", "none".to_owned()),
            ("--batch-timeout", "50ms".to_owned()),
        ] {
            command.arg(flag).arg(value);
        }
        let mut running = Running::start(&mut command, &folder.path().join("log"));
        let listens = |port| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        running.wait_until("rotel is up", || get(http, "/").is_some() && listens(grpc));
        Self { http, grpc, _running: running, _folder: folder }
    }
}

fn through_a_collector(protocol: &str, compression: &str) {
    let ddapm = Ddapm::start();
    let rotel = Rotel::start(&ddapm);
    let port = if protocol == "grpc" { rotel.grpc } else { rotel.http };
    let sandbox = conversation::sandbox(&format!(
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{port}\nOTEL_EXPORTER_OTLP_PROTOCOL={protocol}\n\
         OTEL_EXPORTER_OTLP_COMPRESSION={compression}\n{}",
        conversation::COMMON
    ));
    let whole = conversation::play_and_deliver(&sandbox);
    // An answer of the collector says that it has the spans, not that it has passed them on.
    eventually("the collector passes everything on", || (ddapm.spans().len() >= whole.len()).then_some(()));
    assert_same(&whole, &ddapm.spans());
}

#[test]
fn http_protobuf() {
    through_a_collector("http/protobuf", "none");
}

#[test]
fn http_json() {
    through_a_collector("http/json", "none");
}

#[test]
fn grpc() {
    through_a_collector("grpc", "none");
}

#[test]
fn all_with_gzip() {
    for protocol in ["http/protobuf", "http/json", "grpc"] {
        through_a_collector(protocol, "gzip");
    }
}
