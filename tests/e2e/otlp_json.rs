//! Reads spans out of OTLP as JSON, in the dialects of the receivers: Google's field names or the definition's, ids in
//! base64 or hexadecimal, numbers as numbers or text, enums by name or number. All come out in one form, [`Seen`].

use std::collections::BTreeMap;

use base64::Engine;
use serde_json::{Map, Value, json};

/// One span as a receiver has it, with nothing left out: every field of OTLP, its resource and its scope.
///
/// `{"traceId", "spanId", "parentSpanId", "name", "kind", "start", "end", "status", "attributes", "events", "links", …}`;
/// attributes are `{"key": {"string": "value"}}`, so that types are compared, too.
pub(crate) type Seen = Value;

/// The spans of requests, in the order in which they stand there.
pub(crate) fn spans<'r>(requests: impl IntoIterator<Item = &'r Value>) -> Vec<Seen> {
    let mut found = Vec::new();
    for request in requests {
        let request = camel(request);
        for resource in list(&request, "resourceSpans") {
            for scope in list(resource, "scopeSpans") {
                let described = json!({
                    "name": text(&scope["scope"], "name"),
                    "version": text(&scope["scope"], "version"),
                    "attributes": attributes(&scope["scope"]),
                });
                let read = |span| read_span(span, &attributes(&resource["resource"]), &described);
                found.extend(list(scope, "spans").iter().map(read));
            }
        }
    }
    found
}

fn read_span(span: &Value, resource: &Value, scope: &Value) -> Seen {
    let dropped =
        ["droppedAttributesCount", "droppedEventsCount", "droppedLinksCount"].map(|field| number(span, field));
    json!({
        "traceId": id(span, "traceId"),
        "spanId": id(span, "spanId"),
        "parentSpanId": id(span, "parentSpanId"),
        "traceState": text(span, "traceState"),
        "flags": number(span, "flags"),
        "name": text(span, "name"),
        "kind": kind(&span["kind"]),
        "start": number(span, "startTimeUnixNano"),
        "end": number(span, "endTimeUnixNano"),
        "status": {"code": status_code(&span["status"]["code"]), "message": text(&span["status"], "message")},
        "attributes": attributes(span),
        "events": list(span, "events").iter().map(|event| json!({
            "name": text(event, "name"),
            "at": number(event, "timeUnixNano"),
            "attributes": attributes(event),
            "dropped": number(event, "droppedAttributesCount"),
        })).collect::<Vec<_>>(),
        "links": list(span, "links").iter().map(|link| json!({
            "traceId": id(link, "traceId"),
            "spanId": id(link, "spanId"),
            "traceState": text(link, "traceState"),
            "flags": number(link, "flags"),
            "attributes": attributes(link),
            "dropped": number(link, "droppedAttributesCount"),
        })).collect::<Vec<_>>(),
        "dropped": dropped,
        "resource": resource,
        "scope": scope,
    })
}

/// `resource_spans` becomes `resourceSpans`; keys of attributes are values here and stay as they are.
fn camel(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(camel).collect(),
        Value::Object(fields) => {
            let rename = |(name, value): (&String, &Value)| {
                let mut after_line = false;
                let mut letters = String::new();
                for letter in name.chars() {
                    match letter {
                        '_' => after_line = true,
                        _ if std::mem::take(&mut after_line) => letters.push(letter.to_ascii_uppercase()),
                        _ => letters.push(letter),
                    }
                }
                (letters, camel(value))
            };
            Value::Object(fields.iter().map(rename).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// A field that proto3 leaves out when it is empty.
fn text(value: &Value, field: &str) -> String {
    match &value[field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => panic!("{field} is no text: {other}"),
    }
}

fn number(value: &Value, field: &str) -> u64 {
    match &value[field] {
        Value::Null => 0,
        Value::String(digits) => digits.parse().unwrap(),
        number => number.as_u64().unwrap_or_else(|| panic!("{field} is no number: {number}")),
    }
}

/// Lower-case hexadecimal digits of a trace or span id; empty where there is none.
fn id(value: &Value, field: &str) -> String {
    let given = text(value, field);
    match given.len() {
        0 | 16 | 32 => given,
        _ => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(&given).unwrap();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        }
    }
}

fn kind(value: &Value) -> u64 {
    let names = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];
    named(value, "SPAN_KIND_", &names)
}

fn status_code(value: &Value) -> u64 {
    named(value, "STATUS_CODE_", &["UNSET", "OK", "ERROR"])
}

fn named(value: &Value, prefix: &str, names: &[&str]) -> u64 {
    match value {
        Value::Null => 0,
        Value::String(name) => {
            let name = name.strip_prefix(prefix).expect("the enum's prefix");
            names.iter().position(|known| *known == name).expect("a known name") as u64
        }
        number => number.as_u64().expect("a number"),
    }
}

/// Keys with typed values; a key that stands there twice is a failure.
fn attributes(holder: &Value) -> Value {
    let mut found = BTreeMap::new();
    for attribute in list(holder, "attributes") {
        let before = found.insert(text(attribute, "key"), any_value(&attribute["value"]));
        assert!(before.is_none(), "twice: {attribute}");
    }
    json!(found)
}

fn any_value(value: &Value) -> Value {
    let (kind, content) = value.as_object().and_then(|fields| fields.iter().next()).expect("a typed value");
    match kind.as_str() {
        "stringValue" => json!({"string": content}),
        "boolValue" => json!({"bool": content}),
        "doubleValue" => json!({"double": content}),
        "intValue" => json!({"int": content.as_str().map_or_else(|| content.as_i64(), |digits| digits.parse().ok())}),
        "arrayValue" => json!({"array": list(content, "values").iter().map(any_value).collect::<Vec<_>>()}),
        other => panic!("a value of a kind that is never sent: {other}"),
    }
}
