//! Why a request got no answer: walks the chain of an error down to the cause that says what to do.
//! Pure. Decided in `docs/adr/0015-export-transports.md`.

use std::error::Error;
use std::io::ErrorKind;

use super::classify::Failure;
use super::connect::{NameFailure, TunnelFailure};

/// The cause of an error, and its own words.
pub(super) fn of(error: &(dyn Error + 'static)) -> (Failure, String) {
    let mut kind = None;
    let mut words = error.to_string();
    let mut next = Some(error);
    while let Some(error) = next {
        words = error.to_string();
        if let Some(found) = kind_of(error) {
            kind = Some(found);
        }
        next = below(error);
    }
    (kind.unwrap_or(Failure::Connection), words)
}

/// The error below; an `io::Error` hides the one it carries from `source`.
fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(carried) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        return Some(carried);
    }
    error.source()
}

fn kind_of(error: &(dyn Error + 'static)) -> Option<Failure> {
    if error.is::<NameFailure>() {
        return Some(Failure::Dns);
    }
    if error.is::<rustls::Error>() {
        return Some(Failure::Tls);
    }
    if let Some(tunnel) = error.downcast_ref::<TunnelFailure>() {
        return Some(tunnel_kind(&tunnel.to_string()));
    }
    if let Some(io) = error.downcast_ref::<std::io::Error>() {
        return match io.kind() {
            ErrorKind::ConnectionRefused => Some(Failure::ConnectionRefused),
            ErrorKind::TimedOut => Some(Failure::Timeout),
            _ => None,
        };
    }
    if let Some(h2) = error.downcast_ref::<h2::Error>() {
        // What the library itself objects to is a stream of bytes that is no HTTP/2.
        return h2.is_library().then_some(Failure::Protocol);
    }
    // A receiver that speaks HTTP/2 sends first; hyper has no question for that case, so its words have to do.
    let unexpected = |hyper: &hyper::Error| hyper.to_string().contains("unexpected message");
    error
        .downcast_ref()
        .filter(|hyper: &&hyper::Error| hyper.is_parse() || unexpected(hyper))
        .map(|_| Failure::Protocol)
}

/// Tells the cases of the tunnel's error, whose type is not exported, by its words; tests with a real proxy pin them.
fn tunnel_kind(words: &str) -> Failure {
    if words.contains("authorization required") {
        Failure::ProxyAuthorization
    } else if words.contains("failed to create") || words.contains("unexpected end") || words.contains("io error") {
        Failure::Connection
    } else {
        Failure::Proxy
    }
}
