//! From an endpoint as written to the URL that is posted to, with a word on what looks wrong.
//! Pure, knows only text; the rules are those of the OTLP exporter specification
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/#endpoint-urls-for-otlphttp>).
//! Decided in `docs/adr/0012-endpoint-rules.md`.

use http::Uri;

/// The path that a base endpoint gets.
const TRACES: &str = "/v1/traces";
/// The path of a Future AGI collector; its receiver answers on [`TRACES`] as well.
const FUTURE_AGI: &str = "/tracer/v1/traces";

/// Transport and encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// `http/protobuf`.
    #[default]
    HttpProtobuf,
    /// `http/json`.
    HttpJson,
    /// `grpc`.
    Grpc,
}

impl Protocol {
    /// The word of `OTEL_EXPORTER_OTLP_PROTOCOL`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HttpProtobuf => "http/protobuf",
            Self::HttpJson => "http/json",
            Self::Grpc => "grpc",
        }
    }

    /// Reads the word, in any case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::HttpProtobuf, Self::HttpJson, Self::Grpc].into_iter().find(|p| p.as_str().eq_ignore_ascii_case(word))
    }
}

/// An endpoint as written, by the kind of setting it stands in.
#[derive(Clone, Copy)]
pub enum Given<'a> {
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`: the path of traces is added.
    Base(&'a str),
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`: used as it is.
    Signal(&'a str),
    /// `FI_BASE_URL`.
    FutureAgi(&'a str),
}

/// The URL, and what looks wrong about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// For HTTP what is posted to; for gRPC scheme, host and port.
    pub url: String,
    /// Advice in plain words; the URL is used all the same.
    pub advice: Vec<&'static str>,
}

/// Why an endpoint cannot be used; holds no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No `http://` in front.
    #[error("the scheme is missing: write http:// or https:// in front of the host")]
    MissingScheme,
    /// Another scheme.
    #[error("the scheme is not supported: use http:// or https://")]
    UnknownScheme,
    /// Not a URL.
    #[error("this is not a URL: expected http://host:port or https://host:port")]
    NotUrl,
    /// `user:password@` in front of the host: URLs are shown, so they may not hold keys.
    #[error("the URL holds a user name or password: put them into OTEL_EXPORTER_OTLP_HEADERS instead")]
    Credentials,
    /// FI_BASE_URL with a query.
    #[error("the URL has a query: give the collector's origin only, such as https://host:port")]
    Query,
}

const GRPC_PORT: &str = "port 4317 is the port of OTLP over gRPC, but the protocol is HTTP: use port 4318, or set \
     OTEL_EXPORTER_OTLP_PROTOCOL=grpc";
const HTTP_PORT: &str = "port 4318 is the port of OTLP over HTTP, but the protocol is gRPC: use port 4317, or set \
     OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf";
const GRPC_PATH: &str = "gRPC has no path: the path of the endpoint is left out";
const DOUBLED: &str = "the endpoint already ends in /v1/traces, so nothing is added; a full URL belongs into \
     OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const NO_PATH: &str = "the endpoint has no path and is used as it is; most collectors expect /v1/traces at its end";

/// Resolves an endpoint. `insecure` decides only what a gRPC endpoint without a scheme means.
///
/// # Errors
///
/// When no request could be sent there; the text says what to change.
pub fn resolve(given: Given<'_>, protocol: Protocol, insecure: bool) -> Result<Endpoint, EndpointError> {
    let (Given::Base(text) | Given::Signal(text) | Given::FutureAgi(text)) = given;
    let uri = parse(text, protocol, insecure)?;
    let mut advice = Vec::new();
    match (protocol, uri.port_u16()) {
        (Protocol::HttpProtobuf | Protocol::HttpJson, Some(4317)) => advice.push(GRPC_PORT),
        (Protocol::Grpc, Some(4318)) => advice.push(HTTP_PORT),
        _ => {}
    }
    let (path, query) = (uri.path(), uri.query());
    let path = match given {
        _ if protocol == Protocol::Grpc => {
            if path != "/" {
                advice.push(GRPC_PATH);
            }
            String::new()
        }
        Given::FutureAgi(_) if query.is_some() => return Err(EndpointError::Query),
        Given::FutureAgi(_) => future_agi_path(path),
        Given::Base(_) if path.trim_end_matches('/').ends_with(TRACES) => {
            advice.push(DOUBLED);
            path.to_owned()
        }
        Given::Base(_) => format!("{}{TRACES}", path.strip_suffix('/').unwrap_or(path)),
        Given::Signal(_) => {
            if path == "/" {
                advice.push(NO_PATH);
            }
            path.to_owned()
        }
    };
    let query = query.filter(|_| protocol != Protocol::Grpc).map(|query| format!("?{query}")).unwrap_or_default();
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    Ok(Endpoint { url: format!("{scheme}://{authority}{path}{query}"), advice })
}

/// An origin gets the collector's path; a URL that already names a traces path is used as it is.
fn future_agi_path(path: &str) -> String {
    let path = path.trim_end_matches('/');
    if path.ends_with(TRACES) { path.to_owned() } else { format!("{path}{FUTURE_AGI}") }
}

fn parse(text: &str, protocol: Protocol, insecure: bool) -> Result<Uri, EndpointError> {
    let completed;
    let text = if text.contains("://") {
        text
    } else if protocol == Protocol::Grpc {
        completed = format!("{}://{text}", if insecure { "http" } else { "https" });
        &completed
    } else {
        return Err(EndpointError::MissingScheme);
    };
    let uri: Uri = text.parse().map_err(|_| EndpointError::NotUrl)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(EndpointError::UnknownScheme);
    }
    let authority = uri.authority().ok_or(EndpointError::NotUrl)?;
    if authority.as_str().contains('@') {
        return Err(EndpointError::Credentials);
    }
    let after_host = authority.as_str().get(authority.host().len()..).unwrap_or_default();
    if authority.host().is_empty() || (!after_host.is_empty() && authority.port_u16().is_none()) {
        return Err(EndpointError::NotUrl);
    }
    Ok(uri)
}

/// The URL without its query, which may hold a key.
#[must_use]
pub fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(shown, _)| shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Given::{Base, FutureAgi, Signal};
    use Protocol::{Grpc, HttpProtobuf};

    #[test]
    fn the_url_that_is_posted_to() {
        for (given, url) in [
            (Base("http://h:4318"), "http://h:4318/v1/traces"),
            (Base("http://h:4318/"), "http://h:4318/v1/traces"),
            (Base("http://h:4318/otlp"), "http://h:4318/otlp/v1/traces"),
            (Base("http://h:4318/otlp/"), "http://h:4318/otlp/v1/traces"),
            (Base("https://h/api/public/otel"), "https://h/api/public/otel/v1/traces"),
            (Base("https://h/x?key=1"), "https://h/x/v1/traces?key=1"),
            (Base("https://h?key=1"), "https://h/v1/traces?key=1"),
            (Base("http://h:4318/v1/traces"), "http://h:4318/v1/traces"),
            (Base("http://h:4318/v1/traces/"), "http://h:4318/v1/traces/"),
            (Base("http://[::1]:4318"), "http://[::1]:4318/v1/traces"),
            (Base("HTTP://h:4318#part"), "http://h:4318/v1/traces"),
            (Signal("http://h:4318"), "http://h:4318/"),
            (Signal("http://h:4318/x"), "http://h:4318/x"),
            (Signal("http://h:4318/x/"), "http://h:4318/x/"),
            (Signal("http://h:4318/v1/traces?key=1"), "http://h:4318/v1/traces?key=1"),
            (FutureAgi("http://h:4318"), "http://h:4318/tracer/v1/traces"),
            (FutureAgi("http://h:4318/"), "http://h:4318/tracer/v1/traces"),
            (FutureAgi("https://h/fi//"), "https://h/fi/tracer/v1/traces"),
            (FutureAgi("https://h/tracer/v1/traces"), "https://h/tracer/v1/traces"),
            (FutureAgi("https://h/v1/traces/"), "https://h/v1/traces"),
        ] {
            let (Base(text) | Signal(text) | FutureAgi(text)) = given;
            assert_eq!(resolve(given, HttpProtobuf, false).map(|e| e.url), Ok(url.to_owned()), "{text}");
        }
    }

    #[test]
    fn grpc_needs_no_scheme_and_has_no_path() {
        for (text, insecure, url, advice) in [
            ("http://h:4317", false, "http://h:4317", vec![]),
            ("https://h:4317", true, "https://h:4317", vec![]),
            ("h:4317", false, "https://h:4317", vec![]),
            ("h:4317", true, "http://h:4317", vec![]),
            ("http://h:4317/", false, "http://h:4317", vec![]),
            ("http://h:4317/x?y", false, "http://h:4317", vec![GRPC_PATH]),
            ("http://h:4318", false, "http://h:4318", vec![HTTP_PORT]),
        ] {
            assert_eq!(resolve(Base(text), Grpc, insecure), Ok(Endpoint { url: url.to_owned(), advice }), "{text}");
        }
    }

    #[test]
    fn what_looks_wrong_is_said() {
        for (given, advice) in [
            (Base("http://h:4317"), GRPC_PORT),
            (FutureAgi("http://h:4317"), GRPC_PORT),
            (Base("http://h:4318/v1/traces"), DOUBLED),
            (Signal("http://h:4318"), NO_PATH),
        ] {
            assert_eq!(resolve(given, HttpProtobuf, false).map(|e| e.advice), Ok(vec![advice]));
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_being_repeated() {
        for (text, error) in [
            ("localhost:4318", EndpointError::MissingScheme),
            ("collector", EndpointError::MissingScheme),
            ("/v1/traces", EndpointError::MissingScheme),
            ("ftp://h", EndpointError::UnknownScheme),
            ("unix:///run/otlp.sock", EndpointError::NotUrl),
            ("http://", EndpointError::NotUrl),
            ("http://:4318", EndpointError::NotUrl),
            ("http://h:99999", EndpointError::NotUrl),
            ("http://h:port", EndpointError::NotUrl),
            ("http://h h", EndpointError::NotUrl),
            ("http://user:hush@h:4318", EndpointError::Credentials),
        ] {
            assert_eq!(resolve(Base(text), HttpProtobuf, false), Err(error), "{text}");
        }
        assert_eq!(resolve(FutureAgi("http://h?x=1"), HttpProtobuf, false), Err(EndpointError::Query));
    }
}
