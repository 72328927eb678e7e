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
                let listener = listen(port).await;
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

/// A port that was just given up may be open for a moment yet: a process that another test is starting has a copy of the
/// socket until it is that other program.
async fn listen(port: u16) -> TcpListener {
    let begun = std::time::Instant::now();
    loop {
        match TcpListener::bind(("127.0.0.1", port)).await {
            Ok(listener) => return listener,
            Err(error) => assert!(begun.elapsed() < super::sandbox::HANG, "port {port}: {error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
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
