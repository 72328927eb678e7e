//! What must have arrived, from the local store. Written out anew here: the program's own encoder is what is tested.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use fi_hook_to_otlp::redact::Text;
use fi_hook_to_otlp::span::{Role, Span, Status, Value};
use fi_hook_to_otlp::store::Store;
use serde_json::{Value as Json, json};

pub(crate) use crate::otlp_json::Seen;
use crate::support::sandbox::{Sandbox, eventually};

/// Low byte: sampled. Bits 8 and 9: it is known whether the parent is remote, and it is not.
const FLAGS: u64 = 0x101;

/// Waits until nothing is left in the spool and a conversation's session has ended: all its spans are stored.
pub(crate) fn ended(sandbox: &Sandbox, conversation: &str) {
    eventually("the session ends", || {
        // In this order: what is not in the spool any more is in the store.
        let folded = fs::read_dir(sandbox.profile().join("spool/new")).ok()?.count() == 0;
        let row = Store::open_read_only(&sandbox.profile()).ok()??.conversations_like(conversation).ok()?.pop()?;
        (folded && !row.state.is_open()).then_some(())
    });
}

/// Waits until a conversation has ended and is delivered; says what must have arrived.
pub(crate) fn delivered(sandbox: &Sandbox, conversation: &str) -> Vec<Seen> {
    ended(sandbox, conversation);
    eventually("everything is delivered", || {
        let spans = sandbox.spans(conversation);
        spans.iter().all(|stored| stored.outcome.as_deref() == Some("delivered")).then_some(())
    });
    stored(sandbox, conversation)
}

/// The spans of a conversation as the store has them, in the form of what receivers show.
pub(crate) fn stored(sandbox: &Sandbox, conversation: &str) -> Vec<Seen> {
    let store = Store::open_read_only(&sandbox.profile()).unwrap().unwrap();
    let rows = store.conversations_like(conversation).unwrap();
    assert_eq!(rows.len(), 1, "one conversation");
    let resource = attributes(&rows[0].resource);
    store.spans(conversation).unwrap().iter().map(|stored| seen(&stored.span, &resource)).collect()
}

/// What must never arrive twice, or not at all: both sides in full, in one order.
pub(crate) fn assert_same(expected: &[Seen], arrived: &[Seen]) {
    let (expected, arrived) = (sorted(expected), sorted(arrived));
    for (wanted, got) in expected.iter().zip(&arrived) {
        if wanted != got {
            panic!("wanted {wanted:#}\ngot {got:#}\nof {} and {} spans", expected.len(), arrived.len());
        }
    }
    assert_eq!(expected.len(), arrived.len(), "wanted {expected:#?}\ngot {arrived:#?}");
}

/// Copies of one span that are the same in everything count once; copies that differ are a failure.
pub(crate) fn without_copies(arrived: &[Seen]) -> Vec<Seen> {
    let mut kept = sorted(arrived);
    kept.dedup();
    let ids: BTreeSet<_> = kept.iter().map(|span| span["spanId"].to_string()).collect();
    assert_eq!(ids.len(), kept.len(), "a span id was sent again with other contents: {kept:#?}");
    kept
}

/// A drawing of the trace: of each span its turn, name, parent's name and status code, and what is special about it.
pub(crate) fn shape(spans: &[Seen]) -> Vec<String> {
    let names: BTreeMap<_, _> = spans.iter().map(|span| (span["spanId"].as_str(), span["name"].as_str())).collect();
    let line = |span: &Seen| {
        let parent = match span["parentSpanId"].as_str() {
            Some("") => "-",
            parent => names.get(&parent).copied().flatten().unwrap_or("?"),
        };
        let turn = span["attributes"]["antigravity.turn.index"]["int"].as_u64();
        let turn = turn.map_or("-".to_owned(), |index| index.to_string());
        let name = span["name"].as_str().unwrap();
        format!("{turn} {name} < {parent}: {}{}", span["status"]["code"], remarks(span))
    };
    let mut lines: Vec<_> = spans.iter().map(line).collect();
    lines.sort();
    lines
}

fn remarks(span: &Seen) -> String {
    let marks = [
        "session.end",
        "session.resumed",
        "turn.interrupted",
        "turn.partial",
        "turn.continued",
        "turn.unnamed_steps",
        "turn.unobserved_tools",
        "timing",
        "clamped",
        "late",
    ];
    let mut remarks = String::new();
    for mark in marks {
        if let Some(value) = span["attributes"].get(format!("antigravity.{mark}")) {
            write!(remarks, " {mark}={}", plain(value)).unwrap();
        }
    }
    for event in span["events"].as_array().unwrap() {
        write!(remarks, " event={}", event["name"].as_str().unwrap()).unwrap();
    }
    for link in span["links"].as_array().unwrap() {
        write!(remarks, " link={}", link["spanId"].as_str().unwrap()).unwrap();
    }
    remarks
}

/// A typed value without its type.
fn plain(typed: &Json) -> String {
    match typed.as_object().and_then(|typed| typed.values().next()).unwrap() {
        Json::String(text) => text.clone(),
        Json::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn sorted(spans: &[Seen]) -> Vec<Seen> {
    let mut spans = spans.to_vec();
    spans.sort_by_key(|span| (span["spanId"].to_string(), span.to_string()));
    spans
}

fn seen(span: &Span, resource: &Json) -> Seen {
    let (code, message) = match &span.status {
        Status::Unset => (0, ""),
        Status::Ok => (1, ""),
        Status::Error(text) => (2, text.as_ref().map(Text::as_str).unwrap_or_default()),
    };
    json!({
        "traceId": span.trace_id.to_string(),
        "spanId": span.span_id.to_string(),
        "parentSpanId": span.parent.map(|parent| parent.to_string()).unwrap_or_default(),
        "traceState": "",
        "flags": FLAGS,
        "name": span.name,
        "kind": if span.role == Role::ModelCall { 3 } else { 1 },
        "start": span.start_ns,
        "end": span.end_ns,
        "status": {"code": code, "message": message},
        "attributes": attributes(&span.attributes),
        "events": span.events.iter().map(|event| json!({
            "name": event.name,
            "at": event.at_ns,
            "attributes": attributes(&event.attributes),
            "dropped": 0,
        })).collect::<Vec<_>>(),
        "links": span.links.iter().map(|link| json!({
            "traceId": link.trace_id.to_string(),
            "spanId": link.span_id.to_string(),
            "traceState": "",
            "flags": FLAGS,
            "attributes": attributes(&link.attributes),
            "dropped": 0,
        })).collect::<Vec<_>>(),
        "dropped": [0, 0, 0],
        "resource": resource,
        "scope": {"name": "fi-hook-to-otlp", "version": env!("CARGO_PKG_VERSION"), "attributes": {}},
    })
}

fn attributes(given: &BTreeMap<String, Value>) -> Json {
    let value = |value: &Value| match value {
        Value::Bool(flag) => json!({"bool": flag}),
        Value::Int(number) => json!({"int": number}),
        Value::Double(number) => json!({"double": number}),
        Value::Text(text) => json!({"string": text}),
        Value::Content(text) => json!({"string": text.as_str()}),
        Value::Texts(texts) => {
            json!({"array": texts.iter().map(|text| json!({"string": text})).collect::<Vec<_>>()})
        }
    };
    json!(given.iter().map(|(key, given)| (key, value(given))).collect::<BTreeMap<_, _>>())
}
