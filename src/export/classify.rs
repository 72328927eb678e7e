//! What an answer means: the table of the design (§6) for HTTP and gRPC, and for failures of the network.
//! Pure. Sources: OTLP specification, <https://opentelemetry.io/docs/specs/otlp/#failures>; where it says "must not
//! be retried" we keep the spans and call it configuration, since the data is fine.
//! Decided in `docs/adr/0015-export-transports.md`.

use std::time::Duration;

use super::{Answer, Code, Outcome};

/// Whose answer it is, as far as the words differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// Future AGI's collector.
    FutureAgi,
    /// Any other.
    Otlp,
}

/// Why there was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The time limit passed.
    Timeout,
    /// Nobody listens there.
    ConnectionRefused,
    /// The connection broke, or could not be made for another reason that may pass.
    Connection,
    /// The name has no address.
    Dns,
    /// No agreement on a certificate or protocol.
    Tls,
    /// The proxy wants a name and password, or other ones.
    ProxyAuthorization,
    /// The proxy does not let us through.
    Proxy,
    /// What answers does not speak the protocol.
    Protocol,
}

/// What an HTTP status means. A 2xx is for the body to say; here it counts as delivered.
#[must_use]
pub fn http(status: u16, after: Option<Duration>, receiver: Receiver) -> (Outcome, &'static str) {
    let configuration = |words: &str| Outcome::Configuration(words.to_owned());
    match status {
        200..=299 => (Outcome::Delivered, "delivered"),
        300..=399 => (
            configuration(
                "the endpoint redirects; redirects are not followed, since keys would go to another host: set the final URL",
            ),
            "redirect",
        ),
        429 => (Outcome::Retry { after }, "too_many_requests"),
        502..=504 => (Outcome::Retry { after }, "unavailable"),
        400 => (Outcome::Refused, "bad_request"),
        413 => (Outcome::Refused, "too_large"),
        422 => (Outcome::Refused, "unprocessable"),
        401 => (configuration(unauthorized(receiver)), "unauthorized"),
        403 => (configuration("the receiver forbids this: the key lacks the right to send traces"), "forbidden"),
        404 => (configuration(not_found(receiver)), "not_found"),
        405 => (configuration("the URL is no OTLP endpoint: it takes no POST; check its path"), "method_not_allowed"),
        407 => (
            configuration("the proxy asks for a name and password: put them into the proxy's URL"),
            "proxy_authorization",
        ),
        415 => (
            configuration(
                "the receiver does not take this encoding: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and no compression",
            ),
            "unsupported_media_type",
        ),
        500..=599 => (configuration("the receiver has an error of its own: see its log"), "server_error"),
        _ => (configuration("the receiver gave an answer that OTLP does not know: check the URL"), "unexpected_status"),
    }
}

const fn unauthorized(receiver: Receiver) -> &'static str {
    match receiver {
        Receiver::FutureAgi => "the keys are missing or wrong: check FI_API_KEY and FI_SECRET_KEY",
        Receiver::Otlp => "the receiver wants other credentials: check OTEL_EXPORTER_OTLP_HEADERS",
    }
}

const fn not_found(receiver: Receiver) -> &'static str {
    match receiver {
        Receiver::FutureAgi => {
            "there is no traces endpoint at FI_BASE_URL: this looks like the backend; use the collector's port (4318 in \
             Future AGI's compose file)"
        }
        Receiver::Otlp => {
            "there is nothing at this path: OTEL_EXPORTER_OTLP_ENDPOINT is the base without /v1/traces, \
             OTEL_EXPORTER_OTLP_TRACES_ENDPOINT the full URL"
        }
    }
}

/// A 2xx whose body is no OTLP answer.
#[must_use]
pub fn not_otlp() -> (Outcome, &'static str) {
    let words = "what answers is no OTLP endpoint (its answer is a page or another format): check host, port and path";
    (Outcome::Configuration(words.to_owned()), "not_otlp")
}

/// What a gRPC status means; `after` is RetryInfo.
#[must_use]
pub fn grpc(code: i32, after: Option<Duration>) -> (Outcome, &'static str) {
    let configuration = |words: &str| Outcome::Configuration(words.to_owned());
    match code {
        0 => (Outcome::Delivered, "delivered"),
        1 => (Outcome::Retry { after }, "cancelled"),
        4 => (Outcome::Retry { after }, "deadline_exceeded"),
        8 if after.is_some() => (Outcome::Retry { after }, "resource_exhausted"),
        10 => (Outcome::Retry { after }, "aborted"),
        11 => (Outcome::Retry { after }, "out_of_range"),
        14 => (Outcome::Retry { after }, "unavailable"),
        15 => (Outcome::Retry { after }, "data_loss"),
        3 => (Outcome::Refused, "invalid_argument"),
        8 => (Outcome::Refused, "resource_exhausted"),
        7 => (configuration("the receiver forbids this: the key lacks the right to send traces"), "permission_denied"),
        12 => (
            configuration(
                "the receiver does not know this call: use another port, another protocol, or no compression",
            ),
            "unimplemented",
        ),
        16 => (configuration(unauthorized(Receiver::Otlp)), "unauthenticated"),
        5 => (configuration("there is no OTLP service at this address: check host and port"), "not_found"),
        13 => (configuration("the receiver has an error of its own: see its log"), "internal"),
        _ => (
            configuration("the receiver gave an answer that OTLP does not know: check the endpoint"),
            "unexpected_status",
        ),
    }
}

/// What it means that there was no answer.
#[must_use]
pub fn failure(failure: Failure) -> (Outcome, &'static str) {
    let configuration = |words: &str| Outcome::Configuration(words.to_owned());
    match failure {
        Failure::Timeout => (Outcome::Retry { after: None }, "timeout"),
        Failure::ConnectionRefused => (Outcome::Retry { after: None }, "connection_refused"),
        Failure::Connection => (Outcome::Retry { after: None }, "connection_failed"),
        Failure::Dns => {
            (configuration("the host's name has no address: check the endpoint, or the network is down"), "dns")
        }
        Failure::Tls => (
            configuration(
                "no secure connection: if the certificate is your own, name its authority in \
                 OTEL_EXPORTER_OTLP_CERTIFICATE; if the port speaks no TLS, write http://",
            ),
            "tls",
        ),
        Failure::ProxyAuthorization => (
            configuration("the proxy asks for a name and password, or other ones: put them into the proxy's URL"),
            "proxy_authorization",
        ),
        Failure::Proxy => (
            configuration("the proxy does not connect to the endpoint: check HTTPS_PROXY, or add the host to NO_PROXY"),
            "proxy",
        ),
        Failure::Protocol => (
            configuration(
                "what answers does not speak the protocol that is set: use port 4318 with HTTP and 4317 with gRPC, and \
                 https:// where the port speaks TLS",
            ),
            "protocol",
        ),
    }
}

/// Puts an answer together.
#[must_use]
pub fn answer((outcome, reason): (Outcome, &'static str), code: Option<Code>, message: Option<String>) -> Answer {
    Answer { outcome, code, message, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(outcome: &Outcome) -> &'static str {
        match outcome {
            Outcome::Delivered => "delivered",
            Outcome::Partial { .. } => "partial",
            Outcome::Retry { .. } => "retry",
            Outcome::Refused => "refused",
            Outcome::Configuration(_) => "configuration",
        }
    }

    #[test]
    fn every_http_status() {
        for status in 100..=599 {
            let expected = match status {
                200..=299 => "delivered",
                429 | 502 | 503 | 504 => "retry",
                400 | 413 | 422 => "refused",
                _ => "configuration",
            };
            for receiver in [Receiver::FutureAgi, Receiver::Otlp] {
                assert_eq!(class(&http(status, None, receiver).0), expected, "{status}");
            }
        }
    }

    #[test]
    fn every_grpc_code() {
        for code in -1..=20 {
            let expected = match code {
                0 => "delivered",
                1 | 4 | 10 | 11 | 14 | 15 => "retry",
                3 | 8 => "refused",
                _ => "configuration",
            };
            assert_eq!(class(&grpc(code, None).0), expected, "{code}");
        }
        let after = Some(Duration::from_secs(3));
        assert_eq!(grpc(8, after), (Outcome::Retry { after }, "resource_exhausted"));
        assert_eq!(grpc(14, after), (Outcome::Retry { after }, "unavailable"));
    }

    #[test]
    fn failures_that_may_pass_are_tried_again() {
        for (what, expected) in [
            (Failure::Timeout, "retry"),
            (Failure::ConnectionRefused, "retry"),
            (Failure::Connection, "retry"),
            (Failure::Dns, "configuration"),
            (Failure::Tls, "configuration"),
            (Failure::ProxyAuthorization, "configuration"),
            (Failure::Proxy, "configuration"),
            (Failure::Protocol, "configuration"),
        ] {
            assert_eq!(class(&failure(what).0), expected, "{what:?}");
        }
    }

    #[test]
    fn words_say_what_to_change_for_whom() {
        let words = |status, receiver| match http(status, None, receiver).0 {
            Outcome::Configuration(words) => words,
            other => panic!("{other:?}"),
        };
        assert!(words(404, Receiver::FutureAgi).contains("collector's port"));
        assert!(words(404, Receiver::Otlp).contains("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
        assert!(words(401, Receiver::FutureAgi).contains("FI_SECRET_KEY"));
        assert!(words(401, Receiver::Otlp).contains("OTEL_EXPORTER_OTLP_HEADERS"));
    }
}
