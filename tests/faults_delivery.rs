//! Field reports C5 and C6: every answer of a receiver with the real binary. For each: what is kept, when it is tried
//! again, and the word that machines find in the store. Whatever was kept arrives once the receiver is well.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fi_hook_to_otlp::store::{DeliveryState, Store};
use support::certificates::Authority;
use support::ledger::{assert_tools, flush, post, tool};
use support::lock::HeldLock;
use support::receiver::{Manner, Received, Receiver, Reply, Speaks};
use support::sandbox::{Sandbox, eventually};

/// What becomes of a span, and when it is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It is settled.
    Settled,
    /// It is kept and may be tried again at once.
    Now,
    /// It is kept and tried again within so many seconds, but not at once.
    Within(u64),
    /// It is kept and tried again after so many seconds, give or take two.
    After(u64),
}

struct Case {
    reply: Reply,
    outcome: &'static str,
    reason: &'static str,
    then: Then,
}

fn case(reply: Reply, outcome: &'static str, reason: &'static str, then: Then) -> Case {
    Case { reply, outcome, reason, then }
}

fn settings(receiver: &Receiver) -> String {
    let protocol = if receiver.speaks() == Speaks::Grpc { "grpc" } else { "http/protobuf" };
    format!(
        "OTEL_EXPORTER_OTLP_ENDPOINT={}\nOTEL_EXPORTER_OTLP_PROTOCOL={protocol}\nFI_HOOK_TIMEOUT=1\n",
        receiver.url()
    )
}

fn now_ns() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

/// State of delivery and number of spans that wait, once there was an answer.
fn outcome(sandbox: &Sandbox) -> (DeliveryState, u64) {
    eventually("an answer is recorded", || {
        let store = Store::open_read_only(&sandbox.profile()).ok()??;
        let state = store.delivery().ok()?;
        state.outcome.is_some().then(|| (state, store.waiting().unwrap().spans))
    })
}

#[track_caller]
fn assert_then(then: Then, state: &DeliveryState, waiting: u64, context: &str) {
    assert_eq!(waiting, u64::from(then != Then::Settled), "{context}: kept");
    let left = state.next_try_ns.saturating_sub(now_ns()) / 1_000_000_000;
    match then {
        Then::Settled | Then::Now => assert_eq!(state.next_try_ns, 0, "{context}"),
        Then::Within(seconds) => assert!(state.next_try_ns > 0 && left <= seconds, "{context}: {left} s"),
        Then::After(seconds) => {
            assert!((seconds.saturating_sub(8)..=seconds).contains(&left), "{context}: {left} s");
        }
    }
}

/// Plays each case on a machine of its own; then the receiver is well, and what was kept arrives.
fn play(receiver: &Receiver, cases: Vec<Case>) {
    for Case { reply, outcome: expected, reason, then } in cases {
        let context = format!("{reply:?}");
        let sandbox = Sandbox::new();
        sandbox.settings(&settings(receiver));
        receiver.clear();
        receiver.script([reply]);
        // Only the first answer counts here: hold the sender after it.
        sandbox.hook("PostToolUse", post("c", 1).as_bytes());
        let (state, waiting) = outcome(&sandbox);
        sandbox.senders().into_iter().for_each(support::sandbox::kill);
        if receiver.requests().len() > 1 {
            // It was tried again before we could look: then the first answer is in the log only.
            let log = std::fs::read_to_string(sandbox.profile().join("sender.log")).unwrap();
            assert!(log.contains(&format!(" {expected}")), "{context}: {log}");
        } else {
            let words = (state.outcome.as_deref(), state.reason.as_deref());
            assert_eq!(words, (Some(expected), Some(reason)), "{context}");
            assert_then(then, &state, waiting, &context);
        }
        sandbox.kill_sender();
        flush(&sandbox);
        let taken = if then == Then::Settled { 1 } else { 2 };
        assert!(receiver.requests().len() >= taken, "{context}: not sent again");
        let spans: Vec<_> = receiver.requests().iter().flat_map(Received::spans).collect();
        let ids: BTreeSet<_> = spans.into_iter().map(|span| span.span_id).collect();
        assert_eq!(ids.len(), 1, "{context}: one span under one id");
        let store = Store::open_read_only(&sandbox.profile()).unwrap().unwrap();
        assert_eq!(store.waiting().unwrap().spans, 0, "{context}");
        assert_eq!(store.counters().unwrap().get("set_aside_refused"), None, "{context}");
    }
}

#[test]
fn c5_c6_every_http_status() {
    let status = |code: u16| Reply::status(code);
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(900));
    play(
        &Receiver::start(),
        vec![
            case(status(200), "delivered", "delivered", Then::Settled),
            case(status(202), "delivered", "delivered", Then::Settled),
            case(status(204), "delivered", "delivered", Then::Settled),
            case(status(301).header("location", "/x"), "configuration", "redirect", Then::Within(2)),
            case(status(307).header("location", "/x"), "configuration", "redirect", Then::Within(2)),
            case(status(308).header("location", "/x"), "configuration", "redirect", Then::Within(2)),
            case(status(400), "refused", "bad_request", Then::Now),
            case(status(401), "configuration", "unauthorized", Then::Within(2)),
            case(status(403), "configuration", "forbidden", Then::Within(2)),
            case(status(404), "configuration", "not_found", Then::Within(2)),
            case(status(405), "configuration", "method_not_allowed", Then::Within(2)),
            case(status(413), "refused", "too_large", Then::Now),
            case(status(415), "configuration", "unsupported_media_type", Then::Within(2)),
            case(status(418), "configuration", "unexpected_status", Then::Within(2)),
            case(status(422), "refused", "unprocessable", Then::Now),
            case(status(429), "retry", "too_many_requests", Then::Within(1)),
            case(status(429).header("retry-after", "100"), "retry", "too_many_requests", Then::After(100)),
            case(status(503).header("retry-after", &date), "retry", "unavailable", Then::After(900)),
            case(status(503).header("retry-after", "99999"), "retry", "unavailable", Then::After(3600)),
            case(status(500), "configuration", "server_error", Then::Within(2)),
            case(status(502), "retry", "unavailable", Then::Within(1)),
            case(status(503), "retry", "unavailable", Then::Within(1)),
            case(status(504), "retry", "unavailable", Then::Within(1)),
        ],
    );
}

#[test]
fn c5_c6_answers_that_are_none() {
    let page = Reply::status(200).header("content-type", "text/html").body("<!doctype html><title>Welcome</title>");
    let ok = Reply::ok;
    play(
        &Receiver::start(),
        vec![
            case(page, "configuration", "not_otlp", Then::Within(2)),
            case(ok().body(&b"\xff\xff\xff garbage"[..]), "configuration", "not_otlp", Then::Within(2)),
            case(ok().manner(Manner::Hang), "retry", "timeout", Then::Within(1)),
            case(ok().manner(Manner::Reset), "retry", "connection_failed", Then::Within(1)),
            case(ok().body("half").manner(Manner::ResetInBody), "retry", "connection_failed", Then::Within(1)),
            case(ok().manner(Manner::Drip(Duration::from_millis(400))), "retry", "timeout", Then::Within(1)),
            case(Reply::partial(0, "a warning"), "partial", "partial_success", Then::Settled),
            case(Reply::partial(1, "too old"), "partial", "partial_success", Then::Settled),
        ],
    );
}

#[test]
fn c5_c6_every_grpc_status() {
    let status = |code: i32| Reply::grpc(code, "words of the receiver");
    let asked = |code| status(code).retry_info(Duration::from_secs(100));
    play(
        &Receiver::start_grpc(),
        vec![
            case(Reply::ok(), "delivered", "delivered", Then::Settled),
            case(Reply::partial(1, "too old"), "partial", "partial_success", Then::Settled),
            case(status(1), "retry", "cancelled", Then::Within(1)),
            case(status(2), "configuration", "unexpected_status", Then::Within(2)),
            case(status(3), "refused", "invalid_argument", Then::Now),
            case(status(4), "retry", "deadline_exceeded", Then::Within(1)),
            case(status(5), "configuration", "not_found", Then::Within(2)),
            case(status(7), "configuration", "permission_denied", Then::Within(2)),
            case(status(8), "refused", "resource_exhausted", Then::Now),
            case(asked(8), "retry", "resource_exhausted", Then::After(100)),
            case(status(10), "retry", "aborted", Then::Within(1)),
            case(status(11), "retry", "out_of_range", Then::Within(1)),
            case(status(12), "configuration", "unimplemented", Then::Within(2)),
            case(status(13), "configuration", "internal", Then::Within(2)),
            case(status(14), "retry", "unavailable", Then::Within(1)),
            case(asked(14), "retry", "unavailable", Then::After(100)),
            case(status(15), "retry", "data_loss", Then::Within(1)),
            case(status(16), "configuration", "unauthenticated", Then::Within(2)),
            case(Reply::ok().manner(Manner::Hang), "retry", "timeout", Then::Within(1)),
        ],
    );
}

#[test]
fn c5_without_a_secure_connection_or_an_address_spans_wait_for_other_settings() {
    let (ours, others) = (Authority::new(), Authority::new());
    let mut cases = vec![("http://nosuch.invalid:4318".to_owned(), String::new(), "dns", None)];
    for speaks in [Speaks::Http, Speaks::Grpc] {
        for (years, authority, reason) in [(80, None, "tls"), (80, Some(&others), "tls"), (2, Some(&ours), "tls")] {
            let receiver = Receiver::start_with(speaks, Some(ours.issue(&["127.0.0.1"], years).server()));
            let certificate = authority.map_or_else(String::new, |authority| {
                format!("OTEL_EXPORTER_OTLP_CERTIFICATE={}\n", authority.file().display())
            });
            cases.push((receiver.url(), certificate, reason, Some(receiver)));
        }
    }
    for (url, certificate, reason, server) in cases {
        let protocol = match &server {
            Some(server) if server.speaks() == Speaks::Grpc => "grpc",
            _ => "http/protobuf",
        };
        let (sandbox, well) = (Sandbox::new(), Receiver::start());
        sandbox.settings(&format!(
            "OTEL_EXPORTER_OTLP_ENDPOINT={url}\nOTEL_EXPORTER_OTLP_PROTOCOL={protocol}\n{certificate}"
        ));
        sandbox.hook("PostToolUse", post("c", 1).as_bytes());
        let (state, waiting) = outcome(&sandbox);
        let words = (state.outcome.as_deref(), state.reason.as_deref());
        assert_eq!(words, (Some("configuration"), Some(reason)), "{url} {certificate} {state:?}");
        assert_eq!(waiting, 1, "{url} {certificate}");
        assert!(server.is_none_or(|server| server.requests().is_empty()));
        // Corrected settings count at once for what waits.
        sandbox.settings(&settings(&well));
        well.wait_for_spans(1);
        assert_tools(&well, &BTreeSet::from([tool("c", 1)]));
    }
}

/// Leaves `count` events while nobody sends, so that they go out as one batch.
fn queue(sandbox: &Sandbox, count: u64) -> BTreeSet<String> {
    let _lock = HeldLock::take(&sandbox.profile());
    (0..count).for_each(|step| drop(sandbox.hook("PostToolUse", post("c", step).as_bytes())));
    (0..count).map(|step| tool("c", step)).collect()
}

fn future_agi(receiver: &Receiver) -> String {
    format!("FI_BASE_URL={}\nFI_API_KEY=k\nFI_SECRET_KEY=s\nFI_HOOK_SESSION_SPAN=once\n", receiver.url())
}

#[test]
fn c6_a_passing_fault_that_answers_400_sets_nothing_aside() {
    // All requests for a while, and every second one: then halves are accepted between refusals.
    for every_second in [false, true] {
        let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
        sandbox.settings(&future_agi(&receiver));
        let expected = queue(&sandbox, 16);
        let mut requests = 0;
        receiver.judge(move |_| {
            requests += 1;
            let faulty = requests <= 11 && (!every_second || requests % 2 == 1);
            faulty.then(|| Reply::status(400).body(r#"{"detail":"database is locked"}"#))
        });
        // Each one tries at once what a sender would try after a pause.
        let impatient = || sandbox.command(&["flush", "--timeout", "2"]).output().unwrap().status.success();
        assert!((0..10).any(|_| impatient()), "every second: {every_second}");
        assert_tools(&receiver, &expected);
        assert_eq!(sandbox.counter("set_aside_refused"), 0, "every second: {every_second}");
    }
}

#[test]
fn c6_one_span_that_is_always_refused_stops_no_other_and_is_set_aside_after_some_tries() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&future_agi(&receiver));
    let mut expected = queue(&sandbox, 40);
    receiver.judge(|spans| spans.iter().any(|span| span.name == tool("c", 17)).then(|| Reply::status(422)));
    expected.remove(&tool("c", 17));
    let mut tries = 0;
    loop {
        let output = sandbox.command(&["flush", "--timeout", "2"]).output().unwrap();
        assert_tools(&receiver, &expected);
        if output.status.success() {
            break;
        }
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let why = complaint.contains("refused") || complaint.contains("unprocessable");
        assert!(complaint.contains("1 spans are left") && why, "{complaint}");
        tries += 1;
        assert!(tries < 8, "never set aside");
    }
    assert!(tries > 0, "set aside at the first refusal");
    assert_eq!(sandbox.counter("set_aside_refused"), 1);
    let refused = sandbox.spans("c").into_iter().filter(|stored| stored.outcome.as_deref() == Some("refused"));
    assert_eq!(refused.map(|stored| stored.span.name).collect::<Vec<_>>(), [tool("c", 17)], "kept to be looked at");
}

#[test]
fn c6_a_partial_success_is_counted_and_not_sent_again() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    let expected = queue(&sandbox, 5);
    receiver.otherwise(Reply::partial(1, "too old"));
    flush(&sandbox);
    assert_tools(&receiver, &expected);
    assert_eq!(receiver.accepted_spans().len(), 5, "nothing comes again");
    assert_eq!(sandbox.counter("rejected_by_receiver"), receiver.requests().len() as u64);
    let store = Store::open_read_only(&sandbox.profile()).unwrap().unwrap();
    assert!(store.delivery().unwrap().message.unwrap().contains("too old"));
}
