//! Sends spans to the one destination and says what became of them: a request in, an [`Answer`] out.
//! Knows no events and no queue; it never retries and never follows a redirect, since what happens next is the sender's
//! to decide. Decided in `docs/adr/0015-export-transports.md`.

mod body;
pub mod classify;
mod connect;
pub mod encode;
pub mod endpoint;
mod failure;
mod grpc;
mod headers;
mod http;
mod sniff;
mod tls;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::config::{Destination, Protocol};
use crate::span::{Span, Value};

/// Most characters of a receiver's words that are kept.
pub const MESSAGE_CHARS: usize = 500;

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What the sender has to do.
    pub outcome: Outcome,
    /// The code that was answered; None if there was no answer.
    pub code: Option<Code>,
    /// The receiver's or the network's own words: at most [`MESSAGE_CHARS`], without header values.
    pub message: Option<String>,
    /// One word for machines, such as `unauthorized`.
    pub reason: &'static str,
}

impl Answer {
    /// Without words that may be the receiver's, which can hold what it was sent. What stays was said before anything was
    /// sent, or by us.
    #[must_use]
    pub fn without_quotes(mut self) -> Self {
        if let Outcome::Partial { message, .. } = &mut self.outcome {
            message.clear();
        }
        let ours = self.code.is_none() && matches!(self.reason, "timeout" | "connection_refused" | "dns" | "tls");
        self.message = self.message.filter(|_| ours);
        self
    }
}

/// What the sender has to do with the spans of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Forget them.
    Delivered,
    /// Forget them, and count those that were rejected.
    Partial {
        /// How many; 0 is a warning.
        rejected: u64,
        /// Why, in the receiver's words.
        message: String,
    },
    /// Send the same again later, not before `after` if that is known.
    Retry {
        /// Retry-After or RetryInfo.
        after: Option<Duration>,
    },
    /// The receiver does not take these spans: bisect.
    Refused,
    /// Nothing will get through until somebody changes something: what, in plain words.
    Configuration(String),
}

/// The code of an answer, by protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// An HTTP status.
    Http(u16),
    /// A gRPC status.
    Grpc(i32),
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(status) => write!(f, "http={status}"),
            Self::Grpc(code) => write!(f, "grpc={code}"),
        }
    }
}

/// Why no exporter can be made; the words say what to change.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no destination, or it is not usable.
    #[error("there is nowhere to send spans to: {0}")]
    NoDestination(String),
    /// A file for TLS cannot be read.
    #[error("cannot read {setting} {path}: {why}")]
    File {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The proxy's URL cannot be used.
    #[error("{0} is no proxy URL: expected http://host:port")]
    Proxy(&'static str),
    /// A key or header value that no request can carry.
    #[error("the value of header {0} has characters that no header may have")]
    Header(String),
    /// A part of the exporter refuses its settings.
    #[error("cannot prepare the export: {0}")]
    Setup(String),
}

/// Sends spans to one destination. Needs a tokio runtime with I/O and time.
#[derive(Debug)]
pub struct Exporter {
    transport: Transport,
}

#[derive(Debug)]
enum Transport {
    Http(http::HttpTransport),
    Grpc(grpc::GrpcTransport),
}

impl Exporter {
    /// Prepares the export: reads the files for TLS, but connects to nothing yet.
    ///
    /// # Errors
    ///
    /// When the destination cannot be used as it is set; the text says what to change.
    pub fn build(destination: &Destination) -> Result<Self, BuildError> {
        let transport = match destination {
            Destination::Otlp { protocol: Protocol::Grpc, .. } => {
                Transport::Grpc(grpc::GrpcTransport::build(destination)?)
            }
            Destination::FutureAgi { .. } | Destination::Otlp { .. } => {
                Transport::Http(http::HttpTransport::build(destination)?)
            }
            Destination::None { .. } | Destination::Incomplete { .. } | Destination::Invalid { .. } => {
                return Err(BuildError::NoDestination(destination.to_string()));
            }
        };
        Ok(Self { transport })
    }

    /// Sends spans of one resource, once.
    pub async fn export(&self, resource: &BTreeMap<String, Value>, spans: &[Span]) -> Answer {
        match &self.transport {
            Transport::Http(http) => http.export(resource, spans).await,
            Transport::Grpc(grpc) => grpc.export(resource, spans).await,
        }
    }

    /// Sends an empty request, which every receiver must take and none stores: shows whether URL and keys are right.
    pub async fn probe(&self) -> Answer {
        match &self.transport {
            Transport::Http(http) => http.probe().await,
            Transport::Grpc(grpc) => grpc.probe().await,
        }
    }
}

/// `Product/version OTel-OTLP-Exporter-Rust/version`, as the exporter specification wants it.
const USER_AGENT: &str = concat!("fi-hook-to-otlp/", env!("CARGO_PKG_VERSION"), " OTel-OTLP-Exporter-Rust/0.33");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_cannot_come_back_in_words() {
        let answer = |reason, code| {
            let outcome = Outcome::Partial { rejected: 2, message: "hush".into() };
            Answer { outcome, code, message: Some("hush".into()), reason }.without_quotes()
        };
        let cleared = Outcome::Partial { rejected: 2, message: String::new() };
        for (reason, code, stays) in [
            ("unauthorized", Some(Code::Http(401)), false),
            ("timeout", Some(Code::Http(504)), false),
            ("connection_failed", None, false),
            ("protocol", None, false),
            ("not_encodable", None, false),
            ("timeout", None, true),
            ("dns", None, true),
            ("tls", None, true),
        ] {
            let answer = answer(reason, code);
            assert_eq!((answer.message.is_some(), &answer.outcome), (stays, &cleared), "{reason} {code:?}");
        }
    }
}
