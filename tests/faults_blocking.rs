//! Field report C3: whatever the sender, the network, the store or the disk are stuck in, the hook gives its exact reply,
//! makes the system calls it makes when all is well, and ends long before the agent gives up on it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failure here is a failed test")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::confined::Confined;
use support::crafted::{At, post_tool, record};
use support::ledger::post;
use support::receiver::{Manner, Receiver, Reply};
use support::sandbox::{PROGRAM, Sandbox, eventually, feed};

/// After this agy kills a hook; its timeout in what `install` registers.
const AGENT_GIVES_UP: Duration = Duration::from_secs(10);
const EVENTS: [(&str, &str); 6] = [
    ("SessionStart", "{}"),
    ("PreInvocation", "{}"),
    ("PreToolUse", ""),
    ("PostToolUse", "{}"),
    ("PostInvocation", "{}"),
    ("Stop", r#"{"decision":""}"#),
];

/// How often each system call was made.
type Calls = BTreeMap<String, usize>;

/// Runs each hook under strace; `dress` makes the command of a program and its words.
fn calls(sandbox: &Sandbox, dress: impl Fn(&[&str]) -> Command) -> Calls {
    let (payload, trace) = (sandbox.path().join("payload"), sandbox.path().join("trace"));
    fs::write(&payload, post("c", 7)).unwrap();
    let mut calls = Calls::new();
    for (event, reply) in EVENTS {
        let mut hook = dress(&["strace", "-o", trace.to_str().unwrap(), PROGRAM, "hook", "antigravity", event]);
        sandbox.dress(&mut hook);
        let begun = Instant::now();
        let output = hook.stdin(fs::File::open(&payload).unwrap()).output().unwrap();
        assert_reply(&output, reply);
        assert!(begun.elapsed() < AGENT_GIVES_UP, "{event}");
        for line in fs::read_to_string(&trace).unwrap().lines() {
            if let Some((call, _)) = line.split_once('(') {
                *calls.entry(call.to_owned()).or_default() += 1;
            }
        }
    }
    assert!(calls.get("renameat") == Some(&EVENTS.len()), "each leaves its event: {calls:?}");
    calls
}

#[track_caller]
fn assert_reply(output: &Output, reply: &str) {
    let said = (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code());
    assert_eq!(said, (reply.to_owned(), Some(0)), "{output:?}");
}

fn plainly(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

/// The system calls when all is well and a sender lives.
fn calls_when_well() -> Calls {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver.url()));
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    receiver.wait_for_spans(1);
    assert_eq!(sandbox.senders().len(), 1);
    calls(&sandbox, plainly)
}

fn settings(url: &str) -> String {
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={url}\nFI_HOOK_IDLE_SECONDS=60\n")
}

/// A machine whose sender has begun to send to this URL.
fn sending_to(url: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.settings(&settings(url));
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    eventually("a batch is tried", || {
        let db = rusqlite::Connection::open(sandbox.profile().join("store.db")).ok()?;
        // A receiver that answers at once leaves no batch to be seen.
        let tried = "SELECT 1 FROM batches WHERE tries > 0 UNION SELECT 1 FROM delivery WHERE answered_ns > 0";
        db.query_row(tried, [], |_| Ok(())).ok()
    });
    sandbox
}

/// A port where nobody accepts and no more connections fit, so that a new one hangs.
fn black_hole() -> (String, Vec<TcpStream>, impl Sized) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.listen(1).unwrap()
    });
    let address: SocketAddr = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
    let full = std::iter::from_fn(connect).take(100).collect();
    (format!("http://{address}"), full, (runtime, listener))
}

#[test]
fn c3_a_collector_that_hangs_or_cannot_be_reached_changes_no_system_call() {
    let well = calls_when_well();
    let hanging = Receiver::start();
    hanging.otherwise(Reply::ok().manner(Manner::Hang));
    let (hole, full, _listener) = black_hole();
    assert!(full.len() < 100, "the hole is none");
    for url in [&hanging.url(), &hole, "http://127.0.0.1:9", "http://nosuch.invalid:4318"] {
        let sandbox = sending_to(url);
        assert_eq!(calls(&sandbox, plainly), well, "{url}");
    }
}

#[test]
fn c3_no_network_and_a_name_server_that_never_answers_change_no_system_call() {
    let well = calls_when_well();
    let names = UdpSocket::bind("127.0.0.77:53").unwrap();
    let script = r#"echo "nameserver 127.0.0.77" >"$0/resolv"; mount --bind "$0/resolv" /etc/resolv.conf"#;
    for (kinds, url, script) in [
        (&["-m"][..], "http://collector.example:4318", script),
        (&["-m", "-n"][..], "http://192.0.2.1:4318", "ip link set lo down"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.settings(&settings(url));
        let confined = Confined::with(&sandbox, kinds, script);
        confined.hook("PostToolUse", &post("c", 1));
        if kinds.len() == 1 {
            names.set_read_timeout(Some(support::sandbox::HANG)).unwrap();
            names.recv(&mut [0; 512]).expect("the sender asks for the name");
        } else {
            eventually("it is tried", || {
                let log = fs::read_to_string(sandbox.profile().join("sender.log")).ok()?;
                log.contains("export spans=1").then_some(())
            });
        }
        assert_eq!(calls(&sandbox, |words| confined.enter(words)), well, "{url}");
    }
}

fn signal(sandbox: &Sandbox, signal: rustix::process::Signal) {
    for sender in sandbox.senders() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(sender).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

#[test]
fn c3_c7_a_stopped_sender_with_its_lock_and_a_full_spool_change_no_system_call() {
    let well = calls_when_well();
    let receiver = Receiver::start();
    let sandbox = sending_to(&receiver.url());
    receiver.wait_for_spans(1);
    signal(&sandbox, rustix::process::Signal::STOP);
    assert_eq!(calls(&sandbox, plainly), well, "stopped");
    let at = |number: u64| At { realtime_ns: 1_700_000_000_000_000_000 + number, boottime_ns: number, boot: "before" };
    for number in 0..20_000 {
        sandbox.leave(at(number), number, &record("many", at(number), post_tool("many", number)));
    }
    assert_eq!(calls(&sandbox, plainly), well, "with 20,000 files");
    signal(&sandbox, rustix::process::Signal::CONT);
    let begun = Instant::now();
    loop {
        let left = fs::read_dir(sandbox.profile().join("spool/new")).unwrap().count();
        if left == 0 {
            break;
        }
        assert!(begun.elapsed() < 4 * support::sandbox::HANG, "{left} files are left");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn c3_c7_a_locked_store_changes_no_system_call() {
    let well = calls_when_well();
    let receiver = Receiver::start();
    let sandbox = sending_to(&receiver.url());
    receiver.wait_for_spans(1);
    let db = rusqlite::Connection::open(sandbox.profile().join("store.db")).unwrap();
    db.busy_timeout(Duration::from_secs(30)).unwrap();
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(calls(&sandbox, plainly), well);
}

#[test]
fn c3_c8_a_full_disk_changes_no_reply() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver.url()));
    let mount = r#"mkdir -p "$0/.local/state"; mount -t tmpfs -o size=64k,mode=700 none "$0/.local/state"
        dd if=/dev/zero of="$0/.local/state/filler" bs=4k 2>/dev/null || true"#;
    let confined = Confined::new(&sandbox, mount);
    for (event, reply) in EVENTS {
        let begun = Instant::now();
        assert_reply(&confined.hook(event, &post("c", 1)), reply);
        assert!(begun.elapsed() < AGENT_GIVES_UP, "{event}");
    }
}

#[test]
fn c3_files_that_nobody_reads_or_writes_hold_nobody_up() {
    let sandbox = Sandbox::new();
    let fifo = |name: &str| -> PathBuf {
        let path = sandbox.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        path
    };
    let (log, config) = (fifo("log"), fifo("config"));
    fs::create_dir_all(sandbox.state()).unwrap();
    let key = sandbox.state().join("hash.key");
    rustix::fs::mknodat(rustix::fs::CWD, &key, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    for (event, reply) in EVENTS {
        let begun = Instant::now();
        let mut hook = sandbox.command(&["hook", "antigravity", event]);
        hook.env("FI_HOOK_LOG_FILE", &log).env("FI_HOOK_CONFIG", &config);
        hook.env("FI_BASE_URL", "http://127.0.0.1:9").env("FI_API_KEY", "k").env("FI_SECRET_KEY", "s");
        let mut child = hook.spawn().unwrap();
        child.stdin.take().unwrap().write_all(post("c", 1).as_bytes()).unwrap();
        eventually("the hook ends", || child.try_wait().unwrap());
        assert_reply(&child.wait_with_output().unwrap(), reply);
        assert!(begun.elapsed() < AGENT_GIVES_UP, "{event}");
    }
}

#[test]
fn c3_a_stdin_that_stays_open_or_drips_ends_before_the_agent_gives_up() {
    let sandbox = Sandbox::new();
    for (event, reply) in EVENTS {
        let whole = post("c", 1);
        let (half, rest) = whole.split_at(whole.len() / 2);
        for pieces in [&[whole.as_str()][..], &[half], &[half, rest], &[""]] {
            let begun = Instant::now();
            let mut child = sandbox.command(&["hook", "antigravity", event]).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            for piece in pieces {
                stdin.write_all(piece.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(30));
            }
            let output = child.wait_with_output().unwrap();
            assert_reply(&output, reply);
            assert!(begun.elapsed() < AGENT_GIVES_UP, "{event} {pieces:?}");
            drop(stdin);
        }
    }
}

#[test]
fn c3_a_payload_that_never_ends_is_given_up_before_the_agent_gives_up() {
    let sandbox = Sandbox::new();
    let begun = Instant::now();
    let mut endless = Command::new("sh");
    endless.args(["-c", r#"{ printf '{"x":"'; cat /dev/zero; } | "$0" hook antigravity PostToolUse"#, PROGRAM]);
    sandbox.dress(&mut endless);
    assert_reply(&feed(endless.stderr(Stdio::null()).spawn().unwrap(), b""), "{}");
    assert!(begun.elapsed() < AGENT_GIVES_UP);
    eventually("it is counted", || (sandbox.counter("payload_truncated") == 1).then_some(()));
}
