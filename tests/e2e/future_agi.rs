//! Future AGI: delivery to a stand-in that keeps its collector's contract, and the contract itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use agy_stand_in::script::{Conversation, Script, Tool, Turn};
use flate2::{Compression, write::GzEncoder};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;

use crate::conversation::{self, ID};
use crate::expected;
use crate::support::future_agi::{API_KEY, FutureAgi, LARGEST, Row, SECRET_KEY};
use crate::support::sandbox::{HANG, Sandbox, eventually};

const PROJECT: &str = "project of the test";

fn settings(collector: &FutureAgi, secret: &str) -> String {
    let (url, common) = (collector.url(), conversation::COMMON);
    format!("FI_BASE_URL={url}\nFI_API_KEY={API_KEY}\nFI_SECRET_KEY={secret}\n{common}")
}

/// What must be true of the rows of the whole conversation, however often a part of it was sent.
fn assert_whole(sandbox: &Sandbox, collector: &FutureAgi) {
    let whole = expected::delivered(sandbox, ID);
    assert_eq!(expected::shape(&whole), conversation::whole_with_root_updated());
    let rows = collector.rows();
    let ids: BTreeSet<_> = rows.iter().map(|row| row.key.span_id.as_str()).collect();
    assert_eq!((rows.len(), ids.len()), (whole.len(), whole.len()), "one row for each span: {rows:#?}");
    let rows: BTreeMap<_, _> = rows.iter().map(|row| (row.key.span_id.as_str(), row)).collect();
    for span in &whole {
        let row = rows[span["spanId"].as_str().unwrap()];
        let status = row.span.status.clone().unwrap_or_default();
        assert_eq!(row.key.trace_id, ID, "the trace is found by the conversation's id");
        assert_eq!(row.key.project, PROJECT);
        assert_eq!(row.key.service_name, "service-of-the-test");
        assert_eq!(row.session.as_deref(), Some(ID));
        assert_eq!(row.end_user.as_deref(), Some("user-of-the-test"));
        assert_eq!(row.parent_span_id, span["parentSpanId"].as_str().unwrap());
        assert_eq!(row.span.name, span["name"].as_str().unwrap());
        assert_eq!(Some(row.span.start_time_unix_nano), span["start"].as_u64());
        assert_eq!(Some(row.span.end_time_unix_nano), span["end"].as_u64(), "{row:#?}");
        assert_eq!(i64::from(status.code), span["status"]["code"].as_i64().unwrap());
        assert_eq!(row.span.attributes.len(), span["attributes"].as_object().unwrap().len());
        assert_eq!(row.key.observation_type, observation_type(&row.span.name));
        let model = span["attributes"]["llm.model_name"]["string"].as_str();
        assert!(model.is_none() || row.model.as_deref() == model, "{row:#?}");
    }
    assert_eq!(collector.listed(PROJECT), [(ID.to_owned(), "Antigravity session".to_owned())]);
}

fn observation_type(name: &str) -> &str {
    match name {
        "Antigravity session" => "chain",
        "Antigravity turn" => "agent",
        "Model call" => "llm",
        _ => "tool",
    }
}

/// Everything but the root was sent once; the root changed only where it may.
fn assert_sent_sparingly(collector: &FutureAgi) {
    let arrivals = collector.arrivals();
    let (roots, others): (Vec<_>, Vec<_>) = arrivals.iter().partition(|row| row.parent_span_id.is_empty());
    let ids: BTreeSet<_> = others.iter().map(|row| &row.key.span_id).collect();
    assert_eq!(ids.len(), others.len(), "only the root is sent again");
    for pair in roots.windows(2) {
        assert_eq!(pair[0].key, pair[1].key, "another key would leave two rows for ever");
        assert!(pair[0].span.end_time_unix_nano <= pair[1].span.end_time_unix_nano, "an older root came later");
    }
}

#[test]
fn a_conversation_is_one_row_for_each_span_under_one_listed_trace() {
    let collector = FutureAgi::start();
    let sandbox = conversation::sandbox(&settings(&collector, SECRET_KEY));
    conversation::play(&sandbox);
    assert_whole(&sandbox, &collector);
    assert_sent_sparingly(&collector);
    assert_eq!(collector.unlisted(), 0, "the root comes first, or in the same request");
    assert!(collector.answers().iter().all(|status| *status == 200), "{:?}", collector.answers());
}

#[test]
fn the_root_reaches_as_far_as_the_turns_that_have_ended() {
    let collector = FutureAgi::start();
    let sandbox = conversation::sandbox(&settings(&collector, SECRET_KEY));
    let turn = || Turn::prompt("go on").tool(Tool::run_command("make", ".").run_ms(5)).answer();
    let script = Script::of(Conversation::new().id(ID).turn(turn()).turn(turn().pause_ms(1500)));
    sandbox.agy().run(&script).unwrap();
    expected::delivered(&sandbox, ID);
    let (mut root, mut turns): (Option<Row>, Vec<(Row, Row)>) = (None, Vec::new());
    for row in collector.arrivals() {
        match row.span.name.as_str() {
            "Antigravity session" => root = Some(row),
            "Antigravity turn" => turns.push((root.clone().expect("a root before it"), row)),
            _ => {}
        }
    }
    assert_eq!(turns.len(), 2);
    for (root, turn) in &turns {
        assert!(root.span.end_time_unix_nano >= turn.span.end_time_unix_nano, "{root:#?} {turn:#?}");
    }
    let status = |root: &Row| root.span.status.clone().unwrap_or_default().code;
    assert_eq!(status(&turns[0].0), 0, "it was still open");
    assert_eq!(status(&root.unwrap()), 1, "every turn went well");
    assert_sent_sparingly(&collector);
    let snapshots = collector.arrivals().iter().filter(|row| row.parent_span_id.is_empty()).count();
    assert!((2..=4).contains(&snapshots), "with the first span, at a turn's end, at the session's end: {snapshots}");
}

#[test]
fn wrong_keys_keep_everything_until_they_are_corrected() {
    let collector = FutureAgi::start();
    let sandbox = conversation::sandbox(&settings(&collector, "wrong-key-of-the-test"));
    conversation::play(&sandbox);
    eventually("a refusal", || collector.answers().contains(&401).then_some(()));
    assert!(collector.answers().iter().all(|status| *status == 401));
    let log = fs::read_to_string(sandbox.profile().join("sender.log")).unwrap();
    assert!(log.contains("FI_API_KEY") || log.contains("http=401"), "{log}");
    sandbox.settings(&settings(&collector, SECRET_KEY));
    assert_whole(&sandbox, &collector);
    assert_sent_sparingly(&collector);
    let settings_file = sandbox.home().join(".config/fi-hook-to-otlp/env");
    for (path, bytes) in sandbox.files().into_iter().filter(|(path, _)| *path != settings_file) {
        for key in [API_KEY, SECRET_KEY, "wrong-key-of-the-test"] {
            assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()), "{key} in {}", path.display());
        }
    }
}

/// Plays the conversation into a collector that answers with `status` for a while.
fn through_bad_times(status: u16, set: impl Fn(&FutureAgi, bool)) {
    let collector = FutureAgi::start();
    set(&collector, true);
    let sandbox = conversation::sandbox(&settings(&collector, SECRET_KEY));
    conversation::play(&sandbox);
    eventually("two tries", || (collector.answers().len() >= 2).then_some(()));
    assert!(collector.answers().iter().all(|answer| *answer == status), "{:?}", collector.answers());
    assert_eq!(collector.rows(), []);
    set(&collector, false);
    assert_whole(&sandbox, &collector);
    assert_sent_sparingly(&collector);
}

#[test]
fn what_is_sent_while_the_database_is_down_arrives_later() {
    through_bad_times(503, FutureAgi::set_database_down);
}

#[test]
fn what_is_over_the_quota_arrives_when_there_is_a_new_one() {
    through_bad_times(429, FutureAgi::set_quota_used_up);
}

#[test]
fn no_setting_makes_it_compress() {
    let collector = FutureAgi::start();
    let gzip = "OTEL_EXPORTER_OTLP_COMPRESSION=gzip\nOTEL_EXPORTER_OTLP_PROTOCOL=grpc\n";
    let sandbox = conversation::sandbox(&(settings(&collector, SECRET_KEY) + gzip));
    conversation::play(&sandbox);
    assert_whole(&sandbox, &collector);
    assert!(collector.answers().iter().all(|status| *status == 200), "{:?}", collector.answers());
}

/// Configured as any OTLP endpoint: the session root is sent as for Future AGI only if that is asked for, and a
/// collector that does not unpack is found out.
#[test]
fn as_a_plain_otlp_endpoint_with_basic_authorization_and_gzip() {
    for protocol in ["http/protobuf", "http/json"] {
        let collector = FutureAgi::start();
        let basic =
            base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("{API_KEY}:{SECRET_KEY}"));
        let sandbox = conversation::sandbox(&format!(
            "OTEL_EXPORTER_OTLP_ENDPOINT={}\nOTEL_EXPORTER_OTLP_HEADERS=authorization=Basic%20{basic}\n\
             OTEL_EXPORTER_OTLP_PROTOCOL={protocol}\nOTEL_EXPORTER_OTLP_COMPRESSION=gzip\n\
             FI_HOOK_SESSION_SPAN=update\n{}",
            collector.url(),
            conversation::COMMON
        ));
        conversation::play(&sandbox);
        assert_whole(&sandbox, &collector);
        let answers = collector.answers();
        assert_eq!(answers[0], 400, "a gzip body");
        assert!(answers[1..].iter().all(|status| *status == 200), "found out once, remembered: {answers:?}");
    }
}

/// The status of a raw request.
fn raw(collector: &FutureAgi, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, collector.port())).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    stream.write_all(&[head.as_bytes(), b"\r\n", body].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const API: (&str, &str) = ("x-api-key", API_KEY);
const SECRET: (&str, &str) = ("X-Secret-Key", SECRET_KEY);
const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");

const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
const BASIC: (&str, &str) = ("authorization", "basic YXBpLWtleS1vZi10aGUtdGVzdDpzZWNyZXQta2V5LW9mLXRoZS10ZXN0");
const PATH: &str = "/tracer/v1/traces";

#[test]
fn the_stand_in_keeps_the_contract() {
    let collector = FutureAgi::start();
    let projectless = br#"{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[]}]}"#;
    let as_protobuf: ExportTraceServiceRequest = serde_json::from_slice(projectless).unwrap();
    let (as_protobuf, largest) = (as_protobuf.encode_to_vec(), vec![0xff; LARGEST + 1]);
    let (post, wrong) = ("POST", ("x-secret-key", "wrong"));
    for (status, method, path, headers, body) in [
        (200, post, PATH, &[API, SECRET, PROTOBUF][..], &b""[..]),
        (200, post, "/v1/traces", &[BASIC, PROTOBUF], b""),
        (200, post, PATH, &[API, SECRET, JSON], b"{}"),
        (401, post, PATH, &[PROTOBUF], b""),
        (401, post, PATH, &[API, PROTOBUF], b""),
        (401, post, PATH, &[API, wrong, PROTOBUF], b""),
        (401, "GET", "/elsewhere", &[], b""),
        (404, post, "/tracer/v1/traces/", &[API, SECRET, PROTOBUF], b""),
        (404, post, "/", &[API, SECRET, PROTOBUF], b""),
        (405, "GET", PATH, &[API, SECRET, PROTOBUF], b""),
        (415, post, PATH, &[API, SECRET], b""),
        (415, post, PATH, &[API, SECRET, ("content-type", "application/protobuf")], b""),
        (400, post, PATH, &[API, SECRET, JSON], b""),
        (400, post, PATH, &[API, SECRET, JSON], projectless),
        (400, post, PATH, &[API, SECRET, PROTOBUF], &as_protobuf),
        (400, post, PATH, &[API, SECRET, PROTOBUF, ("content-encoding", "gzip")], &gzip(b"")),
        (400, post, PATH, &[API, SECRET, PROTOBUF], &largest[..LARGEST]),
        (413, post, PATH, &[API, SECRET, PROTOBUF], &largest),
    ] {
        let (answered, text) = raw(&collector, method, path, headers, body);
        assert_eq!(answered, status, "{method} {path} {headers:?}: {text}");
        let content_type = match status {
            200 if headers.contains(&JSON) => "application/json",
            200 => "application/x-protobuf",
            _ => "text/plain",
        };
        assert!(text.contains(&format!("content-type: {content_type}")), "{text}");
    }
    assert_eq!(collector.rows(), []);
}

#[test]
fn the_stand_in_has_bad_times_without_saying_how_long() {
    let collector = FutureAgi::start();
    let down: fn(&FutureAgi, bool) = FutureAgi::set_database_down;
    for (status, set) in [(503, down), (429, FutureAgi::set_quota_used_up)] {
        set(&collector, true);
        let (answered, text) = raw(&collector, "POST", PATH, &[API, SECRET, PROTOBUF], b"");
        assert_eq!((answered, text.to_lowercase().contains("retry-after")), (status, false), "{text}");
        set(&collector, false);
    }
}
