//! What a hook costs, as a ratio to `sh -c true` in the same interleaved run. Medians; a quiet machine, please.
//!
//!     cargo bench --bench hook --target x86_64-unknown-linux-musl
//!
//! `BENCH_BINARY` measures another build, `BENCH_ROUNDS` more or fewer rounds, `BENCH_STATE` another folder than tmpfs.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and ends where it cannot go on")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const PAYLOAD: &[u8] = include_bytes!("../tests/payloads/PreToolUse.docs-run_command.json");

/// Ordinary code, of which arguments are made.
const CODE: &str = include_str!("../src/tree.rs");
/// Made up, in the shape of what must go.
const SECRETS: &str = "export API_TOKEN=q7Zk2mVx9Lp4Rt8Ws1Yb\ncurl -H 'Authorization: Bearer 8a7f3e2d1c0b9a8f7e6d5c4b' \
                       postgres://app:q7Zk2mVx9Lp4@db.test/shop ghp_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX\n";

struct Row {
    name: &'static str,
    command: Box<dyn Fn() -> Command>,
    payload: Vec<u8>,
    nanoseconds: Vec<u128>,
}

fn main() {
    let rounds = std::env::var("BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(500);
    let binary =
        std::env::var_os("BENCH_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_fi-hook-to-otlp").into(), PathBuf::from);
    let state = std::env::var_os("BENCH_STATE").map_or_else(|| "/dev/shm".into(), PathBuf::from);
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(state).unwrap();
    // A lock that is held looks to a hook like a sender that lives.
    let held = folder.path().join("default");
    fs::create_dir_all(&held).unwrap();
    let lock = fs::File::create(held.join("sender.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();

    let mut rows = rows(&binary, folder.path());
    for round in 0..rounds + 20 {
        for row in &mut rows {
            let taken = measure(&(row.command)(), &row.payload);
            if round >= 20 {
                row.nanoseconds.push(taken);
            }
        }
        // An inbox as it is in use: the sender empties it all the time.
        let _ = fs::remove_dir_all(held.join("spool/new"));
        fs::create_dir_all(held.join("spool/new")).unwrap();
    }
    let base = median(&rows.first().unwrap().nanoseconds);
    println!("{:<34} {:>9} {:>8} {:>9}", "", "median us", "x sh", "p95 us");
    for row in &rows {
        let (middle, late) = (median(&row.nanoseconds), percentile(&row.nanoseconds, 95));
        println!("{:<34} {:>9.0} {:>8.2} {:>9.0}", row.name, middle / 1e3, middle / base, late / 1e3);
    }
}

fn rows(binary: &Path, state: &Path) -> Vec<Row> {
    let plain = {
        let (binary, state) = (binary.to_owned(), state.to_owned());
        move |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &state);
            command.env("FI_HOOK_STATE_DIR", &state).env("ANTIGRAVITY_CONVERSATION_ID", "c").env("BIN", &binary);
            command
        }
    };
    let direct = (plain.clone(), binary.to_str().unwrap().to_owned());
    let guarded = plain.clone();
    let hook = direct.clone();
    let row = |name, command: Box<dyn Fn() -> Command>| Row {
        name,
        command,
        payload: PAYLOAD.to_vec(),
        nanoseconds: Vec::new(),
    };
    let mut rows = vec![
        row("sh -c true", {
            let plain = plain.clone();
            Box::new(move || plain("sh", &["-c", "true"]))
        }),
        row("sh -c /bin/true", Box::new(move || plain("sh", &["-c", "/bin/true || :"]))),
        row("hook, sender alive", Box::new(move || (direct.0)(&direct.1, &["hook", "antigravity", "PreToolUse"]))),
        row("hook as registered", {
            Box::new(move || guarded("sh", &["-c", "\"$BIN\" hook antigravity PreToolUse 2>/dev/null || :"]))
        }),
    ];
    for (name, capture, kilobytes, secrets) in [
        ("4 kB of arguments, capture off", "0", 4, false),
        ("4 kB of arguments, captured", "args", 4, false),
        ("4 kB with secrets, captured", "args", 4, true),
        ("16 kB of arguments, captured", "args", 16, false),
        ("64 kB of arguments, captured", "args", 64, false),
        ("64 kB with secrets, captured", "args", 64, true),
    ] {
        let hook = hook.clone();
        let command = Box::new(move || {
            let mut command = (hook.0)(&hook.1, &["hook", "antigravity", "PreToolUse"]);
            command.env("FI_HOOK_CAPTURE_CONTENT", capture);
            command
        });
        let payload = with_arguments(kilobytes * 1000, secrets);
        rows.push(Row { name, command, payload, nanoseconds: Vec::new() });
    }
    rows
}

/// A payload whose arguments have this length.
fn with_arguments(length: usize, secrets: bool) -> Vec<u8> {
    let mut text = if secrets { SECRETS.to_owned() } else { String::new() };
    text.extend(CODE.chars().cycle().take(length - text.len()));
    if secrets {
        text.push_str(SECRETS);
    }
    let arguments = serde_json::json!({"CodeContent": text, "TargetFile": "/srv/project/src/tree.rs"});
    let call = serde_json::json!({"name": "write_to_file", "args": arguments});
    serde_json::json!({"conversationId": "c", "modelName": "m", "stepIdx": 3, "toolCall": call})
        .to_string()
        .into_bytes()
}

/// From the start of the process to the end of its output and its exit.
fn measure(command: &Command, payload: &[u8]) -> u128 {
    let mut fresh = Command::new(command.get_program());
    fresh.args(command.get_args()).env_clear();
    fresh.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    fresh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let begun = Instant::now();
    let mut child = fresh.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(payload);
    child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    child.wait().unwrap();
    begun.elapsed().as_nanos()
}

fn median(values: &[u128]) -> f64 {
    percentile(values, 50)
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of milliseconds")]
fn percentile(values: &[u128], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or(0) as f64
}
