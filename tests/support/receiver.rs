//! A scripted OTLP receiver on a real socket of 127.0.0.1: HTTP (protobuf, JSON) or gRPC, with or without TLS.
//! It runs in a thread of its own, so tests use it without a runtime: script replies, look at what came.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tonic_types::StatusExt;

use super::reply::Steps;
pub(crate) use super::reply::{Manner, Reply};
pub(crate) use super::server::Server;
use super::server::reserve;

/// How long a wait for a request may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// POST, or whatever was sent.
    pub(crate) method: String,
    /// Path and query; for gRPC the call.
    pub(crate) path: String,
    /// Headers or metadata.
    pub(crate) headers: HeaderMap,
    /// The body, still compressed; empty for gRPC.
    pub(crate) raw: Vec<u8>,
    /// The body, if it could be decoded.
    pub(crate) request: Option<ExportTraceServiceRequest>,
    /// What it was answered: HTTP status or gRPC code.
    pub(crate) answered: i32,
    /// Whether the answer was a success that was sent whole.
    pub(crate) accepted: bool,
    /// When it came.
    pub(crate) at: Instant,
}

impl Received {
    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The spans in it.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.request.iter().flat_map(spans_of).collect()
    }
}

fn spans_of(request: &ExportTraceServiceRequest) -> Vec<Span> {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

/// What a receiver speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// HTTP/1.1.
    Http,
    /// gRPC over HTTP/2.
    Grpc,
}

#[derive(Default)]
struct Shared {
    script: Mutex<VecDeque<Reply>>,
    otherwise: Mutex<Option<Reply>>,
    judge: Mutex<Option<Judge>>,
    received: Mutex<Vec<Received>>,
    arrived: Condvar,
}

/// Decides by the spans of a request; None leaves it to the script.
type Judge = Box<dyn FnMut(&[Span]) -> Option<Reply> + Send>;

impl Shared {
    fn next_reply(&self, request: Option<&ExportTraceServiceRequest>) -> Reply {
        if let (Some(judge), Some(request)) = (self.judge.lock().unwrap().as_mut(), request)
            && let Some(verdict) = judge(&spans_of(request))
        {
            return verdict;
        }
        let next = self.script.lock().unwrap().pop_front();
        next.or_else(|| self.otherwise.lock().unwrap().clone()).unwrap_or_else(Reply::ok)
    }

    fn note(&self, received: Received) {
        self.received.lock().unwrap().push(received);
        self.arrived.notify_all();
    }
}

/// The receiver; it stops when it is dropped.
pub(crate) struct Receiver {
    port: u16,
    speaks: Speaks,
    tls: Option<Arc<rustls::ServerConfig>>,
    shared: Arc<Shared>,
    running: Option<Server>,
    /// Keeps the port while nobody listens there.
    _reserved: tokio::net::TcpSocket,
}

impl Receiver {
    /// Starts an HTTP receiver that answers everything with success until a script says otherwise.
    pub(crate) fn start() -> Self {
        Self::start_with(Speaks::Http, None)
    }

    /// Starts a gRPC receiver.
    pub(crate) fn start_grpc() -> Self {
        Self::start_with(Speaks::Grpc, None)
    }

    /// Starts a receiver, over TLS if a certificate is given.
    pub(crate) fn start_with(speaks: Speaks, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let reserved = reserve();
        let port = reserved.local_addr().unwrap().port();
        let mut receiver = Self { port, speaks, tls, shared: Arc::default(), running: None, _reserved: reserved };
        receiver.restart();
        receiver
    }

    /// Scheme, host and port.
    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", if self.tls.is_some() { "https" } else { "http" }, self.port)
    }

    /// What it speaks.
    pub(crate) fn speaks(&self) -> Speaks {
        self.speaks
    }

    /// The port, which a restart keeps.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The next replies, in order.
    pub(crate) fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.script.lock().unwrap().extend(replies);
    }

    /// The reply when the script has ended.
    pub(crate) fn otherwise(&self, reply: Reply) {
        *self.shared.otherwise.lock().unwrap() = Some(reply);
    }

    /// Lets the spans of a request decide on the reply, before any script.
    pub(crate) fn judge(&self, judge: impl FnMut(&[Span]) -> Option<Reply> + Send + 'static) {
        *self.shared.judge.lock().unwrap() = Some(Box::new(judge));
    }

    /// Everything that came, the oldest first.
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    /// The only request that came.
    pub(crate) fn only_request(&self) -> Received {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:#?}");
        requests[0].clone()
    }

    /// Waits until so many requests have come.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Received> {
        let received = self.shared.received.lock().unwrap();
        let wait = self.shared.arrived.wait_timeout_while(received, PATIENCE, |received| received.len() < count);
        let (received, waited) = wait.unwrap();
        assert!(!waited.timed_out(), "waited for {count} requests, {} came", received.len());
        received.clone()
    }

    /// The spans of all requests that were answered with success.
    pub(crate) fn accepted_spans(&self) -> Vec<Span> {
        self.requests().iter().filter(|received| received.accepted).flat_map(Received::spans).collect()
    }

    /// Waits until so many spans were accepted; a span that came twice counts twice.
    pub(crate) fn wait_for_spans(&self, count: usize) -> Vec<Span> {
        let end = Instant::now() + PATIENCE;
        loop {
            let spans = self.accepted_spans();
            if spans.len() >= count {
                return spans;
            }
            assert!(Instant::now() < end, "waited for {count} spans, {} came", spans.len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Forgets what came.
    pub(crate) fn clear(&self) {
        self.shared.received.lock().unwrap().clear();
    }

    /// Closes the port and every connection.
    pub(crate) fn stop(&mut self) {
        self.running = None;
    }

    /// Opens the port again, the same one if it had one.
    pub(crate) fn restart(&mut self) {
        self.running = None;
        let (speaks, shared) = (self.speaks, Arc::clone(&self.shared));
        let tls = self.tls.clone().map(TlsAcceptor::from);
        let server = Server::start(self.port, move |stream| serve(stream, speaks, tls.clone(), Arc::clone(&shared)));
        self.running = Some(server);
    }
}

async fn serve(stream: TcpStream, speaks: Speaks, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    match tls {
        None => serve_stream(TokioIo::new(stream), speaks, shared).await,
        Some(tls) => {
            match tls.accept(stream).into_fallible().await {
                Ok(stream) => serve_stream(TokioIo::new(stream), speaks, shared).await,
                // Read on, else the system answers what is still coming with a reset, which overtakes the alert.
                Err((_, mut stream)) => {
                    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                }
            }
        }
    }
}

async fn serve_stream<S>(stream: S, speaks: Speaks, shared: Arc<Shared>)
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    match speaks {
        Speaks::Http => {
            let service = service_fn(move |request| answer_http(request, Arc::clone(&shared)));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await;
        }
        Speaks::Grpc => {
            let gzip = tonic::codec::CompressionEncoding::Gzip;
            let service = TraceServiceServer::new(Grpc { shared }).accept_compressed(gzip).send_compressed(gzip);
            let service = TowerToHyperService::new(service);
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection(stream, service).await;
        }
    }
}

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

async fn answer_http(request: Request<Incoming>, shared: Arc<Shared>) -> std::io::Result<Response<Body>> {
    let at = Instant::now();
    let (parts, body) = request.into_parts();
    let raw = body.collect().await.map_err(std::io::Error::other)?.to_bytes().to_vec();
    let request = decode(&parts.headers, &raw);
    let reply = shared.next_reply(request.as_ref());
    shared.note(Received {
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        request,
        headers: parts.headers,
        raw,
        answered: i32::from(reply.status),
        accepted: (200..300).contains(&reply.status) && reply.manner == Manner::Whole,
        at,
    });
    tokio::time::sleep(reply.delay).await;
    let closed = || std::io::Error::other("closed by the script");
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    let bytes = Bytes::from(reply.body);
    let length = bytes.len().max(16);
    let body = match reply.manner {
        Manner::Whole => Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync(),
        Manner::Hang => std::future::pending().await,
        Manner::Reset => return Err(closed()),
        Manner::ResetInBody => {
            response = response.header("content-length", length);
            let half = Ok(Frame::data(bytes.slice(..bytes.len() / 2)));
            StreamBody::new(Steps::new(vec![half, Err(closed())], Duration::from_millis(20))).boxed_unsync()
        }
        Manner::Drip(pause) => {
            response = response.header("content-length", length);
            let each = (0..length).map(|at| Ok(Frame::data(Bytes::from(vec![*bytes.get(at).unwrap_or(&b' ')]))));
            StreamBody::new(Steps::new(each.collect(), pause)).boxed_unsync()
        }
    };
    response.body(body).map_err(std::io::Error::other)
}

fn decode(headers: &HeaderMap, raw: &[u8]) -> Option<ExportTraceServiceRequest> {
    let mut plain = Vec::new();
    match headers.get("content-encoding") {
        None => plain.extend_from_slice(raw),
        Some(_) => {
            flate2::read::GzDecoder::new(raw).read_to_end(&mut plain).ok()?;
        }
    }
    match headers.get("content-type")?.to_str().ok()? {
        "application/json" => serde_json::from_slice(&plain).ok(),
        "application/x-protobuf" => ExportTraceServiceRequest::decode(plain.as_slice()).ok(),
        _ => None,
    }
}

struct Grpc {
    shared: Arc<Shared>,
}

#[async_trait::async_trait]
impl TraceService for Grpc {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        let at = Instant::now();
        let (metadata, _, request) = request.into_parts();
        let reply = self.shared.next_reply(Some(&request));
        let code = reply.grpc.as_ref().map_or(0, |(code, ..)| *code);
        self.shared.note(Received {
            method: "POST".to_owned(),
            path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export".to_owned(),
            headers: metadata.into_headers(),
            raw: Vec::new(),
            request: Some(request),
            answered: code,
            accepted: code == 0 && reply.manner == Manner::Whole,
            at,
        });
        tokio::time::sleep(reply.delay).await;
        if reply.manner == Manner::Hang {
            std::future::pending::<()>().await;
        }
        if let Some((code, message, delay)) = reply.grpc.filter(|_| code != 0) {
            let mut details = tonic_types::ErrorDetails::new();
            if delay.is_some() {
                details.set_retry_info(delay);
            }
            return Err(tonic::Status::with_error_details(code.into(), message, details));
        }
        let partial_success = reply
            .partial
            .map(|(rejected_spans, error_message)| ExportTracePartialSuccess { rejected_spans, error_message });
        Ok(tonic::Response::new(ExportTraceServiceResponse { partial_success }))
    }
}
