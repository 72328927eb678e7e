//! Our span as OpenTelemetry's `SpanData`, and its size on the wire. Pure; the only file that knows both models.
//! Decided in `docs/adr/0003-own-span-model.md` and `docs/adr/0015-export-transports.md`.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId as OtelSpanId, SpanKind, Status as OtelStatus, TraceFlags, TraceId as OtelTraceId,
    TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value as OtelValue};
use opentelemetry_proto::tonic::trace::v1::Span as ProtoSpan;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use prost::Message;

use crate::span::{Role, Span, SpanEvent, SpanId, SpanLink, Status, TraceId, Value};

/// Bytes that a request needs beside its spans and resource: scope, and the frames around them.
pub const REQUEST_OVERHEAD: usize = 128;

/// The scope of every span.
#[must_use]
pub fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("fi-hook-to-otlp").with_version(env!("CARGO_PKG_VERSION")).build()
}

/// One span in OpenTelemetry's model.
#[must_use]
pub fn span_data(span: &Span, scope: InstrumentationScope) -> SpanData {
    let mut events = SpanEvents::default();
    events.events.extend(span.events.iter().map(event));
    let mut links = SpanLinks::default();
    links.links.extend(span.links.iter().map(link));
    SpanData {
        span_context: context(span.trace_id, span.span_id),
        parent_span_id: span.parent.map_or(OtelSpanId::INVALID, |parent| OtelSpanId::from_bytes(parent.0)),
        parent_span_is_remote: false,
        span_kind: match span.role {
            Role::ModelCall => SpanKind::Client,
            Role::Session | Role::Turn | Role::Tool => SpanKind::Internal,
        },
        name: span.name.clone().into(),
        start_time: time(span.start_ns),
        end_time: time(span.end_ns),
        attributes: attributes(&span.attributes),
        dropped_attributes_count: 0,
        events,
        links,
        status: match &span.status {
            Status::Unset => OtelStatus::Unset,
            Status::Ok => OtelStatus::Ok,
            Status::Error(text) => {
                OtelStatus::error(text.as_ref().map(|text| text.as_str().to_owned()).unwrap_or_default())
            }
        },
        instrumentation_scope: scope,
    }
}

/// The resource of a request, with nothing but what is given: no detector runs.
#[must_use]
pub fn resource(attributes_given: &BTreeMap<String, Value>) -> Resource {
    Resource::builder_empty().with_attributes(attributes(attributes_given)).build()
}

/// Bytes that a span takes in a protobuf request, its frame included.
#[must_use]
pub fn encoded_len(span: &Span) -> usize {
    let length = ProtoSpan::from(span_data(span, scope())).encoded_len();
    // A field's tag takes one byte.
    1 + prost::length_delimiter_len(length) + length
}

fn context(trace: TraceId, span: SpanId) -> SpanContext {
    let (trace, span) = (OtelTraceId::from_bytes(trace.0), OtelSpanId::from_bytes(span.0));
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::default())
}

fn event(event: &SpanEvent) -> Event {
    Event::new(event.name.clone(), time(event.at_ns), attributes(&event.attributes), 0)
}

fn link(link: &SpanLink) -> Link {
    Link::new(context(link.trace_id, link.span_id), attributes(&link.attributes), 0)
}

fn time(nanoseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds)
}

fn attributes(given: &BTreeMap<String, Value>) -> Vec<KeyValue> {
    given.iter().map(|(key, value)| KeyValue::new(key.clone(), otel_value(value))).collect()
}

fn otel_value(value: &Value) -> OtelValue {
    match value {
        Value::Bool(flag) => OtelValue::Bool(*flag),
        Value::Int(number) => OtelValue::I64(*number),
        Value::Double(number) => OtelValue::F64(*number),
        Value::Text(text) => OtelValue::String(StringValue::from(text.clone())),
        Value::Content(text) => OtelValue::String(StringValue::from(text.as_str().to_owned())),
        Value::Texts(texts) => {
            OtelValue::Array(Array::String(texts.iter().map(|text| StringValue::from(text.clone())).collect()))
        }
    }
}
