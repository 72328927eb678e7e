//! Field report C12: clocks that are stepped, that stand still in a suspended machine, that begin anew at a boot. Lengths
//! come from the steady clock, no end is before its start, and what was bent is marked.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failure here is a failed test")]

mod support;

use std::collections::BTreeMap;

use fi_hook_to_otlp::event::Action;
use fi_hook_to_otlp::sys;
use opentelemetry_proto::tonic::trace::v1::Span;
use support::crafted::{At, call, post_tool, pre_tool, record, stop};
use support::ledger::{flush, post, tool};
use support::receiver::Receiver;
use support::sandbox::{Sandbox, eventually};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
/// A wall clock in the past, so that sessions are over by idleness when they are folded.
const WALL: u64 = 1_750_000_000 * SECOND;

fn settings(receiver: &Receiver) -> String {
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_IDLE_SECONDS=0\n", receiver.url())
}

/// One turn with one tool, its five events at these clocks: (boot, BOOTTIME, REALTIME).
fn turn(times: [(&str, u64, u64); 5]) -> BTreeMap<String, Span> {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    let events = [
        Action::PreInvocation(call(0, 0)),
        pre_tool("c", 1),
        post_tool("c", 1),
        Action::PostInvocation(call(0, 0)),
        stop(),
    ];
    for ((boot, boottime_ns, realtime_ns), (action, number)) in times.into_iter().zip(events.into_iter().zip(0..)) {
        let at = At { realtime_ns, boottime_ns, boot };
        sandbox.leave(at, number, &record("c", at, action));
    }
    flush(&sandbox);
    let spans: BTreeMap<_, _> = receiver.accepted_spans().into_iter().map(|span| (span.name.clone(), span)).collect();
    // A session whose last event lies in the future is not over yet.
    let session = spans.get("Antigravity session").unwrap_or(&spans["Antigravity turn"]);
    assert!(spans.contains_key(&tool("c", 1)) && spans.contains_key("Model call"), "{:?}", spans.keys());
    for span in spans.values() {
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
        assert!(session.start_time_unix_nano <= span.start_time_unix_nano, "{span:?}");
        assert!(session.end_time_unix_nano >= span.end_time_unix_nano, "{span:?}");
    }
    spans
}

fn length(spans: &BTreeMap<String, Span>, name: &str) -> u64 {
    spans[name].end_time_unix_nano - spans[name].start_time_unix_nano
}

fn clamped(spans: &BTreeMap<String, Span>) -> bool {
    spans.values().flat_map(|span| &span.attributes).any(|attribute| attribute.key == "antigravity.clamped")
}

#[test]
fn c12_a_stepped_wall_clock_changes_no_length() {
    for step in [-(HOUR as i64), HOUR as i64, 365 * 24 * HOUR as i64, -(WALL as i64) + 1] {
        let wall = |seconds: u64| (WALL + seconds * SECOND).saturating_add_signed(step);
        let at = |seconds: u64| 100 * SECOND + seconds * SECOND;
        let spans = turn([
            ("a", at(0), WALL),
            ("a", at(1), WALL + SECOND),
            ("a", at(3), wall(3)),
            ("a", at(4), wall(4)),
            ("a", at(5), wall(5)),
        ]);
        let lengths = [tool("c", 1), "Model call".into(), "Antigravity turn".into()].map(|name| length(&spans, &name));
        assert_eq!(lengths, [2 * SECOND, 4 * SECOND, 5 * SECOND], "step {step}");
        assert_eq!(spans["Antigravity turn"].start_time_unix_nano, WALL, "step {step}");
        assert!(!clamped(&spans), "step {step}");
    }
}

#[test]
fn c12_a_suspended_machine_counts_the_time_it_slept() {
    let at = |seconds: u64| ("a", 100 * SECOND + seconds * SECOND, WALL + seconds * SECOND);
    let spans = turn([at(0), at(1), at(8 * 3600), at(8 * 3600 + 1), at(8 * 3600 + 2)]);
    assert_eq!(length(&spans, &tool("c", 1)), 8 * HOUR - SECOND);
    assert!(!clamped(&spans));
}

#[test]
fn c12_a_reboot_in_mid_turn_goes_on_by_the_wall_clock_and_a_lagging_one_is_marked() {
    let before = |seconds: u64| ("a", 5000 * SECOND + seconds * SECOND, WALL + seconds * SECOND);
    let after = |seconds: u64, wall: u64| ("b", 20 * SECOND + seconds * SECOND, wall + seconds * SECOND);
    // The wall clock went on.
    let wall = WALL + 600 * SECOND;
    let spans = turn([before(0), before(1), after(0, wall), after(1, wall), after(2, wall)]);
    assert_eq!(length(&spans, &tool("c", 1)), 599 * SECOND);
    assert_eq!(length(&spans, "Antigravity turn"), 602 * SECOND);
    assert!(!clamped(&spans));
    // It lags behind the last event before.
    let wall = WALL + SECOND / 2;
    let spans = turn([before(0), before(1), after(0, wall), after(1, wall), after(2, wall)]);
    assert_eq!(length(&spans, &tool("c", 1)), 0);
    assert_eq!(length(&spans, "Antigravity turn"), 3 * SECOND);
    assert!(clamped(&spans));
}

#[test]
fn c12_clocks_that_cannot_be_read_give_sound_spans() {
    turn([("", 0, 0); 5]);
    turn([("", i64::MAX as u64, i64::MAX as u64); 5]);
    turn([("a", 0, 0), ("a", i64::MAX as u64, i64::MAX as u64), ("a", 0, 1), ("b", 7, 0), ("", 0, i64::MAX as u64)]);
}

fn sql(sandbox: &Sandbox, text: &str) {
    let db = rusqlite::Connection::open(sandbox.profile().join("store.db")).unwrap();
    db.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    db.execute_batch(text).unwrap();
}

/// A machine on which an event waits for a receiver that was down.
fn waiting() -> (Sandbox, Receiver) {
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    receiver.stop();
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    eventually("a failure is recorded", || {
        let log = std::fs::read_to_string(sandbox.profile().join("sender.log")).ok()?;
        log.contains(" retry ").then_some(())
    });
    sandbox.kill_sender();
    receiver.restart();
    (sandbox, receiver)
}

#[test]
fn c12_a_wall_clock_set_back_does_not_put_off_the_next_try_for_ever() {
    let (sandbox, receiver) = waiting();
    let later = sys::clocks().realtime_ns + 400 * 24 * HOUR;
    sql(&sandbox, &format!("UPDATE delivery SET next_try_ns = {later}; UPDATE batches SET next_try_ns = {later}"));
    sandbox.wake();
    receiver.wait_for_spans(1);
}

#[test]
fn c12_a_wall_clock_that_is_put_right_makes_nothing_too_old() {
    let (sandbox, receiver) = waiting();
    // As if it had been recorded while the wall clock was thirty days behind.
    let behind = 30 * 24 * HOUR;
    sql(
        &sandbox,
        &format!(
            "UPDATE spans SET queued_ns = queued_ns - {behind};
             UPDATE delivery SET wall_offset_ns = wall_offset_ns - {behind}, next_try_ns = 0"
        ),
    );
    sandbox.wake();
    receiver.wait_for_spans(1);
    assert_eq!(sandbox.counter("expired_max_days"), 0);
}
