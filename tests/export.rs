//! The way to a receiver, over real sockets: what is sent, and what each answer means.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use fi_hook_to_otlp::config::{
    Compression, Destination, EnvFile, Protocol, Proxies, Route, Secret, Sources, Tls, resolve,
};
use fi_hook_to_otlp::export::{Answer, Code, Exporter, Outcome, encode};
use fi_hook_to_otlp::span::{Role, Span, SpanEvent, SpanId, SpanLink, Status, TraceId, Value};
use support::receiver::{Manner, Receiver, Reply};

/// Runs one future; a runtime like the sender's.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn send(destination: &Destination) -> Answer {
    run(async { Exporter::build(destination).unwrap().export(&resource(), &[span(1)]).await })
}

fn resource() -> BTreeMap<String, Value> {
    BTreeMap::from([("service.name".to_owned(), "antigravity-cli".into()), ("project_name".to_owned(), "p".into())])
}

/// A span with something of everything.
fn span(id: u8) -> Span {
    let attributes = BTreeMap::from([
        ("flag".to_owned(), Value::Bool(true)),
        ("big".to_owned(), Value::Int(i64::MAX)),
        ("half".to_owned(), Value::Double(0.5)),
        ("text".to_owned(), "ü".into()),
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
        status: Status::Error(Some("bad".to_owned())),
        events: vec![SpanEvent {
            name: "e".to_owned(),
            at_ns: 1_700_000_000_000_000_003,
            attributes: attributes.clone(),
        }],
        links: vec![SpanLink { trace_id: TraceId([1; 16]), span_id: SpanId([2; 8]), attributes: BTreeMap::new() }],
        attributes,
    }
}

fn route(url: String) -> Route {
    Route { url, timeout: Duration::from_secs(5), tls: Tls::default(), proxies: Proxies::default() }
}

fn otlp(receiver: &Receiver, protocol: Protocol) -> Destination {
    let path = if protocol == Protocol::Grpc { "" } else { "/v1/traces" };
    Destination::Otlp {
        route: route(receiver.url() + path),
        protocol,
        headers: vec![("x-key".to_owned(), Secret::new("hush-hush"))],
        compression: Compression::None,
    }
}

fn future_agi(receiver: &Receiver) -> Destination {
    let text = format!("FI_API_KEY=api-hush\nFI_SECRET_KEY=secret-hush\nFI_BASE_URL={}/\n", receiver.url());
    let file = EnvFile::parse("env".into(), text.as_bytes());
    resolve(&Sources { file: Some(file), ..Sources::default() }).destination
}

#[test]
fn future_agi_gets_plain_protobuf_with_both_keys() {
    let receiver = Receiver::start();
    let answer = send(&future_agi(&receiver));
    assert_eq!(answer.outcome, Outcome::Delivered);
    assert_eq!(answer.code, Some(Code::Http(200)));
    let request = receiver.only_request();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/tracer/v1/traces"));
    assert_eq!(request.header("x-api-key"), Some("api-hush"));
    assert_eq!(request.header("x-secret-key"), Some("secret-hush"));
    assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
    assert_eq!(request.header("content-encoding"), None);
    let agent = request.header("user-agent").unwrap();
    assert!(agent.starts_with("fi-hook-to-otlp/") && agent.contains("OTel-OTLP-Exporter-Rust/"), "{agent}");
}

#[test]
fn a_span_arrives_as_it_is() {
    let receiver = Receiver::start();
    send(&otlp(&receiver, Protocol::HttpProtobuf));
    let request = receiver.only_request();
    let sent = request.request.clone().unwrap();
    let resource = sent.resource_spans[0].resource.clone().unwrap();
    let keys: Vec<_> = resource.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    assert_eq!(keys.len(), 2, "no detector adds anything: {keys:?}");
    let scope = sent.resource_spans[0].scope_spans[0].scope.clone().unwrap();
    assert_eq!((scope.name.as_str(), scope.version.as_str()), ("fi-hook-to-otlp", env!("CARGO_PKG_VERSION")));
    let got = request.spans().remove(0);
    assert_eq!((got.trace_id, got.span_id, got.parent_span_id), (vec![0xab; 16], vec![1; 8], vec![9; 8]));
    assert_eq!(
        (got.start_time_unix_nano, got.end_time_unix_nano),
        (1_700_000_000_000_000_001, 1_700_000_000_000_000_002)
    );
    assert_eq!((got.name.as_str(), got.kind, got.flags & 0xff), ("Model call", 3, 1));
    assert_eq!(got.status.map(|status| (status.code, status.message)), Some((2, "bad".to_owned())));
    assert_eq!((got.attributes.len(), got.events[0].attributes.len()), (5, 5));
    assert_eq!((got.events[0].time_unix_nano, got.events[0].name.as_str()), (1_700_000_000_000_000_003, "e"));
    assert_eq!((got.links[0].trace_id.clone(), got.links[0].span_id.clone()), (vec![1; 16], vec![2; 8]));
    assert_eq!((got.dropped_attributes_count, got.dropped_events_count, got.dropped_links_count), (0, 0, 0));
}

#[test]
fn the_encoded_length_is_that_of_the_wire() {
    let receiver = Receiver::start();
    let exporter = Exporter::build(&otlp(&receiver, Protocol::HttpProtobuf)).unwrap();
    run(async {
        for count in [0, 1, 2, 40] {
            let spans: Vec<_> = (0..count).map(span).collect();
            assert_eq!(exporter.export(&resource(), &spans).await.outcome, Outcome::Delivered);
        }
    });
    let lengths: Vec<_> = receiver.requests().iter().map(|request| request.raw.len()).collect();
    let one = encode::encoded_len(&span(1));
    assert_eq!(lengths[2] - lengths[1], one);
    assert!(lengths[3] - 40 * one < encode::REQUEST_OVERHEAD + 64, "{lengths:?} {one}");
}

#[test]
fn every_status_means_what_the_table_says() {
    let receiver = Receiver::start();
    let exporter = Exporter::build(&otlp(&receiver, Protocol::HttpProtobuf)).unwrap();
    for (status, class, reason) in [
        (200, "delivered", "delivered"),
        (202, "delivered", "delivered"),
        (204, "delivered", "delivered"),
        (301, "configuration", "redirect"),
        (307, "configuration", "redirect"),
        (308, "configuration", "redirect"),
        (400, "refused", "bad_request"),
        (401, "configuration", "unauthorized"),
        (403, "configuration", "forbidden"),
        (404, "configuration", "not_found"),
        (405, "configuration", "method_not_allowed"),
        (413, "refused", "too_large"),
        (415, "configuration", "unsupported_media_type"),
        (422, "refused", "unprocessable"),
        (429, "retry", "too_many_requests"),
        (500, "configuration", "server_error"),
        (502, "retry", "unavailable"),
        (503, "retry", "unavailable"),
        (504, "retry", "unavailable"),
    ] {
        receiver.script([Reply::status(status)]);
        let answer = run(exporter.export(&resource(), &[span(1)]));
        assert_eq!((class_of(&answer.outcome), answer.reason), (class, reason), "{status}");
        assert_eq!(answer.code, Some(Code::Http(status)));
    }
    assert_eq!(receiver.requests().len(), 19, "each was sent once");
}

fn class_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Partial { .. } => "partial",
        Outcome::Retry { .. } => "retry",
        Outcome::Refused => "refused",
        Outcome::Configuration(_) => "configuration",
    }
}

#[test]
fn a_slow_or_broken_answer_is_tried_again() {
    let receiver = Receiver::start();
    let mut destination = otlp(&receiver, Protocol::HttpProtobuf);
    if let Destination::Otlp { route, .. } = &mut destination {
        route.timeout = Duration::from_millis(200);
    }
    let drip = Manner::Drip(Duration::from_millis(50));
    for (reply, reason) in [
        (Reply::ok().manner(Manner::Hang), "timeout"),
        (Reply::ok().manner(drip), "timeout"),
        (Reply::ok().after(Duration::from_secs(2)), "timeout"),
        (Reply::ok().manner(Manner::Reset), "connection_failed"),
        (Reply::ok().manner(Manner::ResetInBody), "connection_failed"),
    ] {
        receiver.script([reply.clone()]);
        let answer = send(&destination);
        assert_eq!((answer.outcome, answer.reason), (Outcome::Retry { after: None }, reason), "{reply:?}");
    }
    assert_eq!(receiver.requests().len(), 5);
}
