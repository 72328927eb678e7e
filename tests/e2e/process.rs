//! Receivers as processes of a test: started on free ports of 127.0.0.1, ended with the test, asked over HTTP.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use crate::support::sandbox::HANG;

/// What `tests/e2e/run.sh` has put into the environment.
pub(crate) fn provided(name: &str) -> PathBuf {
    let Some(value) = std::env::var_os(name) else {
        panic!(
            "{name} is not set: run the end-to-end tests with tests/e2e/run.sh BINARY, which provides the receivers"
        );
    };
    let path = PathBuf::from(value);
    assert!(path.exists(), "{name} names {}, which is not there: run tests/e2e/run.sh BINARY", path.display());
    path
}

/// Ports that nobody listens on, below those that systems hand out for outgoing connections; never the same twice.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    const FIRST: u16 = 10_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Another run of the tests at the same time starts somewhere else.
    let offset = u16::try_from(std::process::id().wrapping_mul(7919) % u32::from(COUNT)).unwrap();
    std::array::from_fn(|_| {
        loop {
            let port = FIRST + (offset + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
            if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return port;
            }
        }
    })
}

/// A child that does not outlive its test.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a program with its output in a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let file = std::fs::File::create(log).unwrap();
        let command = command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { child: command.spawn().expect("the receiver starts"), log: log.to_owned() }
    }

    /// Waits until something holds while the program lives; panics with its log if it ends or takes too long.
    pub(crate) fn wait_until(&mut self, what: &str, mut look: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !look() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{what}: the receiver ended with {ended:?}\n{}", self.log());
            assert!(begun.elapsed() < HANG, "{what}: never\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it has printed.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status and body of a GET; None while nobody answers.
pub(crate) fn get(port: u16, path: &str) -> Option<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(HANG)).unwrap();
    // HTTP/1.0, so that the body ends with the connection and comes in one piece.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let status = std::str::from_utf8(&answer[..head]).ok()?.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.split_off(head + 4)))
}

/// The JSON that a GET answers with 200.
pub(crate) fn get_json(port: u16, path: &str) -> serde_json::Value {
    let (status, body) = get(port, path).expect("the receiver answers");
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).expect("JSON")
}
