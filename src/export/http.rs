//! OTLP over HTTP, protobuf or JSON: `opentelemetry-otlp` writes the request, our client carries it and notes the answer.
//! The request gets our headers and no others, whatever the environment says; redirects are not followed.
//! Decided in `docs/adr/0015-export-transports.md`.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, PROXY_AUTHORIZATION, USER_AGENT};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    Compression as OtelCompression, Protocol as OtelProtocol, RetryPolicy, SpanExporter, WithExportConfig,
    WithHttpConfig,
};
use opentelemetry_sdk::trace::SpanExporter as _;

use super::classify::{self, Failure, Receiver};
use super::connect::{self, Connector, Wire};
use super::{Answer, BuildError, Code, Outcome, USER_AGENT as OUR_NAME, body, encode, failure, headers};
use crate::config::{Compression, Destination, Protocol, Route};
use crate::span::{Span, Value};

/// Most bytes of an answer that are read.
const LONGEST_BODY: usize = 64 * 1024;
const POOL_IDLE: Duration = Duration::from_secs(30);

/// One HTTP destination.
#[derive(Debug)]
pub(super) struct HttpTransport {
    wire: Arc<HttpWire>,
    protocol: Protocol,
    compression: Compression,
    receiver: Receiver,
}

/// What carries requests and notes answers.
struct HttpWire {
    client: Client<Connector, Full<Bytes>>,
    url: Uri,
    timeout: Duration,
    headers: HeaderMap,
    secrets: Vec<String>,
    compression: Compression,
}

impl std::fmt::Debug for HttpWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpWire").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// What came back.
enum Seen {
    Answered(Received),
    Failed(Failure, String),
}

/// An answer as read.
struct Received {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// Whether the connection broke before the body's end.
    broken: bool,
}

impl HttpTransport {
    pub(super) fn build(destination: &Destination) -> Result<Self, BuildError> {
        let (route, protocol, compression, receiver): (&Route, _, _, _) = match destination {
            Destination::FutureAgi { route, .. } => {
                (route, Protocol::HttpProtobuf, Compression::None, Receiver::FutureAgi)
            }
            Destination::Otlp { route, protocol, compression, .. } => (route, *protocol, *compression, Receiver::Otlp),
            other => return Err(BuildError::NoDestination(other.to_string())),
        };
        let url = route.url.parse().map_err(|_| BuildError::Setup("the endpoint is no URL".to_owned()))?;
        let mut headers = headers::of(destination)?;
        let mut secrets = headers::secrets(&headers);
        let (connector, proxy_authorization) = connect::connector(route, Wire::Http)?;
        if let Some(credentials) = proxy_authorization {
            let own = HeaderMap::from_iter([(PROXY_AUTHORIZATION, credentials.clone())]);
            secrets.extend(headers::secrets(&own));
            headers.insert(PROXY_AUTHORIZATION, credentials);
        }
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(OUR_NAME));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .build(connector);
        let wire = HttpWire { client, url, timeout: route.timeout, headers, secrets, compression };
        Ok(Self { wire: Arc::new(wire), protocol, compression, receiver })
    }

    pub(super) async fn export(&self, resource: &BTreeMap<String, Value>, spans: &[Span]) -> Answer {
        let tap = Tap { wire: Arc::clone(&self.wire), seen: Arc::default() };
        let seen = Arc::clone(&tap.seen);
        let mut exporter = match self.exporter(tap) {
            Ok(exporter) => exporter,
            Err(why) => return not_sent(&why),
        };
        exporter.set_resource(&encode::resource(resource));
        let scope = encode::scope();
        let batch = spans.iter().map(|span| encode::span_data(span, scope.clone())).collect();
        let result = exporter.export(batch).await;
        let seen = seen.lock().ok().and_then(|mut seen| seen.take());
        match (seen, result) {
            (Some(seen), _) => self.judge(seen),
            (None, Err(error)) => not_sent(&error.to_string()),
            (None, Ok(())) => not_sent("no request was made"),
        }
    }

    /// An `opentelemetry-otlp` exporter for one request: it is cheap to make, and so each request has a tap of its own.
    fn exporter(&self, tap: Tap) -> Result<SpanExporter, String> {
        let protocol = match self.protocol {
            Protocol::HttpJson => OtelProtocol::HttpJson,
            Protocol::HttpProtobuf | Protocol::Grpc => OtelProtocol::HttpBinary,
        };
        let builder = SpanExporter::builder()
            .with_http()
            .with_http_client(tap)
            .with_retry_policy(RetryPolicy::disabled())
            .with_endpoint(self.wire.url.to_string())
            .with_protocol(protocol)
            .with_timeout(self.wire.timeout);
        let builder = match self.compression {
            Compression::Gzip => builder.with_compression(OtelCompression::Gzip),
            Compression::None => builder,
        };
        builder.build().map_err(|error| error.to_string())
    }

    pub(super) async fn probe(&self) -> Answer {
        let (content_type, body) = match self.protocol {
            Protocol::HttpJson => ("application/json", Bytes::from_static(b"{}")),
            Protocol::HttpProtobuf | Protocol::Grpc => ("application/x-protobuf", Bytes::new()),
        };
        self.judge(self.wire.send(HeaderValue::from_static(content_type), None, body).await)
    }

    fn judge(&self, seen: Seen) -> Answer {
        let secrets = &self.wire.secrets;
        let received = match seen {
            Seen::Failed(failure, words) => {
                return classify::answer(classify::failure(failure), None, headers::cleaned(&words, secrets));
            }
            Seen::Answered(received) => received,
        };
        let code = Some(Code::Http(received.status.as_u16()));
        let content_type = received.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !received.status.is_success() {
            let after = headers::retry_after(&received.headers, SystemTime::now());
            let meaning = classify::http(received.status.as_u16(), after, self.receiver);
            let words = if received.status.is_redirection() {
                location(&received.headers)
            } else {
                body::words(content_type, &received.body)
            };
            return classify::answer(meaning, code, headers::cleaned(&words, secrets));
        }
        if received.broken {
            return classify::answer(classify::failure(Failure::Connection), code, None);
        }
        match body::success(content_type, &received.body) {
            None => {
                let words = body::words(content_type, &received.body);
                classify::answer(classify::not_otlp(), code, headers::cleaned(&words, secrets))
            }
            Some(partial) if partial.is_nothing() => classify::answer((Outcome::Delivered, "delivered"), code, None),
            Some(partial) => {
                let message = headers::cleaned(&partial.message, secrets);
                let words = message.clone().unwrap_or_default();
                let outcome = Outcome::Partial { rejected: partial.rejected, message: words };
                classify::answer((outcome, "partial_success"), code, message)
            }
        }
    }
}

/// Nothing was sent because the spans could not be written, which bisecting narrows down.
fn not_sent(why: &str) -> Answer {
    classify::answer((Outcome::Refused, "not_encodable"), None, headers::cleaned(why, &[]))
}

/// Where a redirect points to, without a query.
fn location(headers: &HeaderMap) -> String {
    let target = headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    format!("redirected to {}", super::endpoint::without_query(target))
}

impl HttpWire {
    /// Sends one request within the time limit, with our headers only.
    async fn send(&self, content_type: HeaderValue, encoding: Option<HeaderValue>, body: Bytes) -> Seen {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        if let Some(encoding) = encoding {
            request.headers_mut().insert(CONTENT_ENCODING, encoding);
        }
        match tokio::time::timeout(self.timeout, self.exchange(request)).await {
            Ok(seen) => seen,
            Err(_) => Seen::Failed(Failure::Timeout, format!("no answer within {} s", self.timeout.as_secs_f64())),
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Seen {
        let response = match self.client.request(request).await {
            Ok(response) => response,
            Err(error) => {
                let (failure, words) = failure::of(&error);
                return Seen::Failed(failure, words);
            }
        };
        let (parts, mut incoming) = response.into_parts();
        let mut body = BytesMut::new();
        let mut broken = false;
        while body.len() < LONGEST_BODY {
            match incoming.frame().await {
                None => break,
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        body.extend_from_slice(data.get(..LONGEST_BODY - body.len()).unwrap_or(data));
                    }
                }
                Some(Err(_)) => {
                    broken = true;
                    break;
                }
            }
        }
        Seen::Answered(Received { status: parts.status, headers: parts.headers, body: body.freeze(), broken })
    }
}

/// The client that `opentelemetry-otlp` gets: takes type and body of its request, and notes what came back.
#[derive(Debug)]
struct Tap {
    wire: Arc<HttpWire>,
    seen: Arc<Mutex<Option<Seen>>>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seen")
    }
}

#[async_trait]
impl HttpClient for Tap {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let content_type = request.headers_mut().remove(CONTENT_TYPE).ok_or("the request has no content type")?;
        let mut encoding = request.headers_mut().remove(CONTENT_ENCODING);
        let mut bytes = request.into_body();
        if encoding.is_some() && self.wire.compression == Compression::None {
            // An ambient OTEL_EXPORTER_OTLP_COMPRESSION made the crate compress; Future AGI could not unpack that.
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(bytes.as_ref()).read_to_end(&mut plain)?;
            bytes = plain.into();
            encoding = None;
        }
        let seen = self.wire.send(content_type, encoding, bytes).await;
        let response = match &seen {
            Seen::Answered(received) => {
                let mut response = Response::new(received.body.clone());
                *response.status_mut() = received.status;
                Ok(response)
            }
            Seen::Failed(_, words) => Err(words.clone().into()),
        };
        if let Ok(mut slot) = self.seen.lock() {
            *slot = Some(seen);
        }
        response
    }
}
