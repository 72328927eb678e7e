//! What a scripted receiver answers, and how: whole, late, never, broken, or byte by byte.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message;

/// What to answer, and how.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) delay: Duration,
    pub(super) manner: Manner,
    pub(super) grpc: Option<(i32, String, Option<Duration>)>,
    pub(super) partial: Option<(i64, String)>,
}

/// How an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// At once and whole.
    Whole,
    /// Never.
    Hang,
    /// The connection closes before the answer.
    Reset,
    /// The connection closes in the middle of the body.
    ResetInBody,
    /// The body comes byte by byte, with this pause.
    Drip(Duration),
}

impl Reply {
    /// An HTTP status, with an empty body.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            delay: Duration::ZERO,
            manner: Manner::Whole,
            grpc: None,
            partial: None,
        }
    }

    /// Success, as OTLP wants it.
    pub(crate) fn ok() -> Self {
        Self::status(200).header("content-type", "application/x-protobuf")
    }

    /// Success but for some spans.
    pub(crate) fn partial(rejected: i64, message: &str) -> Self {
        let partial = ExportTracePartialSuccess { rejected_spans: rejected, error_message: message.to_owned() };
        let mut reply = Self::ok().body(ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec());
        reply.partial = Some((rejected, message.to_owned()));
        reply
    }

    /// A gRPC status.
    pub(crate) fn grpc(code: i32, message: &str) -> Self {
        Self { grpc: Some((code, message.to_owned(), None)), ..Self::status(200) }
    }

    /// Adds RetryInfo to a gRPC status.
    pub(crate) fn retry_info(mut self, delay: Duration) -> Self {
        self.grpc = self.grpc.map(|(code, message, _)| (code, message, Some(delay)));
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Waits before answering.
    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sends the answer in another manner.
    pub(crate) fn manner(mut self, manner: Manner) -> Self {
        self.manner = manner;
        self
    }
}

pub(super) type Step = std::io::Result<Frame<Bytes>>;

/// A body in steps, with a pause before each.
pub(super) struct Steps {
    left: VecDeque<Step>,
    pause: Duration,
    sleep: std::pin::Pin<Box<tokio::time::Sleep>>,
}

impl Steps {
    pub(super) fn new(steps: Vec<Step>, pause: Duration) -> Self {
        Self { left: steps.into(), pause, sleep: Box::pin(tokio::time::sleep(pause)) }
    }
}

impl futures_core::Stream for Steps {
    type Item = Step;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<Step>> {
        std::task::ready!(self.sleep.as_mut().poll(cx));
        self.sleep = Box::pin(tokio::time::sleep(self.pause));
        std::task::Poll::Ready(self.left.pop_front())
    }
}
