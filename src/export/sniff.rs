//! Notices that a receiver answers a gRPC connection with anything but HTTP/2: tonic reports only that the connection
//! closed, and "the wrong port" is what a user has to be told. Changes no byte. Decided in `docs/adr/0015-export-transports.md`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use http::Uri;
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use tower_service::Service;

/// The type, in the fourth byte, of the frame that a receiver must send first: SETTINGS.
const SETTINGS: u8 = 4;

/// A connector whose connections look at the first bytes they read.
#[derive(Clone)]
pub(super) struct Sniffing<C> {
    pub(super) inner: C,
    /// Set when an answer was no HTTP/2: HTTP/1, or a TLS alert.
    pub(super) foreign: Arc<AtomicBool>,
}

impl<C> Service<Uri> for Sniffing<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
{
    type Response = Sniffed<C::Response>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, C::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        let (connecting, foreign) = (self.inner.call(destination), Arc::clone(&self.foreign));
        Box::pin(async move { Ok(Sniffed { stream: connecting.await?, foreign: Some(foreign) }) })
    }
}

/// A connection that looks at the first bytes it reads.
pub(super) struct Sniffed<S> {
    stream: S,
    /// None once it has looked.
    foreign: Option<Arc<AtomicBool>>,
}

impl<S: Read + Unpin> Read for Sniffed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(foreign) = self.foreign.clone() else {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        };
        // The cursor only takes bytes, so the first ones are read into a place of their own.
        let mut first = vec![0; buffer.remaining().min(4096)];
        let mut own = ReadBuf::new(&mut first);
        ready!(Pin::new(&mut self.stream).poll_read(cx, own.unfilled()))?;
        self.foreign = None;
        foreign.store(own.filled().get(3).is_some_and(|kind| *kind != SETTINGS), Ordering::Relaxed);
        buffer.put_slice(own.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: Write + Unpin> Write for Sniffed<S> {
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
