//! A stand-in for Future AGI's collector, which needs Postgres and ClickHouse and so cannot run in a test. It keeps the
//! collector's contract to the letter, as read in its source (fi-collector, August 2026):
//!
//! credentials first, on any path; then path, method, size, content type and body, quota, `project_name`; errors as
//! plain text, success as an empty answer in the request's encoding. Rows are kept as ClickHouse's ReplacingMergeTree
//! keeps them after its merges: one for each key, the one that arrived last.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use base64::Engine;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use super::receiver::Server;

/// The keys it knows.
pub(crate) const API_KEY: &str = "api-key-of-the-test";
pub(crate) const SECRET_KEY: &str = "secret-key-of-the-test";
/// Largest body it reads.
pub(crate) const LARGEST: usize = 16 << 20;
const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";
const PATHS: [&str; 2] = ["/v1/traces", "/tracer/v1/traces"];
const NANOSECONDS_OF_AN_HOUR: u64 = 3600 * 1_000_000_000;

/// Rows of one key replace each other; rows of two keys stay for ever, whatever their span id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) project: String,
    pub(crate) observation_type: String,
    pub(crate) service_name: String,
    pub(crate) start_hour: u64,
    /// A dashed UUID in lower case.
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
}

/// One span as stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: Key,
    /// Empty for a root.
    pub(crate) parent_span_id: String,
    /// From `session.id` only.
    pub(crate) session: Option<String>,
    /// From `user.id`, and only in a project of type `observe`.
    pub(crate) end_user: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) span: Span,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<Key, Row>,
    arrivals: Vec<Row>,
    answers: Vec<u16>,
    /// Whether Postgres, which knows the keys, is out.
    database_down: bool,
    quota_used_up: bool,
    /// Answers after which a trace had spans but no root, so that no list showed it.
    unlisted: usize,
}

/// The stand-in; it stops when it is dropped.
pub(crate) struct FutureAgi {
    state: Arc<Mutex<State>>,
    server: Server,
}

impl FutureAgi {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let server = Server::start(0, move |stream| {
            let shared = Arc::clone(&shared);
            async move {
                let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            }
        });
        Self { state, server }
    }

    /// What FI_BASE_URL is to be.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }

    pub(crate) const fn port(&self) -> u16 {
        self.server.port
    }

    /// Postgres is out, or back.
    pub(crate) fn set_database_down(&self, down: bool) {
        self.state.lock().unwrap().database_down = down;
    }

    /// The month's events are used up, or not.
    pub(crate) fn set_quota_used_up(&self, used_up: bool) {
        self.state.lock().unwrap().quota_used_up = used_up;
    }

    /// The rows that are left after every merge.
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.state.lock().unwrap().rows.values().cloned().collect()
    }

    /// Every row that ever arrived, in order.
    pub(crate) fn arrivals(&self) -> Vec<Row> {
        self.state.lock().unwrap().arrivals.clone()
    }

    /// The status of every answer, in order.
    pub(crate) fn answers(&self) -> Vec<u16> {
        self.state.lock().unwrap().answers.clone()
    }

    /// The traces of a project's list: roots only, by trace id and name.
    pub(crate) fn listed(&self, project: &str) -> Vec<(String, String)> {
        let roots = self.rows().into_iter().filter(|row| row.key.project == project && row.parent_span_id.is_empty());
        roots.map(|row| (row.key.trace_id, row.span.name)).collect()
    }

    /// How many answers left a trace with spans but without a root.
    pub(crate) fn unlisted(&self) -> usize {
        self.state.lock().unwrap().unlisted
    }
}

type Answered = Result<(String, Vec<u8>), (u16, String)>;

async fn answer(request: Request<Incoming>, state: Arc<Mutex<State>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    // The bytes are read whatever the answer is: a connection that is closed too early would show something else.
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let mut state = state.lock().unwrap();
    let answered = authorize(&parts.headers, &state).and_then(|()| {
        if !PATHS.contains(&parts.uri.path()) {
            return Err((404, "404 page not found".to_owned()));
        }
        if parts.method != http::Method::POST {
            return Err((405, "method not allowed".to_owned()));
        }
        take(&parts.headers, &body, &mut state)
    });
    let (status, content_type, body) = match answered {
        Ok((content_type, body)) => (200, content_type, body),
        Err((status, text)) => (status, "text/plain; charset=utf-8".to_owned(), (text + "\n").into_bytes()),
    };
    state.answers.push(status);
    let mut response = Response::builder().status(status).header("content-type", content_type);
    if status == 405 {
        response = response.header("allow", "POST");
    }
    Ok(response.body(Full::new(Bytes::from(body))).unwrap())
}

fn authorize(headers: &HeaderMap, state: &State) -> Result<(), (u16, String)> {
    let Some((api, secret)) = credentials(headers) else {
        let text = r#"{"error":"missing credentials: provide X-Api-Key/X-Secret-Key or Authorization: Basic"}"#;
        return Err((401, text.to_owned()));
    };
    if state.database_down {
        return Err((503, r#"{"error":"service temporarily unavailable"}"#.to_owned()));
    }
    if (api.as_str(), secret.as_str()) != (API_KEY, SECRET_KEY) {
        return Err((401, r#"{"error":"authentication failed"}"#.to_owned()));
    }
    Ok(())
}

fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (api, secret) = (header("x-api-key"), header("x-secret-key"));
    if !api.is_empty() && !secret.is_empty() {
        return Some((api.to_owned(), secret.to_owned()));
    }
    let (scheme, encoded) = header("authorization").split_once(' ')?;
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    let decoded = String::from_utf8(decoded).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (api, secret) = decoded.split_once(':')?;
    (!api.is_empty() && !secret.is_empty()).then(|| (api.to_owned(), secret.to_owned()))
}

fn take(headers: &HeaderMap, body: &[u8], state: &mut State) -> Answered {
    if body.len() > LARGEST {
        return Err((413, "payload too large".to_owned()));
    }
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    // Content-Encoding is never looked at, so a gzip body is bytes that are no message.
    let request = match content_type {
        PROTOBUF => {
            ExportTraceServiceRequest::decode(body).map_err(|error| (400, format!("decode protobuf: {error}")))?
        }
        JSON => serde_json::from_slice(body).map_err(|error| (400, format!("decode json: {error}")))?,
        other => return Err((415, format!("unsupported content type: {other}"))),
    };
    if state.quota_used_up {
        return Err((429, "free tier limit of 50000 tracing events reached".to_owned()));
    }
    let rows = rows(&request)?;
    store(rows, state);
    let empty = ExportTraceServiceResponse::default();
    let body = if content_type == JSON { b"{}".to_vec() } else { empty.encode_to_vec() };
    Ok((content_type.to_owned(), body))
}

/// All rows of a request, or none: one resource without a project refuses the whole request.
fn rows(request: &ExportTraceServiceRequest) -> Result<Vec<Row>, (u16, String)> {
    let mut found = Vec::new();
    for group in &request.resource_spans {
        let resource = group.resource.clone().unwrap_or_default();
        let Some(project) = text(&resource.attributes, "project_name").filter(|project| !project.is_empty()) else {
            return Err((400, "auth stamp: missing required resource attribute project_name".to_owned()));
        };
        for span in group.scope_spans.iter().flat_map(|scope| &scope.spans) {
            found.push(row(span, &resource, &project));
        }
    }
    Ok(found)
}

fn row(span: &Span, resource: &Resource, project: &str) -> Row {
    let of = |name: &str| text(&span.attributes, name);
    let first = |names: &[&str]| names.iter().find_map(|name| of(name).filter(|value| !value.is_empty()));
    let observed = text(&resource.attributes, "project_type").as_deref() == Some("observe");
    Row {
        key: Key {
            project: project.to_owned(),
            observation_type: observation_type(first),
            service_name: text(&resource.attributes, "service.name").unwrap_or_default(),
            start_hour: span.start_time_unix_nano / NANOSECONDS_OF_AN_HOUR,
            trace_id: dashed(&span.trace_id),
            span_id: hex(&span.span_id),
        },
        parent_span_id: hex(&span.parent_span_id),
        session: of("session.id"),
        end_user: of("user.id").filter(|_| observed),
        model: first(&["llm.model_name", "gen_ai.request.model", "gen_ai.response.model", "llm.request.model"]),
        span: span.clone(),
    }
}

fn observation_type(first: impl Fn(&[&str]) -> Option<String>) -> String {
    let kind = first(&["fi.span.kind", "gen_ai.span.kind", "llm.request.type", "openinference.span.kind"])
        .or_else(|| first(&["gen_ai.operation.name"]))
        .unwrap_or_default()
        .trim()
        .to_lowercase();
    let kind = match kind.as_str() {
        "chat" | "generate_content" | "text_completion" => "llm",
        "embeddings" => "embedding",
        "execute_tool" => "tool",
        "invoke" => "chain",
        other => other,
    };
    let known = [
        "tool",
        "chain",
        "llm",
        "retriever",
        "embedding",
        "agent",
        "reranker",
        "guardrail",
        "evaluator",
        "conversation",
    ];
    if known.contains(&kind) { kind.to_owned() } else { "unknown".to_owned() }
}

fn store(rows: Vec<Row>, state: &mut State) {
    let traces: Vec<_> = rows.iter().map(|row| row.key.trace_id.clone()).collect();
    for row in rows {
        state.arrivals.push(row.clone());
        state.rows.insert(row.key.clone(), row);
    }
    let is_root = |row: &&Row| row.parent_span_id.is_empty();
    let has_root = |trace: &String| state.rows.values().filter(is_root).any(|row| row.key.trace_id == *trace);
    if !traces.iter().all(has_root) {
        state.unlisted += 1;
    }
}

fn text(attributes: &[KeyValue], name: &str) -> Option<String> {
    let value = attributes.iter().find(|attribute| attribute.key == name)?.value.clone()?.value?;
    match value {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn dashed(bytes: &[u8]) -> String {
    assert_eq!(bytes.len(), 16, "a trace id has 16 bytes");
    [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-")
}
