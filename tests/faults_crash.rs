//! Field reports C4 and C7: whoever is killed, and whenever, every complete event arrives once and under one id.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::chance::Chance;
use support::ledger::{assert_tools, flush, ordered, post, tool};
use support::lock::HeldLock;
use support::receiver::{Received, Receiver, Reply};
use support::sandbox::{PROGRAM, Sandbox, Until, eventually, kill};

const KILLS: usize = 200;

fn settings(receiver: &Receiver) -> String {
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_IDLE_SECONDS=0\n", receiver.url())
}

/// The ids of the spans in a request: what makes it the same batch.
fn members(request: &Received) -> BTreeSet<Vec<u8>> {
    request.spans().into_iter().map(|span| [span.trace_id, span.span_id].concat()).collect()
}

/// A batch comes again only as it was, and after an acceptance at most once for each time that a sender or the receiver
/// was cut off: a sender has one batch under way, and that is the only one whose answer it may not have recorded. Counted
/// rather than told by times, since a busy receiver reads what a sender wrote long before it was killed.
#[track_caller]
fn assert_repeats_are_owed_to(cuts: usize, receiver: &Receiver) {
    let requests = receiver.requests();
    let mut seen: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut repeated = 0;
    for (index, request) in requests.iter().enumerate() {
        let earlier: BTreeSet<_> = members(request).into_iter().map(|id| seen.insert(id, index)).collect();
        assert_eq!(earlier.len(), 1, "spans of different batches in one request");
        let Some(before) = earlier.into_iter().flatten().next().map(|before| &requests[before]) else { continue };
        assert!(ordered(before) == ordered(request), "not the same batch again");
        repeated += usize::from(before.accepted);
    }
    assert!(repeated <= cuts, "{repeated} accepted batches were sent again, and only {cuts} answers were cut off");
}

/// What the receiver does next: up, failing for a while, or gone.
fn change_weather(receiver: &mut Receiver, chance: &mut Chance) {
    match chance.below(4) {
        0 => receiver.stop(),
        1 => receiver.otherwise(Reply::status(503)),
        _ => {
            receiver.otherwise(Reply::ok().after(chance.pause(40)));
            receiver.restart();
        }
    }
}

#[test]
fn c4_c7_a_sender_killed_two_hundred_times_loses_and_doubles_nothing() {
    let mut chance = Chance::seeded(1);
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.hook("PostToolUse", post("c0", 0).as_bytes());
    let over = AtomicBool::new(false);
    let (mut expected, mut changes, mut kills) = (BTreeSet::from([tool("c0", 0)]), 0, 0);
    std::thread::scope(|scope| {
        let mut pauses = chance.branch();
        let (sandbox, over) = (&sandbox, &over);
        let playing = Until(over);
        let agent = scope.spawn(move || {
            let mut played = BTreeSet::new();
            for step in 1.. {
                if over.load(Ordering::Relaxed) {
                    return played;
                }
                let conversation = format!("c{}", pauses.below(8));
                assert!(sandbox.hook("PostToolUse", post(&conversation, step).as_bytes()).status.success());
                played.insert(tool(&conversation, step));
                std::thread::sleep(pauses.pause(30));
            }
            played
        });
        while kills < KILLS {
            std::thread::sleep(chance.pause(150));
            for sender in sandbox.senders() {
                kill(sender);
                kills += 1;
            }
            if chance.once_in(8) {
                change_weather(&mut receiver, &mut chance);
                changes += 1;
            }
        }
        drop(playing);
        expected.extend(agent.join().unwrap());
    });
    receiver.otherwise(Reply::ok());
    receiver.restart();
    flush(&sandbox);
    assert_eq!(sandbox.counter("spool_deadly"), 0);
    assert_tools(&receiver, &expected);
    assert_repeats_are_owed_to(kills + changes + 1, &receiver);
}

#[test]
fn c7_a_killed_hook_leaves_its_whole_event_or_nothing() {
    let mut chance = Chance::seeded(2);
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    let (mut finished, mut all) = (BTreeSet::new(), BTreeSet::new());
    let begun = Instant::now();
    (0..10).for_each(|step| drop(sandbox.hook("PostToolUse", post("warm", step).as_bytes())));
    // As long as two hooks take on this machine now.
    let span = u64::try_from(begun.elapsed().as_millis() / 5).unwrap().max(2);
    for step in 0..300 {
        let payload = sandbox.path().join("payload");
        fs::write(&payload, post("c", step)).unwrap();
        let mut hook = sandbox.command(&["hook", "antigravity", "PostToolUse"]);
        let mut hook = hook.stdin(fs::File::open(payload).unwrap()).spawn().unwrap();
        std::thread::sleep(chance.pause(span));
        kill(hook.id());
        let status = hook.wait().unwrap();
        assert!(status.success() || status.signal() == Some(9), "{status}");
        all.insert(tool("c", step));
        if status.success() {
            finished.insert(tool("c", step));
        }
    }
    assert!(finished.len() > 20 && finished.len() < 280, "{} of 300 finished: choose other pauses", finished.len());
    flush(&sandbox);
    all.extend((0..10).map(|step| tool("warm", step)));
    let arrived: BTreeSet<_> = support::ledger::tools(&receiver.accepted_spans()).into_keys().collect();
    assert!(arrived.is_superset(&finished), "lost: {:?}", finished.difference(&arrived));
    assert!(arrived.is_subset(&all));
    assert_tools(&receiver, &arrived);
    assert_eq!((sandbox.counter("spool_garbage"), sandbox.counter("spool_deadly")), (0, 0));
}

/// One system call of a run: its name, and the how-manieth of that name it is.
type Call = (String, usize);

/// The program under strace, with a file as its standard input.
fn traced(sandbox: &Sandbox, options: &[&str], words: &[&str], stdin: &str) -> Command {
    let payload = sandbox.path().join("payload");
    fs::write(&payload, stdin).unwrap();
    let mut traced = Command::new("strace");
    traced.args(options).arg(PROGRAM).args(words);
    sandbox.dress(&mut traced);
    traced.stdin(fs::File::open(payload).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    traced
}

/// The system calls of a run without faults, in order.
fn calls_of(sandbox: &Sandbox, words: &[&str], stdin: &str) -> Vec<Call> {
    let trace = sandbox.path().join("trace");
    let run = traced(sandbox, &["-o", trace.to_str().unwrap()], words, stdin).status();
    assert!(run.expect("strace is installed: apt-get install strace").success());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let text = fs::read_to_string(trace).unwrap();
    let names = text.lines().filter_map(|line| Some(line.split_once('(')?.0.to_owned()));
    names
        .map(|name| {
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            (name, *count)
        })
        .collect()
}

/// Runs the program until that system call, at which it is killed; false if it never comes to it.
fn killed_at(sandbox: &Sandbox, (name, count): &Call, words: &[&str], stdin: &str) -> bool {
    let inject = format!("inject={name}:signal=KILL:when={count}");
    !traced(sandbox, &["-o", "/dev/null", "-e", &inject], words, stdin).status().unwrap().success()
}

#[test]
fn c7_a_hook_killed_at_any_system_call_leaves_its_whole_event_or_nothing() {
    const HOOK: [&str; 3] = ["hook", "antigravity", "PostToolUse"];
    let (trial, receiver) = (Sandbox::new(), Receiver::start());
    // At a cold start, where the folders are made too.
    let calls = calls_of(&trial, &HOOK, &post("c", 0));
    let making = calls.iter().position(|(name, _)| name.starts_with("mkdir")).unwrap();
    let (mut kills, mut sandbox) = (0, Sandbox::new());
    for (at, call) in calls.iter().enumerate().skip(making.saturating_sub(3)) {
        // Folders that are half made are the worst to inherit, so those calls get a machine each.
        if at < making + 25 {
            sandbox = Sandbox::new();
            sandbox.settings(&settings(&receiver));
        }
        let (killed, after) = (format!("killed{at}"), format!("after{at}"));
        kills += usize::from(killed_at(&sandbox, call, &HOOK, &post(&killed, 1)));
        let output = sandbox.hook("PostToolUse", post(&after, 1).as_bytes());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "after a kill at {call:?}");
        eventually("the next event", || {
            receiver.accepted_spans().iter().any(|span| span.name == tool(&after, 1)).then_some(())
        });
        assert_eq!(sandbox.counter("spool_garbage"), 0);
    }
    assert!(kills > 15, "{kills} kills: nothing was traced");
    let arrived = support::ledger::tools(&receiver.accepted_spans()).into_keys().collect();
    assert_tools(&receiver, &arrived);
}

#[test]
fn c4_c7_a_sender_killed_at_any_system_call_sends_the_same_batch_again_or_the_next() {
    const SEND: [&str; 3] = ["send", "--profile", "default"];
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    let (mut expected, mut kills) = (BTreeSet::new(), 0);
    let mut prepare = || {
        // While the test holds the lock, hooks leave events and start nobody.
        let _lock = HeldLock::take(&sandbox.profile());
        for _ in 0..2 {
            let step = expected.len() as u64;
            sandbox.hook("PostToolUse", post("c", step).as_bytes());
            expected.insert(tool("c", step));
        }
    };
    prepare();
    let calls = calls_of(&sandbox, &SEND, "");
    let begin = calls.iter().position(|(name, _)| name == "flock").unwrap();
    assert!(calls.len() > 200, "{} calls: nothing was traced", calls.len());
    // A prime number of them, spread evenly.
    for call in calls.iter().skip(begin).step_by((calls.len() - begin).div_ceil(53)) {
        prepare();
        kills += usize::from(killed_at(&sandbox, call, &SEND, ""));
    }
    assert!(kills > 30, "{kills} kills");
    flush(&sandbox);
    assert_tools(&receiver, &expected);
    assert_repeats_are_owed_to(kills, &receiver);
}

#[test]
fn c8_a_record_over_which_senders_die_is_set_aside_and_the_rest_is_delivered() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.hook("PostToolUse", post("c", 0).as_bytes());
    receiver.wait_for_spans(1);
    sandbox.senders_end();
    // As senders leave it that died six times over this file alone.
    let lock = HeldLock::take(&sandbox.profile());
    for step in 1..=3 {
        sandbox.hook("PostToolUse", post("c", step).as_bytes());
    }
    let mut names: Vec<_> =
        fs::read_dir(sandbox.inbox()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    fs::write(sandbox.profile().join("spool/folding"), format!("1\n6 0 {}", names[1])).unwrap();
    drop(lock);
    flush(&sandbox);
    assert_tools(&receiver, &[0, 1, 3].into_iter().map(|step| tool("c", step)).collect());
    assert_eq!(sandbox.counter("spool_deadly"), 1);
    assert!(sandbox.profile().join("spool/garbage").join(&names[1]).exists(), "set aside, not removed");
}

#[test]
fn c4_nothing_hangs_on_a_parent_that_never_arrives_after_kills_at_the_end() {
    use agy_stand_in::script::{Conversation, Script, Tool, Turn};
    let mut chance = Chance::seeded(3);
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver));
    sandbox.register();
    for round in 0..8u8 {
        let id = format!("0b9d1c0f-55e1-4c3e-8a44-1f0a2c1e9b{round:02x}");
        let turn = Turn::prompt("go").tool(Tool::run_command("make test", ".")).answer();
        let script = Script::of(Conversation::new().id(id).turn(turn)).kill_after_ms(80 + chance.below(500));
        let mut agent = sandbox.agy().spawn(&script, &sandbox.path().join("report")).unwrap();
        std::thread::sleep(Duration::from_millis(chance.below(400)));
        sandbox.senders().into_iter().for_each(kill);
        let _ = agent.wait().unwrap();
        sandbox.senders().into_iter().for_each(kill);
    }
    flush(&sandbox);
    let spans = receiver.accepted_spans();
    let ids: BTreeSet<_> = spans.iter().map(|span| (span.trace_id.clone(), span.span_id.clone())).collect();
    for span in &spans {
        let parent = (span.trace_id.clone(), span.parent_span_id.clone());
        assert!(span.parent_span_id.is_empty() || ids.contains(&parent), "{} hangs in the air", span.name);
    }
    assert!(spans.iter().any(|span| span.name == "Antigravity session"));
}
