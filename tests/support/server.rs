//! A port of 127.0.0.1 with a thread of its own behind it.

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A thread that accepts connections; it ends, and closes them all, when it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Listens on a port of 127.0.0.1; 0 means a free one.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(
        port: u16,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, bound) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
                ready.send(listener.local_addr().unwrap().port()).unwrap();
                let accept = async {
                    loop {
                        if let Ok((stream, _)) = listener.accept().await {
                            tokio::spawn(serve(stream));
                        }
                    }
                };
                tokio::select! { () = accept => {}, _ = stopped => {} }
            });
        });
        Self { port: bound.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Keeps a free port from being given to others while nobody listens there; connections are refused then.
pub(crate) fn reserve() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    socket
}
