//! Field reports C4, C7 and C8 under load: many hooks at once, many senders at once, kills in between.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use fi_hook_to_otlp::event::{Action, Agent};
use fi_hook_to_otlp::sys;
use support::chance::Chance;
use support::crafted::{At, call, post_tool, record_by, stop};
use support::ledger::{assert_tools, flush, post, tool};
use support::lock::HeldLock;
use support::receiver::Receiver;
use support::sandbox::{Sandbox, Until, eventually, kill};

/// Starts a hook whose payload is there at once, so that all of them run at the same time.
fn start(sandbox: &Sandbox, environment: &[(&str, String)], conversation: &str, step: u64) -> Child {
    let payload = sandbox.path().join(format!("payload-{conversation}-{step}"));
    fs::write(&payload, post(conversation, step)).unwrap();
    let mut hook = sandbox.command(&["hook", "antigravity", "PostToolUse"]);
    hook.envs(environment.iter().map(|(name, value)| (name, value)));
    let hook = hook.stdin(fs::File::open(&payload).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = hook.spawn().unwrap();
    fs::remove_file(payload).unwrap();
    child
}

/// Kills the senders of a sandbox now and then while `work` runs; returns how many.
fn killing_senders<T>(sandbox: &Sandbox, seed: u64, work: impl FnOnce() -> T) -> (T, usize) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let working = Until(&over);
        let killer = scope.spawn(|| {
            let (mut chance, mut kills) = (Chance::seeded(seed), 0);
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(chance.pause(300));
                let senders = sandbox.senders();
                kills += senders.len();
                senders.into_iter().for_each(kill);
            }
            kills
        });
        let done = work();
        drop(working);
        (done, killer.join().unwrap())
    })
}

#[test]
fn c7_two_hundred_hooks_at_once_ten_times_over_while_senders_are_killed() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", receiver.url()));
    let (expected, kills) = killing_senders(&sandbox, 4, || {
        let mut expected = BTreeSet::new();
        for round in 0..10 {
            let hooks: Vec<_> = (0..200)
                .map(|hook| {
                    let (conversation, step) = (format!("race{}", hook % 20), round * 200 + hook);
                    expected.insert(tool(&conversation, step));
                    start(&sandbox, &[], &conversation, step)
                })
                .collect();
            for mut hook in hooks {
                assert!(hook.wait().unwrap().success());
            }
        }
        expected
    });
    assert!(kills >= 5, "{kills} kills");
    flush(&sandbox);
    assert_eq!(expected.len(), 2000);
    assert_tools(&receiver, &expected);
    assert_eq!((sandbox.counter("spool_deadly"), sandbox.counter("spool_garbage")), (0, 0));
}

#[test]
fn c7_two_profiles_never_mix_while_senders_are_killed() {
    let (sandbox, one, two) = (Sandbox::new(), Receiver::start(), Receiver::start());
    let environment = |name: &str, receiver: &Receiver| {
        let word = |name, value: &str| (name, value.to_owned());
        [word("FI_BASE_URL", &receiver.url()), word("FI_API_KEY", name), word("FI_SECRET_KEY", "s")]
    };
    let sides = [("one", environment("one", &one), &one), ("two", environment("two", &two), &two)];
    let ((), kills) = killing_senders(&sandbox, 5, || {
        for round in 0..12 {
            let hooks = (0..20).flat_map(|hook| {
                let step = round * 20 + hook;
                sides.iter().map(|(name, environment, _)| start(&sandbox, environment, name, step)).collect::<Vec<_>>()
            });
            for mut hook in hooks.collect::<Vec<_>>() {
                assert!(hook.wait().unwrap().success());
            }
        }
    });
    assert!(kills >= 2, "{kills} kills");
    for (name, environment, receiver) in &sides {
        let mut flush = sandbox.command(&["flush", "--timeout", "60"]);
        flush.envs(environment.iter().map(|(name, value)| (name, value)));
        // That the other profile has something left is no failure here.
        let _ = flush.output().unwrap();
        assert_tools(receiver, &(0..240).map(|step| tool(name, step)).collect());
        assert!(receiver.requests().iter().all(|request| request.header("x-api-key") == Some(name)));
    }
}

#[test]
fn c8_of_senders_that_race_for_the_lock_one_works() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_IDLE_SECONDS=0\n", receiver.url()));
    let mut expected = BTreeSet::new();
    for round in 0..5 {
        let lock = HeldLock::take(&sandbox.profile());
        for step in round * 10..round * 10 + 10 {
            sandbox.hook("PostToolUse", post("c", step).as_bytes());
            expected.insert(tool("c", step));
        }
        drop(lock);
        let senders: Vec<_> = (0..20)
            .map(|_| {
                let mut sender = sandbox.command(&["send", "--profile", "default"]);
                sender.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
            })
            .collect();
        for mut sender in senders {
            assert!(sender.wait().unwrap().success());
        }
    }
    eventually("all is delivered", || (receiver.accepted_spans().len() >= expected.len()).then_some(()));
    assert_tools(&receiver, &expected);
    assert_eq!(receiver.accepted_spans().len(), expected.len(), "nothing is sent twice");
    let log = fs::read_to_string(sandbox.profile().join("sender.log")).unwrap();
    let lives = log.lines().filter_map(|line| line.split(' ').nth(1)).filter(|word| ["start", "end"].contains(word));
    let lives: Vec<_> = lives.collect();
    assert!(lives.chunks(2).all(|life| life == ["start", "end"]), "one after the other: {log}");
}

#[test]
fn c4_an_agent_that_is_gone_closes_nothing_before_its_last_event_is_folded() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_IDLE_SECONDS=0\n", receiver.url()));
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let own = sys::process(std::process::id()).unwrap();
    let agent = || Some(Agent { pid: gone.id(), started_ns: own.started_ns, namespace: own.namespace, marked: true });
    // So many that folding takes longer than the sender waits for an agent's last words.
    let (now, boot) = (sys::clocks(), sys::boot_id());
    let leave = |number: u64, action| {
        let ago = 60_000_000_000 - number;
        let at = At { realtime_ns: now.realtime_ns - ago, boottime_ns: now.boottime_ns - ago, boot: &boot };
        sandbox.leave(at, number, &record_by(agent(), "long", at, action));
    };
    leave(0, Action::PreInvocation(call(0, 0)));
    (1..5000).for_each(|step| leave(step, post_tool("long", step)));
    leave(5000, Action::PostInvocation(call(0, 0)));
    leave(5001, stop());
    flush(&sandbox);
    assert_eq!(sandbox.counter("session_reopened"), 0);
    let spans = receiver.accepted_spans();
    let turns: Vec<_> = spans.iter().filter(|span| span.name == "Antigravity turn").collect();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].status.as_ref().map(|status| status.code), Some(1), "not interrupted");
    assert_eq!(spans.len(), 4999 + 3);
}
