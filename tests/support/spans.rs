//! Spans and destinations to send them to, with a runtime like the sender's.

use std::collections::BTreeMap;
use std::time::Duration;

use fi_hook_to_otlp::config::{Compression, Destination, Protocol, Proxies, Route, Secret, Tls};
use fi_hook_to_otlp::export::{Answer, Exporter, Outcome};
use fi_hook_to_otlp::redact::{Raw, Shape, Text, content};
use fi_hook_to_otlp::span::{Role, Span, SpanEvent, SpanId, SpanLink, Status, TraceId, Value};

/// Runs one future in a runtime of its own.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Sends one span.
pub(crate) fn send(destination: &Destination) -> Answer {
    run(async { Exporter::build(destination).unwrap().export(&resource(), &[span(1)]).await })
}

/// The kind of an outcome.
pub(crate) fn class_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Partial { .. } => "partial",
        Outcome::Retry { .. } => "retry",
        Outcome::Refused => "refused",
        Outcome::Configuration(_) => "configuration",
    }
}

/// The resource of one conversation.
pub(crate) fn resource() -> BTreeMap<String, Value> {
    BTreeMap::from([("service.name".to_owned(), "antigravity-cli".into()), ("project_name".to_owned(), "p".into())])
}

/// Content, as the hook process lets it pass.
pub(crate) fn text(plain: &str) -> Text {
    let json = serde_json::to_vec(plain).unwrap();
    content(&Raw::new(json, true), Shape::Plain)
}

/// A span with something of everything.
pub(crate) fn span(id: u8) -> Span {
    let attributes = BTreeMap::from([
        ("flag".to_owned(), Value::Bool(true)),
        ("big".to_owned(), Value::Int(i64::MAX)),
        ("half".to_owned(), Value::Double(0.5)),
        ("text".to_owned(), "ü".into()),
        ("content".to_owned(), text("said").into()),
        ("texts".to_owned(), Value::Texts(vec!["a".to_owned(), "b".to_owned()])),
    ]);
    Span {
        trace_id: TraceId([0xab; 16]),
        span_id: SpanId([id; 8]),
        parent: Some(SpanId([9; 8])),
        role: Role::ModelCall,
        name: "Model call".to_owned(),
        start_ns: 1_700_000_000_000_000_001,
        end_ns: 1_700_000_000_000_000_002,
        status: Status::Error(Some(text("bad"))),
        events: vec![SpanEvent {
            name: "e".to_owned(),
            at_ns: 1_700_000_000_000_000_003,
            attributes: attributes.clone(),
        }],
        links: vec![SpanLink { trace_id: TraceId([1; 16]), span_id: SpanId([2; 8]), attributes: BTreeMap::new() }],
        attributes,
    }
}

/// A way without proxy and without certificates of its own.
pub(crate) fn route(url: &str) -> Route {
    Route { url: url.to_owned(), timeout: Duration::from_secs(5), tls: Tls::default(), proxies: Proxies::default() }
}

/// An OTLP destination with one key, uncompressed. The URL is the final one.
pub(crate) fn otlp(url: &str, protocol: Protocol) -> Destination {
    let headers = vec![("x-key".to_owned(), Secret::new("hush-hush"))];
    Destination::Otlp { route: route(url), protocol, headers, compression: Compression::None }
}
