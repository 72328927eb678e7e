//! `demo` with the real binary: the whole way, with and without a destination.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::time::{Duration, Instant};

use support::receiver::{Receiver, Reply};
use support::sandbox::Sandbox;

/// Roots, turns, model calls and tools of the recording.
const SPANS: usize = 13;

struct Played {
    code: Option<i32>,
    out: String,
    err: String,
    time: Duration,
}

fn demo(sandbox: &Sandbox, environment: &[(&str, &str)]) -> Played {
    let begun = Instant::now();
    let output = sandbox.command(&["demo"]).envs(environment.iter().copied()).output().unwrap();
    Played {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        time: begun.elapsed(),
    }
}

#[track_caller]
fn assert_whole_tree(played: &Played) {
    let Played { out, err, .. } = played;
    let count = |name: &str| out.matches(name).count();
    assert_eq!(count("Antigravity session"), 1, "{out}{err}");
    assert_eq!((count("Antigravity turn"), count("Model call")), (2, 6), "{out}");
    assert_eq!((count("run_command"), count("view_file"), count("replace_file_content")), (2, 1, 1), "{out}");
    assert_eq!((count("ERROR"), count("process_exit")), (1, 1), "{out}");
}

#[test]
fn without_a_destination_it_stores_and_shows() {
    let sandbox = Sandbox::new();
    let played = demo(&sandbox, &[]);
    assert_whole_tree(&played);
    assert_eq!((played.code, played.err.as_str()), (Some(0), ""));
    assert!(played.out.contains("no destination is set"), "{}", played.out);
    assert!(played.time < Duration::from_secs(10), "{:?}", played.time);
}

#[test]
fn every_span_reaches_the_destination_of_the_settings() {
    for update in [false, true] {
        let sandbox = Sandbox::new();
        let receiver = Receiver::start();
        let lines = if update {
            format!("FI_API_KEY=k\nFI_SECRET_KEY=s\nFI_BASE_URL={}\n", receiver.url())
        } else {
            format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", receiver.url())
        };
        sandbox.settings(&lines);
        let played = demo(&sandbox, &[]);
        assert_whole_tree(&played);
        assert_eq!((played.code, played.err.as_str()), (Some(0), ""));
        assert!(played.out.contains("13 spans accepted by "), "{}", played.out);
        let mut ids: Vec<_> = receiver.accepted_spans().into_iter().map(|span| (span.trace_id, span.span_id)).collect();
        let sent = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), SPANS);
        assert!(update || sent == SPANS, "sent once");
        let trace: String = ids.first().unwrap().0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(played.out.contains(&format!("trace {trace}")), "{}", played.out);
    }
}

#[test]
fn the_destination_may_stand_in_the_environment() {
    let sandbox = Sandbox::new();
    let receiver = Receiver::start();
    let played = demo(&sandbox, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url())]);
    assert_whole_tree(&played);
    assert_eq!(played.code, Some(0), "{}", played.err);
    assert_eq!(receiver.accepted_spans().len(), SPANS);
}

#[test]
fn a_destination_that_does_not_take_the_spans_is_said_in_plain_words() {
    let refusing = Receiver::start();
    refusing.otherwise(Reply::status(401));
    let rejecting = Receiver::start();
    rejecting.otherwise(Reply::partial(1, "too old"));
    for (url, why) in [
        (refusing.url(), "accepted 0 of 13 spans"),
        (rejecting.url(), "did not take all of the 13 spans"),
        ("http://127.0.0.1:9".to_owned(), "refused"),
        ("nonsense".to_owned(), "the spans wait in the store"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={url}\n"));
        let played = demo(&sandbox, &[]);
        assert_whole_tree(&played);
        assert_eq!(played.code, Some(1), "{url}");
        assert!(played.err.contains(why), "{url}: {}", played.err);
        assert!(played.time < Duration::from_secs(10), "{url}: {:?}", played.time);
    }
}

#[test]
fn what_keeps_the_events_away_is_said_before_or_at_the_first_hook() {
    for (name, value, why) in [
        ("FI_HOOK_DISABLED", "1", "FI_HOOK_DISABLED switches every hook off"),
        ("FI_HOOK_SURFACES", "ide", "FI_HOOK_SURFACES leaves out cli"),
        ("FI_HOOK_STATE_DIR", "/proc/no", "FI_HOOK_STATE_DIR"),
    ] {
        let sandbox = Sandbox::new();
        let played = demo(&sandbox, &[(name, value)]);
        assert_eq!(played.code, Some(1), "{name}");
        assert!(played.err.contains(why), "{name}: {}", played.err);
        assert!(played.time < Duration::from_secs(3), "{name}: {:?}", played.time);
        assert!(!sandbox.state().exists(), "{name}");
    }
}

#[test]
fn excluded_folders_and_content_settings_do_not_keep_the_demo_away() {
    let sandbox = Sandbox::new();
    sandbox.settings("FI_HOOK_EXCLUDE_PATHS=/home,/\n");
    let played = demo(&sandbox, &[]);
    assert_whole_tree(&played);
    assert_eq!(played.code, Some(0), "{}", played.err);
}
