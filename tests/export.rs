//! The way to a receiver, over real sockets: what is sent, and what each answer means.

mod support;

use std::time::Duration;

use fi_hook_to_otlp::config::{Compression, Destination, EnvFile, Protocol, Sources, resolve};
use fi_hook_to_otlp::export::{Code, Exporter, Outcome, encode};
use support::receiver::{Manner, Receiver, Reply};
use support::spans::{class_of, resource, run, send, span};

fn otlp(receiver: &Receiver, protocol: Protocol) -> Destination {
    support::spans::otlp(&(receiver.url() + "/v1/traces"), protocol)
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
    assert_eq!((got.attributes.len(), got.events[0].attributes.len()), (6, 6));
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

#[test]
fn retry_after_is_read_as_seconds_and_as_a_date() {
    let receiver = Receiver::start();
    let date = std::time::SystemTime::now() + Duration::from_secs(100);
    receiver.script([
        Reply::status(429).header("retry-after", "120"),
        Reply::status(503).header("retry-after", &httpdate::fmt_http_date(date)),
        Reply::status(503).header("retry-after", "later"),
        Reply::status(400).header("retry-after", "120"),
    ]);
    let outcomes: Vec<_> = (0..4).map(|_| send(&otlp(&receiver, Protocol::HttpProtobuf)).outcome).collect();
    assert_eq!(outcomes[0], Outcome::Retry { after: Some(Duration::from_secs(120)) });
    assert!(
        matches!(outcomes[1], Outcome::Retry { after: Some(after) } if (95..=100).contains(&after.as_secs())),
        "{:?}",
        outcomes[1]
    );
    assert_eq!(outcomes[2..], [Outcome::Retry { after: None }, Outcome::Refused]);
}

#[test]
fn json_is_as_the_definition_wants_it() {
    let receiver = Receiver::start();
    assert_eq!(send(&otlp(&receiver, Protocol::HttpJson)).outcome, Outcome::Delivered);
    let request = receiver.only_request();
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.spans().len(), 1, "the definition's own reader takes it");
    let json: serde_json::Value = serde_json::from_slice(&request.raw).unwrap();
    let span = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], "ab".repeat(16));
    assert_eq!(span["spanId"], "01".repeat(8));
    assert_eq!(span["parentSpanId"], "09".repeat(8));
    assert_eq!(span["startTimeUnixNano"], "1700000000000000001");
    assert_eq!((&span["kind"], &span["status"]["code"]), (&3.into(), &2.into()));
    let values: Vec<_> = span["attributes"].as_array().unwrap().iter().map(|a| a["value"].to_string()).collect();
    let expected = [
        r#"{"intValue":"9223372036854775807"}"#,
        r#"{"stringValue":"said"}"#,
        r#"{"boolValue":true}"#,
        r#"{"doubleValue":0.5}"#,
        r#"{"stringValue":"ü"}"#,
        r#"{"arrayValue":{"values":[{"stringValue":"a"},{"stringValue":"b"}]}}"#,
    ];
    assert_eq!(values, expected);
}

#[test]
fn gzip_is_sent_when_asked_for_but_never_to_future_agi() {
    let receiver = Receiver::start();
    for protocol in [Protocol::HttpProtobuf, Protocol::HttpJson] {
        let mut destination = otlp(&receiver, protocol);
        if let Destination::Otlp { compression, .. } = &mut destination {
            *compression = Compression::Gzip;
        }
        assert_eq!(send(&destination).outcome, Outcome::Delivered);
        assert_eq!(send(&destination.without_compression()).outcome, Outcome::Delivered);
    }
    let file =
        format!("FI_API_KEY=a\nFI_SECRET_KEY=b\nFI_BASE_URL={}\nOTEL_EXPORTER_OTLP_COMPRESSION=gzip\n", receiver.url());
    let file = Some(EnvFile::parse("env".into(), file.as_bytes()));
    assert_eq!(send(&resolve(&Sources { file, ..Sources::default() }).destination).outcome, Outcome::Delivered);
    let requests = receiver.requests();
    let encodings: Vec<_> = requests.iter().map(|request| request.header("content-encoding")).collect();
    assert_eq!(encodings, [Some("gzip"), None, Some("gzip"), None, None]);
    assert!(requests.iter().all(|request| request.spans().len() == 1));
}

#[test]
fn what_was_rejected_is_counted_with_the_receivers_words() {
    let receiver = Receiver::start();
    let json = |body: &str| Reply::status(200).header("content-type", "application/json").body(body);
    let partial = |rejected, message: &str| Outcome::Partial { rejected, message: message.to_owned() };
    for (protocol, reply, outcome) in [
        (Protocol::HttpProtobuf, Reply::partial(2, "hush-hush is old"), partial(2, "[REDACTED] is old")),
        (Protocol::HttpProtobuf, Reply::partial(0, "a warning"), partial(0, "a warning")),
        (Protocol::HttpProtobuf, Reply::partial(0, ""), Outcome::Delivered),
        (Protocol::HttpJson, json(r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"x"}}"#), partial(2, "x")),
        (Protocol::HttpJson, json(r#"{"partialSuccess":{}}"#), Outcome::Delivered),
        (Protocol::HttpProtobuf, json("{}"), Outcome::Delivered),
        (Protocol::HttpProtobuf, Reply::status(200), Outcome::Delivered),
    ] {
        receiver.script([reply]);
        let answer = send(&otlp(&receiver, protocol));
        assert_eq!(answer.outcome, outcome);
    }
}

#[test]
fn a_success_that_is_no_otlp_answer_is_a_matter_of_configuration() {
    let receiver = Receiver::start();
    let page = "<!doctype html><title>Sign in</title>";
    for (reply, words) in [
        (Reply::status(200).header("content-type", "text/html; charset=utf-8").body(page), Some("Sign in")),
        (Reply::status(200).body(page), Some("Sign in")),
        (Reply::status(200).header("content-type", "text/plain").body("hello"), Some("hello")),
        (Reply::status(200).body(vec![b'x'; 100_000]), None),
    ] {
        receiver.script([reply]);
        let answer = send(&otlp(&receiver, Protocol::HttpProtobuf));
        assert_eq!((class_of(&answer.outcome), answer.reason), ("configuration", "not_otlp"), "{answer:?}");
        if let Some(words) = words {
            assert_eq!(answer.message.as_deref(), Some(words));
        }
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let (first, other) = (Receiver::start(), Receiver::start());
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{}/v1/traces?key=hush-query", other.url());
        first.script([Reply::status(status).header("location", &target)]);
        let answer = send(&otlp(&first, Protocol::HttpProtobuf));
        assert_eq!((class_of(&answer.outcome), answer.reason), ("configuration", "redirect"));
        assert_eq!(answer.message, Some(format!("redirected to {}/v1/traces", other.url())));
    }
    assert_eq!(other.requests().len(), 0, "no key went to another host");
}

#[test]
fn messages_are_short_and_hold_no_key() {
    let receiver = Receiver::start();
    receiver.script([Reply::status(401).body(format!("bad key hush-hush {}", "é".repeat(100_000)))]);
    let answer = send(&otlp(&receiver, Protocol::HttpProtobuf));
    let message = answer.message.unwrap();
    assert!(message.starts_with("bad key [REDACTED]"), "{message}");
    assert_eq!(message.chars().count(), 500);
}

#[test]
fn future_agi_answers_in_its_own_words() {
    let receiver = Receiver::start();
    for (status, part) in [(404, "collector's port"), (401, "FI_API_KEY")] {
        receiver.script([Reply::status(status).header("content-type", "text/plain").body("nope")]);
        let answer = send(&future_agi(&receiver));
        assert!(matches!(&answer.outcome, Outcome::Configuration(words) if words.contains(part)), "{answer:?}");
        assert_eq!(answer.message.as_deref(), Some("nope"));
    }
}

#[test]
fn nobody_listening_is_tried_again_and_a_return_is_seen() {
    let mut receiver = Receiver::start();
    let destination = otlp(&receiver, Protocol::HttpProtobuf);
    run(async {
        let exporter = Exporter::build(&destination).unwrap();
        assert_eq!(exporter.export(&resource(), &[span(1)]).await.outcome, Outcome::Delivered);
        receiver.stop();
        // The first try may find that the connection it kept is gone.
        assert_eq!(class_of(&exporter.export(&resource(), &[span(1)]).await.outcome), "retry");
        let answer = exporter.export(&resource(), &[span(1)]).await;
        assert_eq!((answer.outcome, answer.reason), (Outcome::Retry { after: None }, "connection_refused"));
        receiver.restart();
        assert_eq!(exporter.export(&resource(), &[span(1)]).await.outcome, Outcome::Delivered);
    });
}

#[test]
fn a_name_without_an_address_is_a_matter_of_configuration() {
    for (url, protocol) in [
        ("http://collector.invalid:4318/v1/traces", Protocol::HttpProtobuf),
        ("http://collector.invalid:4317", Protocol::Grpc),
    ] {
        let answer = send(&support::spans::otlp(url, protocol));
        assert_eq!(
            (class_of(&answer.outcome), answer.reason, answer.code),
            ("configuration", "dns", None),
            "{answer:?}"
        );
    }
}

#[test]
fn the_probe_stores_nothing() {
    let receiver = Receiver::start();
    for destination in [future_agi(&receiver), otlp(&receiver, Protocol::HttpJson)] {
        let answer = run(async { Exporter::build(&destination).unwrap().probe().await });
        assert_eq!(answer.outcome, Outcome::Delivered);
    }
    let requests = receiver.requests();
    assert_eq!((requests[0].raw.as_slice(), requests[1].raw.as_slice()), (&b""[..], &b"{}"[..]));
    assert!(requests.iter().all(|request| request.request.as_ref().is_some_and(|r| r.resource_spans.is_empty())));
}

#[test]
fn nowhere_to_send_to_is_an_error_that_says_what_to_set() {
    let file = Some(EnvFile::parse("env".into(), b"FI_API_KEY=hush"));
    for (sources, part) in [
        (Sources::default(), "OTEL_EXPORTER_OTLP_ENDPOINT"),
        (Sources { file, ..Sources::default() }, "set FI_SECRET_KEY, FI_BASE_URL"),
    ] {
        let error = Exporter::build(&resolve(&sources).destination).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("hush"), "{error}");
    }
}
