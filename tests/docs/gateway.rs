//! The examples for a Collector, with a real one: `COLLECTOR_BIN` names its binary (Jaeger's is one, and has what the
//! examples use). Ignored, because that takes minutes to build; `.ci/run` runs it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::pages;
use super::support::certificates::Authority;
use super::support::receiver::Receiver;
use super::support::sandbox::{Sandbox, eventually};

fn collector() -> PathBuf {
    let Some(path) = std::env::var_os("COLLECTOR_BIN") else {
        panic!("COLLECTOR_BIN must name the binary of a Collector");
    };
    path.into()
}

/// The environment of the gateway, as its README has it.
struct Gateway {
    http: Receiver,
    grpc: Receiver,
    authority: Authority,
    sandbox: Sandbox,
}

impl Gateway {
    fn new() -> Self {
        let (http, grpc) = (Receiver::start(), Receiver::start_grpc());
        Self { http, grpc, authority: Authority::new(), sandbox: Sandbox::new() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let (certificate, key) = self.authority.server_files(&["localhost"]);
        let mut command = Command::new(collector());
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.sandbox.home());
        command
            .env("GATEWAY_HTPASSWD", self.authority.write("htpasswd", "dev-17:password\n"))
            .env("GATEWAY_CERT", certificate)
            .env("GATEWAY_KEY", key)
            .env("FUTURE_AGI_URL", self.http.url())
            .env("FUTURE_AGI_API_KEY", "api-key")
            .env("FUTURE_AGI_SECRET_KEY", "secret-key")
            .env("JAEGER_GRPC", format!("127.0.0.1:{}", self.grpc.port()));
        command
    }
}

/// Ends with its scope.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_ports() -> [u16; 2] {
    let taken = [0, 0].map(|port| std::net::TcpListener::bind(("127.0.0.1", port)).unwrap());
    taken.map(|listener| listener.local_addr().unwrap().port())
}

fn wait_until_ready(log: &Path) {
    eventually("the Collector is ready", || {
        fs::read_to_string(log).ok().filter(|text| text.contains("Everything is ready"))
    });
}

#[test]
fn a_collector_accepts_the_configurations() {
    let gateway = Gateway::new();
    for file in ["examples/jaeger/jaeger.yaml", "examples/otel-collector/gateway.yaml"] {
        let path = pages::path(file);
        let output = gateway.command(&["validate", "--config", path.to_str().unwrap()]).output().unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_developers_traces_reach_both_back_ends_through_the_gateway() {
    let gateway = Gateway::new();
    let [http, grpc] = free_ports();
    let config = pages::path("examples/otel-collector/gateway.yaml");
    let log = gateway.sandbox.path().join("collector.log");
    let mut command = gateway.command(&["--config", config.to_str().unwrap()]);
    // Ports that are free here, and none for its own metrics.
    for set in [
        format!("receivers.otlp.protocols.http.endpoint=127.0.0.1:{http}"),
        format!("receivers.otlp.protocols.grpc.endpoint=127.0.0.1:{grpc}"),
        "service.telemetry.metrics.level=none".to_owned(),
    ] {
        command.arg(format!("--set={set}"));
    }
    let _collector = Running(command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap());
    wait_until_ready(&log);

    let env = fs::read_to_string(pages::path("examples/otel-collector/env")).unwrap();
    let env = env
        .replace("otel-gateway.example.com:4318", &format!("localhost:{http}"))
        .replace("/etc/fi-hook-to-otlp/ca.pem", gateway.authority.file().to_str().unwrap());
    gateway.sandbox.settings(&env);
    let demo = gateway.sandbox.command(&["demo"]).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(demo.status.success(), "{}{}", said(&demo.stdout), said(&demo.stderr));

    // The session root goes out first, once.
    assert_eq!(gateway.http.wait_for_spans(13).len(), 13);
    assert_eq!(gateway.grpc.wait_for_spans(13).len(), 13);
    let request = gateway.http.requests().remove(0);
    assert_eq!(request.path, "/tracer/v1/traces");
    assert_eq!((request.header("x-api-key"), request.header("x-secret-key")), (Some("api-key"), Some("secret-key")));
    assert_eq!((request.header("content-encoding"), request.header("authorization")), (None, None));

    // A wrong password ends at the gateway.
    gateway.sandbox.settings(&env.replace("Basic%20ZGV2", "Basic%20YGV2"));
    let refused = gateway.sandbox.command(&["demo"]).output().unwrap();
    assert!(said(&refused.stderr).contains("accepted 0 of 13 spans"), "{}", said(&refused.stderr));
    assert_eq!((gateway.http.accepted_spans().len(), gateway.grpc.accepted_spans().len()), (13, 13));
}
