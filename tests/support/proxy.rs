//! A proxy that leads everything to one port, whatever host is asked for: `localhost` is never proxied, so tests ask
//! for a made-up one. CONNECT, and plain requests with a whole URL; a name and password if wanted.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::receiver::Server;

/// The proxy; it stops when it is dropped.
pub(crate) struct Proxy {
    server: Server,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts one that leads to `port`; `authorization` is the value of the header it wants.
    pub(crate) fn start(port: u16, authorization: Option<&'static str>) -> Self {
        Self::start_answering(port, authorization, "200 Connection established")
    }

    /// Starts one that answers CONNECT with this status.
    pub(crate) fn start_answering(port: u16, authorization: Option<&'static str>, status: &'static str) -> Self {
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&heads);
        let server = Server::start(0, move |stream| {
            let noted = Arc::clone(&noted);
            async move {
                let _ = lead(stream, port, authorization, status, &noted).await;
            }
        });
        Self { server, heads }
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }

    /// Host and port, to put a name and password in front.
    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.server.port)
    }

    /// The head of each request it was asked to lead on.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn lead(
    mut client: TcpStream,
    port: u16,
    authorization: Option<&str>,
    status: &str,
    heads: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    heads.lock().unwrap().push(text.clone());
    let wanted = authorization.map(|value| format!("proxy-authorization: {value}\r\n").to_ascii_lowercase());
    if wanted.is_some_and(|wanted| !text.to_ascii_lowercase().contains(&wanted)) {
        return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n").await;
    }
    let connect = text.starts_with("CONNECT ");
    if connect {
        client.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).await?;
        if !status.starts_with("200") {
            return Ok(());
        }
    }
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    if !connect {
        server.write_all(&head).await?;
    }
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}
