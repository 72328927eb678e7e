//! Field reports C8 and C12: what is kept has bounds in size, age, memory and number of processes, and nothing that goes
//! goes uncounted.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use fi_hook_to_otlp::store::Store;
use support::crafted::{At, post_tool, record};
use support::ledger::{flush, post, tool};
use support::receiver::{Received, Receiver, Reply};
use support::sandbox::{HANG, Sandbox, eventually, feed};

const MIB: u64 = 1 << 20;

fn settings(receiver: &Receiver, more: &str) -> String {
    format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nFI_HOOK_IDLE_SECONDS=0\n{more}", receiver.url())
}

/// Bytes on the disk below a folder.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        Some(if metadata.is_dir() { size(&entry.path()) } else { metadata.blocks() * 512 })
    });
    sizes.sum()
}

/// Steps of the tools that were accepted, in order of arrival.
fn steps(receiver: &Receiver) -> Vec<u64> {
    let spans = receiver.accepted_spans();
    let steps = spans.iter().filter_map(|span| span.name.rsplit_once('_')?.1.parse().ok());
    steps.collect()
}

/// Leaves so many events of a session that stays open in the spool, as of another boot, so that nothing is held back.
fn leave(sandbox: &Sandbox, steps: std::ops::Range<u64>) {
    static BEGUN: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let begun = *BEGUN.get_or_init(|| fi_hook_to_otlp::sys::clocks().realtime_ns - 1_000_000_000);
    for step in steps {
        let at = At { realtime_ns: begun + step, boottime_ns: step, boot: "before" };
        sandbox.leave(at, step, &record("c", at, post_tool("c", step)));
    }
}

fn waiting(sandbox: &Sandbox) -> u64 {
    Store::open_read_only(&sandbox.profile()).unwrap().map_or(0, |store| store.waiting().unwrap().spans)
}

fn sql(sandbox: &Sandbox, text: &str) {
    let db = rusqlite::Connection::open(sandbox.profile().join("store.db")).unwrap();
    db.busy_timeout(Duration::from_secs(30)).unwrap();
    db.execute_batch(text).unwrap();
}

#[test]
fn c8_a_collector_that_is_down_for_ever_leaves_the_newest_within_the_bound_and_then_in_order() {
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver, "FI_HOOK_MAX_MB=4\n"));
    receiver.stop();
    let mut total = 0;
    for _ in 0..4 {
        leave(&sandbox, total..total + 2500);
        total += 2500;
        sandbox.wake();
        let begun = Instant::now();
        while fs::read_dir(sandbox.inbox()).unwrap().count() > 0 {
            assert!(begun.elapsed() < 2 * HANG, "the spool is not folded");
            std::thread::sleep(Duration::from_millis(100));
        }
        eventually("within the bound", || (size(&sandbox.state()) <= 4 * MIB).then_some(()));
    }
    let (kept, dropped) = (waiting(&sandbox), sandbox.counter("dropped_max_mb"));
    assert!(dropped > 0 && kept > 1000, "{kept} kept, {dropped} dropped");
    assert_eq!(kept + dropped, total, "each is kept or counted");
    receiver.restart();
    flush(&sandbox);
    let steps = steps(&receiver);
    assert_eq!(steps, (dropped..total).collect::<Vec<_>>(), "the newest, in order");
    // At full speed: as much at once as a batch may hold, but for the one that was frozen before others went.
    let sizes: Vec<_> = receiver.requests().iter().map(|request| request.spans().len()).collect();
    assert!(sizes.iter().filter(|size| **size < 512).count() <= 3, "{sizes:?}");
}

#[test]
fn c8_what_came_while_a_batch_was_under_way_or_the_store_was_read_is_bounded_soon() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver, "FI_HOOK_MAX_MB=2\n"));
    receiver.otherwise(Reply::status(503).after(Duration::from_secs(8)));
    let within = || size(&sandbox.state()) <= 2 * MIB;
    let soon = |what| {
        let begun = Instant::now();
        // Less than the minute after which the sender looks at the bounds anyway.
        while !within() {
            assert!(begun.elapsed() < HANG / 2, "{what}: {} bytes", size(&sandbox.state()));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    leave(&sandbox, 0..5000);
    sandbox.wake();
    receiver.wait_for(1);
    eventually("it is folded", || (fs::read_dir(sandbox.inbox()).unwrap().count() == 0).then_some(()));
    soon("under way");
    let reader = rusqlite::Connection::open(sandbox.profile().join("store.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM spans").unwrap();
    leave(&sandbox, 5000..9000);
    sandbox.wake();
    eventually("it is folded", || (fs::read_dir(sandbox.inbox()).unwrap().count() == 0).then_some(()));
    assert!(!within(), "a reader keeps the log");
    drop(reader);
    soon("read");
}

#[test]
fn c8_what_was_set_aside_goes_before_spans_that_wait() {
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver, "FI_HOOK_MAX_MB=2\n"));
    receiver.stop();
    leave(&sandbox, 0..20);
    fs::write(sandbox.profile().join("damaged-1.db"), vec![b'#'; 3 << 20]).unwrap();
    let garbage = sandbox.profile().join("spool/garbage");
    fs::create_dir(&garbage).unwrap();
    (0..100).for_each(|number| fs::write(garbage.join(number.to_string()), vec![b'#'; 10_000]).unwrap());
    sandbox.wake();
    eventually("within the bound", || (size(&sandbox.state()) <= 2 * MIB).then_some(()));
    eventually("it is folded", || (waiting(&sandbox) == 20).then_some(()));
    assert_eq!(sandbox.counter("dropped_max_mb"), 0);
}

#[test]
fn c8_the_bound_is_over_all_profiles_and_nobody_misses_a_wake_up() {
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver, "FI_HOOK_MAX_MB=3\n"));
    receiver.stop();
    // A profile of another environment, whose spans are the oldest, and whose environment never comes back.
    let mut hook = sandbox.command(&["hook", "antigravity", "PostToolUse"]);
    hook.env("FI_BASE_URL", receiver.url()).env("FI_API_KEY", "k").env("FI_SECRET_KEY", "s");
    feed(hook.spawn().unwrap(), post("other", 1).as_bytes());
    let other = eventually("the other profile", || {
        let folders = fs::read_dir(sandbox.state()).ok()?.flatten().map(|entry| entry.path());
        let other = folders.filter(|path| path.join("store.db").exists()).find(|path| !path.ends_with("default"))?;
        (Store::open_read_only(&other).ok()??.waiting().ok()?.spans > 0).then_some(other)
    });
    sandbox.senders().into_iter().for_each(support::sandbox::kill);
    let db = rusqlite::Connection::open(other.join("store.db")).unwrap();
    let copies = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
        INSERT INTO spans (conversation, span_id, role, start_ns, body, bytes, resource, queued_ns)
        SELECT conversation, span_id || i, role, start_ns, body, bytes, resource, queued_ns FROM spans, n";
    db.execute_batch(copies).unwrap();
    drop(db);
    leave(&sandbox, 0..100);
    sandbox.wake();
    eventually("within the bound", || (size(&sandbox.state()) <= 3 * MIB).then_some(()));
    eventually("it is folded", || (waiting(&sandbox) == 100).then_some(()));
    let store = Store::open_read_only(&other).unwrap().unwrap();
    assert!(store.counters().unwrap().get("dropped_max_mb").is_some_and(|dropped| *dropped >= 512));
    assert_eq!(sandbox.counter("dropped_max_mb"), 0, "the oldest are the other's");
    drop(store);
    // While this sender looks after the other profile's size, that one's hooks find no lock in their way.
    sql(&sandbox, "SELECT 1");
    assert!(
        fs::File::open(other.join("sender.lock")).is_ok_and(|lock| {
            rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
        })
    );
}

#[test]
fn c12_spans_that_wait_too_long_are_dropped_and_counted_in_all_profiles() {
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver, "FI_HOOK_MAX_DAYS=2\n"));
    receiver.stop();
    leave(&sandbox, 0..10);
    sandbox.wake();
    eventually("it is folded", || (waiting(&sandbox) == 10).then_some(()));
    sandbox.kill_sender();
    let days = |days: u64| days * 24 * 3600 * 1_000_000_000;
    sql(&sandbox, &format!("UPDATE spans SET queued_ns = queued_ns - {} WHERE id <= 4", days(3)));
    sql(&sandbox, &format!("UPDATE spans SET queued_ns = queued_ns - {} WHERE id BETWEEN 5 AND 6", days(1)));
    receiver.restart();
    flush(&sandbox);
    assert_eq!(steps(&receiver), (4..10).collect::<Vec<_>>());
    assert_eq!(sandbox.counter("expired_max_days"), 4);
}

#[test]
fn c8_delivered_spans_are_kept_a_week_to_be_looked_at() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver, ""));
    leave(&sandbox, 0..10);
    flush(&sandbox);
    sandbox.senders_end();
    let tools = || sandbox.spans("c").iter().filter(|stored| stored.span.name.starts_with("tool_")).count();
    assert_eq!(tools(), 10);
    let week = 7u64 * 24 * 3600 * 1_000_000_000;
    sql(&sandbox, &format!("UPDATE spans SET settled_ns = settled_ns - {week} WHERE id <= 3"));
    sandbox.wake();
    eventually("the oldest go", || (tools() == 7).then_some(()));
}

/// Most memory a process ever had, in KiB.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn c8_a_hundred_thousand_queued_spans_are_sent_in_forty_megabytes() {
    let (sandbox, mut receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver, "FI_HOOK_MAX_MB=1000\n"));
    receiver.stop();
    leave(&sandbox, 0..1);
    sandbox.wake();
    eventually("it is folded", || (waiting(&sandbox) == 1).then_some(()));
    sandbox.kill_sender();
    let copies = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
        INSERT INTO spans (conversation, span_id, role, start_ns, body, bytes, resource, queued_ns)
        SELECT conversation, printf('%016x', i), role, start_ns, json_set(body, '$.span_id', printf('%016x', i)), bytes,
        resource, queued_ns FROM spans, n";
    sql(&sandbox, copies);
    receiver.restart();
    sandbox.wake();
    let (mut most, begun) = (0, Instant::now());
    while waiting(&sandbox) > 0 {
        most = sandbox.senders().into_iter().filter_map(peak).max().unwrap_or(0).max(most);
        assert!(begun.elapsed() < 4 * HANG, "{} are left", waiting(&sandbox));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(most > 0 && most <= 40 << 10, "{most} KiB");
    let spans: Vec<_> = receiver.requests().iter().flat_map(Received::spans).map(|span| span.span_id).collect();
    let distinct: std::collections::BTreeSet<_> = spans.iter().collect();
    assert_eq!((spans.len(), distinct.len()), (100_000, 100_000));
}

/// Process ids and states of this program's processes in this sandbox, and of dead ones nobody has buried.
fn zombies_of_this_test() -> usize {
    let own = std::process::id().to_string();
    let stats = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let fields: Vec<String> = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect();
        (fields.first()? == "Z" && *fields.get(1)? == own).then_some(())
    });
    stats.count()
}

#[test]
fn c8_a_thousand_hooks_leave_no_process() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver, ""));
    for step in 0..1000 {
        sandbox.hook("PostToolUse", post("c", step).as_bytes());
        assert!(step % 50 > 0 || sandbox.senders().len() <= 2, "one works, one may be about to end");
    }
    eventually("no process is left", || sandbox.senders().is_empty().then_some(()));
    assert_eq!(zombies_of_this_test(), 0);
    flush(&sandbox);
    assert_eq!(steps(&receiver), (0..1000).collect::<Vec<_>>());
    assert!(tool("c", 1).starts_with("tool_"));
}

#[test]
fn c5_with_wrong_settings_and_no_agent_a_sender_ends_after_a_minute_and_keeps_the_queue() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&settings(&receiver, ""));
    receiver.otherwise(Reply::status(401));
    sandbox.hook("PostToolUse", post("c", 1).as_bytes());
    receiver.wait_for(1);
    let begun = Instant::now();
    while !sandbox.senders().is_empty() {
        assert!(begun.elapsed() < 3 * HANG, "it never ends");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(receiver.requests().len() < 12, "tries slow down: {}", receiver.requests().len());
    assert_eq!(waiting(&sandbox), 1);
    receiver.otherwise(Reply::ok());
    // The next hook resumes.
    sandbox.hook("PostToolUse", post("c", 2).as_bytes());
    eventually("both", || (steps(&receiver) == [1, 2]).then_some(()));
}
