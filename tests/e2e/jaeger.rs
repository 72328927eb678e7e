//! Jaeger: what it keeps, read raw, and what its query page has to say about the trace. `jaeger/README.md` has the facts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::conversation;
use crate::expected::{self, assert_same};
use crate::otlp_json::{self, Seen};
use crate::process::{get_json, provided};
use crate::support::certificates::Authority;

/// A Jaeger of one test.
struct Jaeger {
    /// What start.sh has printed.
    told: BTreeMap<String, String>,
}

impl Jaeger {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(environment: &[(&str, &Path)]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/jaeger/start.sh");
        let mut command = Command::new(script);
        command.env("JAEGER_BIN", provided("JAEGER_BIN")).envs(environment.iter().copied());
        let output = command.output().expect("start.sh runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        let told = lines.lines().filter_map(|line| line.split_once('='));
        Self { told: told.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
    }

    fn endpoint(&self, protocol: &str) -> &str {
        &self.told[if protocol == "grpc" { "JAEGER_OTLP_GRPC" } else { "JAEGER_OTLP_HTTP" }]
    }

    fn query(&self, path: &str) -> Value {
        let port = self.told["JAEGER_QUERY"].rsplit(':').next().unwrap().parse().unwrap();
        get_json(port, path)
    }

    /// The spans of a trace as they were received.
    fn raw(&self, trace: &str) -> Vec<Seen> {
        otlp_json::spans([&self.query(&format!("/api/v3/traces/{trace}?raw_traces=true"))["result"]])
    }

    /// Every warning that Jaeger's pages show. It changes what is stored: read raw before, and this once.
    fn warnings(&self, trace: &str) -> Vec<String> {
        let answer = self.query(&format!("/api/traces/{trace}"));
        let spans = answer["data"][0]["spans"].as_array().unwrap();
        let warnings = spans.iter().flat_map(|span| span["warnings"].as_array().cloned().unwrap_or_default());
        warnings.map(|warning| warning.as_str().unwrap().to_owned()).collect()
    }

    /// Every warning of both query APIs, whose adjusters differ; one that the first has stored shows in both.
    fn all_warnings(&self, trace: &str) -> Vec<String> {
        let adjusted = otlp_json::spans([&self.query(&format!("/api/v3/traces/{trace}"))["result"]]);
        let warnings = adjusted.iter().filter_map(|span| span["attributes"].get("@jaeger@warnings"));
        let mut found: Vec<_> = warnings.map(ToString::to_string).collect();
        found.extend(self.warnings(trace));
        found
    }
}

impl Drop for Jaeger {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.told["JAEGER_PID"].parse().unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = std::fs::remove_dir_all(PathBuf::from(&self.told["JAEGER_DIR"]));
    }
}

/// Jaeger takes a span that ends as it starts for one that ends before, makes it a nanosecond long and says so. Nothing
/// of OTLP forbids a length of zero, and what was observed at one instant only has no other.
fn with_jaegers_ends(spans: &[Seen]) -> (Vec<Seen>, usize) {
    let mut spans = spans.to_vec();
    let mut bent = 0;
    for span in &mut spans {
        if span["start"] == span["end"] {
            span["end"] = json!(span["start"].as_u64().unwrap() + 1);
            bent += 1;
        }
    }
    (spans, bent)
}

fn settings(jaeger: &Jaeger, protocol: &str, more: &str) -> String {
    let endpoint = jaeger.endpoint(protocol);
    let common = conversation::COMMON;
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={endpoint}\nOTEL_EXPORTER_OTLP_PROTOCOL={protocol}\n{more}{common}")
}

fn trace() -> String {
    conversation::ID.replace('-', "")
}

/// One conversation over one protocol, compared in full; returns Jaeger's warnings.
fn whole_conversation(jaeger: &Jaeger, settings: &str) -> Vec<String> {
    let whole = conversation::play_and_deliver(&conversation::sandbox(settings));
    assert_same(&whole, &jaeger.raw(&trace()));
    assert_eq!(jaeger.query("/api/services")["data"], json!(["service-of-the-test"]));
    jaeger.all_warnings(&trace())
}

/// Jaeger compares the clocks of a parent and its child unless both tell the same host: by `host.id`, `host.ip` or
/// `host.name` in its API of version 3, by `ip` in the one behind its pages.
const HOST: &str = "OTEL_RESOURCE_ATTRIBUTES=host.name=machine-of-the-test,ip=127.0.0.1\n";
const NONE: [&str; 0] = [];

#[test]
fn grpc() {
    let jaeger = Jaeger::start();
    assert_eq!(whole_conversation(&jaeger, &(settings(&jaeger, "grpc", "") + HOST)), NONE);
}

#[test]
fn grpc_with_gzip() {
    let jaeger = Jaeger::start();
    let gzip = settings(&jaeger, "grpc", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip\n");
    assert_eq!(whole_conversation(&jaeger, &(gzip + HOST)), NONE);
}

#[test]
fn http_protobuf() {
    let jaeger = Jaeger::start();
    assert_eq!(whole_conversation(&jaeger, &(settings(&jaeger, "http/protobuf", "") + HOST)), NONE);
}

#[test]
fn http_json_with_gzip() {
    let jaeger = Jaeger::start();
    let gzip = settings(&jaeger, "http/json", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip\n");
    assert_eq!(whole_conversation(&jaeger, &(gzip + HOST)), NONE);
}

#[test]
fn a_conversation_that_is_not_resumed_has_no_warning_by_default() {
    for protocol in ["grpc", "http/protobuf"] {
        let jaeger = Jaeger::start();
        let sandbox = conversation::sandbox(&settings(&jaeger, protocol, ""));
        conversation::play_first_run(&sandbox);
        assert_same(&expected::delivered(&sandbox, conversation::ID), &jaeger.raw(&trace()));
        assert_eq!(jaeger.all_warnings(&trace()), NONE);
    }
}

/// The root is sent once, at the first end of the session, and turns of a resume lie behind that. Jaeger takes this for
/// a clock that goes wrong if such a turn is shorter than the root and no host is told.
#[test]
fn turns_of_a_resume_look_like_clock_skew_where_no_host_is_told() {
    let jaeger = Jaeger::start();
    let warnings = whole_conversation(&jaeger, &settings(&jaeger, "grpc", ""));
    let resumed = conversation::WHOLE.iter().filter(|line| line.contains("session.resumed")).count();
    // Twice: each API has an adjuster of its own, and the second shows what the first has stored.
    assert!(warnings.len() <= resumed * 3, "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.contains("clock skew adjustment disabled")), "{warnings:?}");
}

#[test]
fn tls_with_client_certificates() {
    let authority = Authority::new();
    let (certificate, key) = authority.server_files(&["127.0.0.1"]);
    let (client, client_key) = authority.client_files();
    let trusted = authority.file();
    for protocol in ["grpc", "http/protobuf"] {
        let jaeger = Jaeger::start_with(&[
            ("JAEGER_TLS_CERT", &certificate),
            ("JAEGER_TLS_KEY", &key),
            ("JAEGER_TLS_CLIENT_CA", &trusted),
        ]);
        let tls = format!(
            "OTEL_EXPORTER_OTLP_CERTIFICATE={}\nOTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE={}\n\
             OTEL_EXPORTER_OTLP_CLIENT_KEY={}\n",
            trusted.display(),
            client.display(),
            client_key.display()
        );
        assert_eq!(whole_conversation(&jaeger, &(settings(&jaeger, protocol, &tls) + HOST)), NONE);
    }
}

/// Why `once` is the default here.
#[test]
fn a_root_that_is_sent_again_is_shown_again_there() {
    let jaeger = Jaeger::start();
    let sandbox = conversation::sandbox(&(settings(&jaeger, "grpc", "FI_HOOK_SESSION_SPAN=update\n") + HOST));
    conversation::play(&sandbox);
    let whole = expected::delivered(&sandbox, conversation::ID);
    let raw = jaeger.raw(&trace());
    let (roots, others): (Vec<Seen>, Vec<Seen>) = raw.into_iter().partition(|span| span["parentSpanId"] == "");
    assert!(roots.len() > 1 && others.len() == whole.len() - 1, "{} {}", roots.len(), others.len());
    assert!(whole.contains(roots.last().unwrap()), "the newest came last");
    let warnings = jaeger.warnings(&trace());
    assert_eq!(warnings.len(), roots.len() - 1, "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.starts_with("duplicate span IDs")), "{warnings:?}");
}

/// Without PreToolUse no tool has a length, nor has a turn of which only the beginning was observed.
#[test]
fn what_has_no_length_is_a_nanosecond_long_there() {
    let jaeger = Jaeger::start();
    let settings = settings(&jaeger, "grpc", "") + HOST;
    let sandbox = conversation::sandbox_installed_with(&["--no-pre-tool-use"], &settings);
    conversation::play(&sandbox);
    let whole = expected::delivered(&sandbox, conversation::ID);
    let end_only = expected::shape(&whole).iter().filter(|line| line.ends_with("timing=end_only")).count();
    let (bent, count) = with_jaegers_ends(&whole);
    assert!(end_only == 3 && count >= end_only, "{:#?}", expected::shape(&whole));
    let mut raw = jaeger.raw(&trace());
    for span in &mut raw {
        // Jaeger's own, and the only trace of it: it stores its warnings as an attribute.
        span["attributes"].as_object_mut().unwrap().remove("@jaeger@warnings");
    }
    assert_same(&bent, &raw);
    let warnings = jaeger.warnings(&trace());
    assert!(warnings.iter().all(|warning| warning.starts_with("Negative duration detected")), "{warnings:?}");
    assert_eq!(warnings.len(), count);
}
