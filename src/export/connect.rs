//! The one way to a receiver, for HTTP and gRPC alike: name look-up, proxy, TCP, TLS; and what it means when it fails.
//! May not send a byte of a request. `https://` always means TLS with a checked certificate; there is no switch.
//! Decided in `docs/adr/0015-export-transports.md`.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::BuildError;
use super::tls;
use crate::config::{Proxies, Route};

/// TCP and TLS to the receiver, over a proxy if one is set.
pub(super) type Connector = HttpsConnector<Hop>;
type ToProxy = HttpsConnector<HttpConnector<Resolver>>;
type BoxError = Box<dyn Error + Send + Sync>;
type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Connecting may take this much of the time limit.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);

/// How a request has to be written for the way it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// HTTP/1.1: a plain request to a proxy names the whole URL.
    Http,
    /// HTTP/2: a proxy is always tunnelled through.
    Grpc,
}

/// Makes the connector, and the `Proxy-Authorization` that plain requests over a proxy need.
pub(super) fn connector(route: &Route, wire: Wire) -> Result<(Connector, Option<HeaderValue>), BuildError> {
    let uri: Uri = route.url.parse().map_err(|_| BuildError::Setup("the endpoint is no URL".to_owned()))?;
    let proxy = proxy(&uri, &route.proxies)?;
    let secure = |uri: &Uri| uri.scheme_str() == Some("https");
    let needs_tls = secure(&uri) || proxy.as_ref().is_some_and(|proxy| secure(proxy.uri()));
    let mut to_receiver = tls::config(&route.tls, needs_tls)?;
    let to_proxy = Arc::new(to_receiver.clone());
    if wire == Wire::Grpc {
        to_receiver.alpn_protocols = vec![b"h2".to_vec()];
    }
    let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(route.timeout.min(LONGEST_CONNECT)));
    let mut authorization = None;
    let hop = match proxy {
        None => Hop::Direct(tcp),
        Some(proxy) => {
            let inner = HttpsConnector::from((tcp, to_proxy));
            if secure(&uri) || wire == Wire::Grpc {
                let tunnel = Tunnel::new(proxy.uri().clone(), inner);
                Hop::Tunnel(match proxy.basic_auth() {
                    Some(credentials) => tunnel.with_auth(credentials.clone()),
                    None => tunnel,
                })
            } else {
                authorization = proxy.basic_auth().cloned();
                Hop::Forward(inner, proxy.uri().clone())
            }
        }
    };
    Ok((HttpsConnector::from((hop, Arc::new(to_receiver))), authorization))
}

/// The proxy for a URL, by the rules of curl; this machine itself is never reached over one.
fn proxy(uri: &Uri, proxies: &Proxies) -> Result<Option<Intercept>, BuildError> {
    let secret = |value: &Option<crate::config::Secret>| value.as_ref().map(|value| value.expose().to_owned());
    let (name, own) = if uri.scheme_str() == Some("https") {
        ("HTTPS_PROXY", secret(&proxies.https))
    } else {
        ("HTTP_PROXY", secret(&proxies.http))
    };
    let Some((name, proxy)) = own.map(|own| (name, own)).or_else(|| secret(&proxies.all).map(|all| ("ALL_PROXY", all)))
    else {
        return Ok(None);
    };
    let bypass = Matcher::builder().all("http://proxy.invalid").no(proxies.no.clone().unwrap_or_default()).build();
    if is_this_machine(uri) || bypass.intercept(uri).is_none() {
        return Ok(None);
    }
    let found = Matcher::builder().all(proxy).build().intercept(uri);
    let usable = found.filter(|proxy| matches!(proxy.uri().scheme_str(), Some("http" | "https")));
    usable.map(Some).ok_or(BuildError::Proxy(name))
}

fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The way to the receiver's port, without its TLS.
#[derive(Debug, Clone)]
pub(super) enum Hop {
    /// No proxy.
    Direct(HttpConnector<Resolver>),
    /// Requests are handed to a proxy, which sends them on.
    Forward(ToProxy, Uri),
    /// A proxy connects us through.
    Tunnel(Tunnel<ToProxy>),
}

impl Service<Uri> for Hop {
    type Response = HopStream;
    type Error = BoxError;
    type Future = Boxed<HopStream>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Self::Forward(proxy, _) => proxy.poll_ready(cx),
            Self::Tunnel(tunnel) => tunnel.poll_ready(cx).map_err(|error| TunnelFailure::new(error).into()),
        }
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        match self {
            Self::Direct(tcp) => {
                let connecting = tcp.call(destination);
                Box::pin(async { Ok(HopStream { stream: MaybeHttpsStream::Http(connecting.await?), forward: false }) })
            }
            Self::Forward(proxy, at) => {
                let connecting = proxy.call(at.clone());
                Box::pin(async { Ok(HopStream { stream: connecting.await?, forward: true }) })
            }
            Self::Tunnel(tunnel) => {
                let connecting = tunnel.call(destination);
                Box::pin(async {
                    let stream = connecting.await.map_err(TunnelFailure::new)?;
                    Ok(HopStream { stream, forward: false })
                })
            }
        }
    }
}

/// A connection that knows whether a proxy reads its requests.
pub(super) struct HopStream {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    forward: bool,
}

impl Connection for HopStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.forward)
    }
}

impl hyper::rt::Read for HopStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl hyper::rt::Write for HopStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}

/// Looks names up as the system does, and marks a failure as one of names.
#[derive(Debug, Clone)]
pub(super) struct Resolver(GaiResolver);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NameFailure(io::Error);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = NameFailure;
    type Future = Pin<Box<dyn Future<Output = Result<GaiAddrs, NameFailure>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NameFailure>> {
        self.0.poll_ready(cx).map_err(NameFailure)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving = self.0.call(name);
        Box::pin(async { resolving.await.map_err(NameFailure) })
    }
}

/// The tunnel's error, which `hyper-util` does not export, as a type that can be found again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct TunnelFailure(#[source] pub(super) BoxError);

impl TunnelFailure {
    fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    fn at(url: &str, proxies: &Proxies) -> Result<Option<String>, String> {
        let found = proxy(&url.parse().unwrap(), proxies);
        found.map(|proxy| proxy.map(|proxy| proxy.uri().to_string())).map_err(|error| error.to_string())
    }

    #[test]
    fn which_requests_take_which_proxy() {
        let proxies = Proxies {
            http: Some(Secret::new("http://plain:1")),
            https: Some(Secret::new("secure:2")),
            all: Some(Secret::new("http://all:3")),
            no: Some("internal.example, .corp, 10.0.0.0/8".to_owned()),
        };
        for (url, proxy) in [
            ("http://h/", Some("http://plain:1/")),
            ("https://h/", Some("http://secure:2/")),
            ("https://internal.example/", None),
            ("https://a.internal.example/", None),
            ("https://a.corp/", None),
            ("http://10.1.2.3:4318/", None),
            ("http://11.1.2.3:4318/", Some("http://plain:1/")),
            ("http://localhost:4318/", None),
            ("http://otel.localhost:4318/", None),
            ("http://LOCALHOST.:4318/", None),
            ("http://127.0.0.9:4318/", None),
            ("https://[::1]:4318/", None),
        ] {
            assert_eq!(at(url, &proxies), Ok(proxy.map(str::to_owned)), "{url}");
        }
        let all = Proxies { all: Some(Secret::new("http://all:3")), ..Proxies::default() };
        assert_eq!(at("https://h/", &all), Ok(Some("http://all:3/".to_owned())));
        let none = Proxies { no: Some("*".to_owned()), ..all };
        assert_eq!(at("https://h/", &none), Ok(None));
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named_without_its_password() {
        for bad in ["socks5://user:hush@h:1", "ftp://h", "http://", "::"] {
            let proxies = Proxies { https: Some(Secret::new(bad)), ..Proxies::default() };
            let error = at("https://h/", &proxies).expect_err(bad);
            assert_eq!(error, "HTTPS_PROXY is no proxy URL: expected http://host:port", "{bad}");
            assert_eq!(at("https://localhost/", &proxies), Ok(None));
        }
    }
}
