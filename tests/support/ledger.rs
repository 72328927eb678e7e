//! What was played against what arrived: tool spans by conversation and step, each exactly once by its id.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::receiver::{Received, Receiver};
use super::sandbox::Sandbox;

/// The payload of a PostToolUse whose tool's name tells conversation and step.
pub(crate) fn post(conversation: &str, step: u64) -> String {
    format!(
        r#"{{"conversationId":"{conversation}","stepIdx":{step},"toolCall":{{"name":"{}"}},"error":""}}"#,
        tool(conversation, step)
    )
}

/// The name of that tool, and so of its span.
pub(crate) fn tool(conversation: &str, step: u64) -> String {
    format!("tool_{conversation}_{step}")
}

/// The tool spans among these, by name, with every id that each came under.
pub(crate) fn tools(spans: &[Span]) -> BTreeMap<String, BTreeSet<Vec<u8>>> {
    let mut found: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.name.starts_with("tool_")) {
        found.entry(span.name.clone()).or_default().insert([&span.trace_id[..], &span.span_id].concat());
    }
    found
}

/// Panics unless exactly these tools were accepted, none under two ids.
#[track_caller]
pub(crate) fn assert_tools(receiver: &Receiver, expected: &BTreeSet<String>) {
    let arrived = tools(&receiver.accepted_spans());
    let names: BTreeSet<String> = arrived.keys().cloned().collect();
    let lost: Vec<_> = expected.difference(&names).collect();
    let invented: Vec<_> = names.difference(expected).collect();
    assert!(lost.is_empty() && invented.is_empty(), "lost {lost:?}, invented {invented:?}");
    let doubled: Vec<_> = arrived.iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(doubled.is_empty(), "under two ids: {doubled:?}");
}

/// A request with its resource attributes in order: the SDK keeps them in a hash map.
pub(crate) fn ordered(request: &Received) -> ExportTraceServiceRequest {
    let mut request = request.request.clone().unwrap();
    for resource in request.resource_spans.iter_mut().filter_map(|spans| spans.resource.as_mut()) {
        resource.attributes.sort_by(|a, b| a.key.cmp(&b.key));
    }
    request
}

/// Delivers what is there; panics with its words if anything is left.
#[track_caller]
pub(crate) fn flush(sandbox: &Sandbox) {
    let output = sandbox.command(&["flush", "--timeout", "120"]).output().unwrap();
    let log = std::fs::read_to_string(sandbox.profile().join("sender.log")).unwrap_or_default();
    let tail: Vec<_> = log.lines().rev().take(20).collect();
    assert!(output.status.success(), "{}\n{tail:#?}", String::from_utf8_lossy(&output.stderr));
}
