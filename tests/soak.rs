//! Field reports C4, C6 and C7 all at once: fifty conversations of random tools, played by agents side by side, while the
//! receiver fails in every way there is and senders are killed. What was played is what arrived: no span lost, none under
//! two ids, none changed, each under its parent.
//!
//! Runs a few seconds, or SOAK_SECONDS; SEED plays the same scripts again.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failure here is a failed test")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agy_stand_in::report::ToolResult;
use agy_stand_in::script::{Conversation, Interleave, ModelCall, Schedule, Script, Tool, Turn};
use opentelemetry_proto::tonic::trace::v1::Span;
use support::chance::Chance;
use support::receiver::{Manner, Receiver, Reply};
use support::sandbox::{Sandbox, Until, kill};

/// Conversations that are played however little time there is.
const CONVERSATIONS: usize = 50;
/// Agents at the same time.
const AGENTS: usize = 6;

/// How often each span is there: `name < parent's name: status`.
type Census = BTreeMap<String, usize>;

fn note(census: &mut Census, span: &str, parent: &str, status: i32) {
    *census.entry(format!("{span} < {parent}: {status}")).or_default() += 1;
}

/// A tool of any kind, which fails now and then.
fn any_tool(chance: &mut Chance, expected: &mut Census) -> Tool {
    let name = ["run_command", "view_file", "grep_search", "replace_file_content"][chance.below(4) as usize];
    let tool = Tool::new(name).run_ms(chance.below(20));
    let fails = chance.once_in(4);
    note(expected, name, "Antigravity turn", if fails { 2 } else { 1 });
    if fails { tool.fails("exit status 2") } else { tool }
}

/// A conversation, and the spans it must become.
fn any_conversation(chance: &mut Chance) -> (String, Conversation, Census) {
    let id = format!("{:08x}-0000-4000-8000-{:012x}", chance.below(1 << 32), chance.below(1 << 48));
    let mut expected = Census::new();
    let mut conversation = Conversation::new().id(&id);
    note(&mut expected, "Antigravity session", "-", 1);
    for _ in 0..=chance.below(3) {
        let mut turn = Turn::prompt("go on").pause_ms(chance.below(60));
        note(&mut expected, "Antigravity turn", "Antigravity session", 1);
        for _ in 0..chance.below(4) {
            let mut call = ModelCall::new().think_ms(chance.below(20));
            if chance.once_in(3) {
                let schedule = [Schedule::Threads, Schedule::Nested, Schedule::Queued][chance.below(3) as usize];
                let tools = (0..2 + chance.below(3)).map(|_| any_tool(chance, &mut expected)).collect();
                call = call.parallel(schedule, tools);
            } else {
                call = call.tool(any_tool(chance, &mut expected));
            }
            note(&mut expected, "Model call", "Antigravity turn", 1);
            turn = turn.call(call);
        }
        note(&mut expected, "Model call", "Antigravity turn", 1);
        conversation = conversation.turn(turn.answer());
    }
    (id, conversation, expected)
}

/// Plays conversations until the time is over and enough were played; returns what must arrive, by trace id.
fn play(sandbox: &Sandbox, mut chance: Chance, played: &AtomicUsize, end: Instant) -> BTreeMap<String, Census> {
    let mut expected = BTreeMap::new();
    while played.load(Ordering::Relaxed) < CONVERSATIONS || Instant::now() < end {
        let together = 1 + chance.below(3);
        let interleave =
            [Interleave::Sequential, Interleave::Alternate, Interleave::Concurrent][chance.below(3) as usize];
        let mut script = Script::default().interleave(interleave);
        for _ in 0..together {
            let (id, conversation, census) = any_conversation(&mut chance);
            script = script.with(conversation);
            expected.insert(id.replace('-', ""), census);
        }
        let report = sandbox.agy().run(&script).unwrap().report;
        assert_eq!((report.faults().count(), report.totals.as_ref().map(|totals| totals.timeouts)), (0, Some(0)));
        assert!(report.tools.iter().all(|tool| matches!(tool.result, ToolResult::Ran)), "the agent was disturbed");
        played.fetch_add(together as usize, Ordering::Relaxed);
    }
    expected
}

fn settings(receiver: &Receiver) -> String {
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_TIMEOUT=1\n", receiver.url())
}

/// The receiver's next mood.
fn change_weather(sandbox: &Sandbox, receiver: &mut Receiver, chance: &mut Chance) {
    receiver.restart();
    let mood = match chance.below(12) {
        0 => Reply::status(503),
        1 => Reply::status(429).header("retry-after", "1"),
        2 => Reply::status(401),
        3 => Reply::status(400).body(r#"{"detail":"database is locked"}"#),
        4 => Reply::ok().manner(Manner::Hang),
        5 => Reply::ok().manner(Manner::Reset),
        6 => Reply::ok().body("half").manner(Manner::ResetInBody),
        7 => {
            receiver.stop();
            Reply::ok()
        }
        _ => Reply::ok().after(chance.pause(50)),
    };
    receiver.otherwise(mood);
    // As if somebody had corrected something: what waits is tried at once, however long it had been failing.
    if chance.once_in(2) {
        sandbox.settings(&settings(receiver));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What arrived, by trace id; panics if a span came under the same id with other content, or without its parent.
fn arrived(receiver: &Receiver) -> BTreeMap<String, Census> {
    let mut spans: BTreeMap<(String, Vec<u8>), Span> = BTreeMap::new();
    for span in receiver.accepted_spans() {
        let id = (hex(&span.trace_id), span.span_id.clone());
        if let Some(before) = spans.insert(id, span.clone()) {
            assert_eq!(before, span, "the same id again, but not the same span");
        }
    }
    let mut found: BTreeMap<String, Census> = BTreeMap::new();
    for ((trace, _), span) in &spans {
        let parent = match spans.get(&(trace.clone(), span.parent_span_id.clone())) {
            Some(parent) => parent.name.as_str(),
            None if span.parent_span_id.is_empty() => "-",
            None => "nobody",
        };
        let status = span.status.as_ref().map_or(0, |status| status.code);
        note(found.entry(trace.clone()).or_default(), &span.name, parent, status);
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
    }
    found
}

#[test]
fn c4_c6_c7_what_was_played_is_what_arrived() {
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let mut chance = Chance::seeded(6);
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.register();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (played, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let expected: Mutex<BTreeMap<String, Census>> = Mutex::default();
    std::thread::scope(|scope| {
        let playing = Until(&over);
        let agents: Vec<_> = (0..AGENTS)
            .map(|_| {
                let branch = chance.branch();
                let (sandbox, played, expected) = (&sandbox, &played, &expected);
                scope.spawn(move || {
                    let census = play(sandbox, branch, played, end);
                    expected.lock().unwrap().extend(census);
                })
            })
            .collect();
        let (mut faults, over, sandbox, receiver) = (chance.branch(), &over, &sandbox, &mut receiver);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(faults.pause(800));
                match faults.below(3) {
                    0 => sandbox.senders().into_iter().for_each(kill),
                    _ => change_weather(sandbox, receiver, &mut faults),
                }
            }
        });
        let done: Vec<_> = agents.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        drop(playing);
        assert!(done.iter().all(Result::is_ok), "an agent failed");
    });
    receiver.otherwise(Reply::ok());
    receiver.restart();
    // What was refused as one by one is tried again with each of them.
    let mut words = String::new();
    let delivered = (0..10).any(|_| {
        let output = sandbox.command(&["flush", "--timeout", "30"]).output().unwrap();
        words = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success()
    });
    assert!(delivered, "{words}");
    let (expected, arrived) = (expected.into_inner().unwrap(), arrived(&receiver));
    assert!(expected.len() >= CONVERSATIONS);
    let traces = |found: &BTreeMap<String, Census>| found.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(traces(&arrived), traces(&expected));
    for (trace, census) in &expected {
        assert_eq!(arrived.get(trace), Some(census), "trace {trace}");
    }
    eprintln!("{} conversations, {} requests", expected.len(), receiver.requests().len());
}
