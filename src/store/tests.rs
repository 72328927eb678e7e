//! The store on a real file: what is folded counts once, what is frozen stays frozen, what is refused is singled out.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::conversation::{Conversation, Output};
use crate::event::Origin;
use crate::span::{Role, Span, SpanId, Status, TraceId};

pub(super) const NOW: u64 = 1_790_000_000_000_000_000;
pub(super) const HOUR: u64 = 3_600_000_000_000;

pub(super) fn span(number: u8, role: Role) -> Span {
    Span {
        trace_id: TraceId([7; 16]),
        span_id: SpanId([number; 8]),
        parent: None,
        role,
        name: format!("span {number}"),
        start_ns: NOW + u64::from(number),
        end_ns: NOW + u64::from(number) + 1,
        status: Status::Unset,
        attributes: BTreeMap::new(),
        events: Vec::new(),
        links: Vec::new(),
    }
}

pub(super) fn with_spans(store: &mut Store, service: &str, outputs: &[Output]) {
    let conversation = Conversation::new(Origin { service_name: service.to_owned(), ..Origin::default() });
    let fold = store.fold(NOW).unwrap();
    fold.keep(service, &conversation, outputs).unwrap();
    fold.commit().unwrap();
}

fn tools(numbers: std::ops::Range<u8>) -> Vec<Output> {
    numbers.map(|number| Output::Span(span(number, Role::Tool))).collect()
}

fn names(batch: &Batch) -> Vec<&str> {
    batch.spans.iter().map(|span| span.name.as_str()).collect()
}

fn failed() -> DeliveryState {
    DeliveryState {
        outcome: Some("retry".into()),
        reason: Some("http_503".into()),
        failures: 1,
        ..DeliveryState::default()
    }
}

#[test]
fn a_file_counts_once_even_when_a_crash_left_it_in_the_spool() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let fold = store.fold(NOW).unwrap();
    assert!(fold.claim_file("a").unwrap());
    drop(fold);
    let fold = store.fold(NOW).unwrap();
    assert!(fold.claim_file("a").unwrap(), "what was not committed did not happen");
    fold.commit().unwrap();
    drop(store);
    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!(store.folded_files().unwrap(), ["a"]);
    let fold = store.fold(NOW).unwrap();
    assert!(!fold.claim_file("a").unwrap());
    fold.forget_files(["a"]).unwrap();
    fold.commit().unwrap();
    assert!(store.folded_files().unwrap().is_empty());
}

#[test]
fn a_batch_is_frozen_before_its_first_try_and_the_same_at_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    with_spans(&mut store, "one", &tools(1..4));
    let first = store.next_batch(NOW).unwrap().unwrap();
    store.trying(first.id, NOW).unwrap();
    with_spans(&mut store, "one", &tools(4..6));
    drop(store);

    let mut store = Store::open(folder.path()).unwrap();
    let again = store.next_batch(NOW).unwrap().unwrap();
    assert_eq!((again.id, &again.spans, again.tries), (first.id, &first.spans, 1));
    store.settle(&again, Settled::Again { next_try_ns: NOW + 5 }, &failed(), NOW).unwrap();
    assert_eq!(store.delivery().unwrap().reason.as_deref(), Some("http_503"));
    // While it waits for its turn, the rest may go; the sender's own pause is what keeps the order.
    let rest = store.next_batch(NOW).unwrap().unwrap();
    assert_eq!(names(&rest), ["span 4", "span 5"]);
    store.settle(&rest, Settled::Delivered, &DeliveryState::default(), NOW).unwrap();
    assert_eq!(store.next_batch(NOW).unwrap(), None);
    assert_eq!(store.waiting().unwrap(), Waiting { spans: 3, frozen: 3, due_ns: Some(NOW + 5) });
    assert_eq!(store.next_batch(NOW + 5).unwrap().unwrap().spans, first.spans);
}

#[test]
fn a_batch_holds_one_resource_and_keeps_its_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let many: Vec<_> = (0..600).map(|number| Output::Span(span((number % 250 + 1) as u8, Role::Tool))).collect();
    with_spans(&mut store, "one", &many);
    with_spans(&mut store, "two", &tools(1..3));
    let sizes: Vec<_> = std::iter::from_fn(|| {
        let batch = store.next_batch(NOW).unwrap()?;
        store.settle(&batch, Settled::Delivered, &DeliveryState::default(), NOW).unwrap();
        Some((batch.spans.len(), batch.resource.get("service.name").cloned()))
    })
    .collect();
    assert_eq!(sizes, [(512, Some("one".into())), (88, Some("one".into())), (2, Some("two".into()))]);

    let large: Vec<_> = (1..5)
        .map(|number| {
            let mut span = span(number, Role::Tool);
            span.name = "x".repeat(400_000);
            Output::Span(span)
        })
        .collect();
    with_spans(&mut store, "one", &large);
    assert_eq!(store.next_batch(NOW).unwrap().unwrap().spans.len(), 2, "two fit into 1 MiB");
}

#[test]
fn a_newer_snapshot_replaces_only_one_that_no_batch_holds() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let snapshot = |name: &str| {
        let mut root = span(9, Role::Session);
        root.name = name.to_owned();
        Output::Session(root)
    };
    with_spans(&mut store, "one", &[snapshot("first"), Output::Span(span(1, Role::Tool))]);
    with_spans(&mut store, "one", &[snapshot("second")]);
    let batch = store.next_batch(NOW).unwrap().unwrap();
    assert_eq!(names(&batch), ["second", "span 1"], "the root stays before its children");
    with_spans(&mut store, "one", &[snapshot("third")]);
    assert_eq!(names(&store.next_batch(NOW).unwrap().unwrap()), ["second", "span 1"]);
    store.settle(&batch, Settled::Delivered, &DeliveryState::default(), NOW).unwrap();
    let next = store.next_batch(NOW).unwrap().unwrap();
    assert_eq!(names(&next), ["third"]);
    store.settle(&next, Settled::Delivered, &DeliveryState::default(), NOW).unwrap();
    let shown = store.spans("one").unwrap();
    let shown: Vec<_> = shown.iter().map(|stored| stored.span.name.as_str()).collect();
    assert_eq!(shown, ["span 1", "third"], "of snapshots the newest");
}

/// Answers batches as a receiver that refuses some spans, until nothing is due; returns how many requests that took.
fn play(store: &mut Store, refused: impl Fn(&Span) -> bool, now: u64) -> usize {
    let mut requests = 0;
    while let Some(batch) = store.next_batch(now).unwrap() {
        store.trying(batch.id, now).unwrap();
        let settled = if batch.spans.iter().any(&refused) { Settled::Refused } else { Settled::Delivered };
        store.settle(&batch, settled, &DeliveryState::default(), now).unwrap();
        requests += 1;
        assert!(requests < 1000, "never ends");
    }
    requests
}

#[test]
fn one_refused_span_is_singled_out_and_the_others_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    with_spans(&mut store, "one", &tools(1..65));
    let bad = |span: &Span| span.name == "span 17";
    let requests = play(&mut store, bad, NOW);
    assert!(requests <= 16, "{requests} requests for a bisection of 64");
    assert_eq!(store.waiting().unwrap().spans, 1, "the others do not wait for it");
    for (after_seconds, waiting) in [(14, 1), (15, 1), (74, 1), (75, 1), (314, 1), (315, 0)] {
        play(&mut store, bad, NOW + after_seconds * 1_000_000_000);
        assert_eq!(store.waiting().unwrap().spans, waiting, "after {after_seconds} s");
    }
    let stored = store.spans("one").unwrap();
    let of = |outcome: &str| stored.iter().filter(|span| span.outcome.as_deref() == Some(outcome)).count();
    assert_eq!((of("delivered"), of("refused")), (63, 1));
    assert_eq!(store.counters().unwrap().get("set_aside_refused"), Some(&1));
    assert_eq!(store.waiting().unwrap().spans, 0);
}

#[test]
fn when_all_is_refused_nothing_is_set_aside_for_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    with_spans(&mut store, "one", &tools(1..5));
    for round in 0..4 {
        play(&mut store, |_| true, NOW + round * 6 * HOUR);
        assert_eq!(store.waiting().unwrap().spans, 4, "round {round}");
    }
    // The receiver was mended: all of them arrive.
    play(&mut store, |_| false, NOW + 23 * HOUR + 6 * HOUR);
    let outcomes: BTreeSet<_> = store.spans("one").unwrap().into_iter().map(|stored| stored.outcome).collect();
    assert_eq!(outcomes, BTreeSet::from([Some("delivered".to_owned())]));

    with_spans(&mut store, "two", &tools(11..13));
    for round in 0..5 {
        play(&mut store, |_| true, NOW + round * 7 * HOUR);
    }
    assert_eq!(store.waiting().unwrap().spans, 0, "five tries over a day are enough");
    assert_eq!(store.counters().unwrap().get("set_aside_refused"), Some(&2));
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.db.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    assert!(store.is_newer());
    drop(store);
    let before = std::fs::read(folder.path().join(FILE)).unwrap();
    assert!(matches!(Store::open(folder.path()), Err(StoreError::Newer { version: 2, .. })));
    assert!(matches!(Store::open_read_only(folder.path()), Err(StoreError::Newer { version: 2, .. })));
    assert_eq!(std::fs::read(folder.path().join(FILE)).unwrap(), before);
}

#[test]
fn a_damaged_store_is_set_aside_and_a_new_one_begun() {
    for damage in ["all of it", "a page"] {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        with_spans(&mut store, "one", &tools(1..200));
        drop(store);
        let path = folder.path().join(FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        let from = if damage == "a page" { bytes.len() / 2 } else { 0 };
        bytes[from..from + 4096].fill(b'#');
        std::fs::write(&path, &bytes).unwrap();
        let mut store = Store::open_or_set_aside(folder.path(), NOW).unwrap();
        assert_eq!(store.counters().unwrap().get("store_damaged"), Some(&1), "{damage}");
        with_spans(&mut store, "two", &tools(1..2));
        assert_eq!(store.waiting().unwrap().spans, 1);
        assert_eq!(std::fs::read(folder.path().join(format!("damaged-{NOW}.db"))).unwrap(), bytes);
    }
}

#[test]
fn what_is_too_old_or_too_much_goes_oldest_first_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    with_spans(&mut store, "one", &tools(1..11));
    assert_eq!(store.expire(NOW, NOW).unwrap(), 0);
    let batch = store.next_batch(NOW).unwrap().unwrap();
    assert_eq!(store.drop_oldest(4, NOW).unwrap(), 4);
    assert_eq!(names(&store.next_batch(NOW).unwrap().unwrap()), names(&batch)[4..]);
    assert_eq!(store.expire(NOW + 1, NOW).unwrap(), 6);
    assert_eq!((store.next_batch(NOW).unwrap(), store.waiting().unwrap()), (None, Waiting::default()));
    let counters = store.counters().unwrap();
    assert_eq!((counters.get("dropped_max_mb"), counters.get("expired_max_days")), (Some(&4), Some(&6)));
}

#[test]
fn settled_spans_go_after_their_time_and_conversations_long_after() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    with_spans(&mut store, "one", &tools(1..3));
    let batch = store.next_batch(NOW).unwrap().unwrap();
    store.sweep(NOW + HOUR, NOW).unwrap();
    assert_eq!(store.spans("one").unwrap().len(), 2, "what waits is never swept here");
    store.settle(&batch, Settled::Delivered, &DeliveryState::default(), NOW).unwrap();
    store.sweep(NOW, 0).unwrap();
    assert_eq!(store.spans("one").unwrap().len(), 2);
    store.sweep(NOW + 1, 0).unwrap();
    assert!(store.spans("one").unwrap().is_empty());
    assert_eq!(store.conversations().unwrap().len(), 1, "a resume finds its root");
    store.sweep(NOW + 1, NOW).unwrap();
    assert!(store.conversations().unwrap().is_empty());
}

#[test]
fn a_row_that_cannot_be_read_keeps_no_other_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    with_spans(&mut store, "one", &tools(1..4));
    with_spans(&mut store, "two", &tools(4..6));
    store.db.execute("UPDATE spans SET body = '{\"trace' WHERE id IN (2, 4, 5)", []).unwrap();
    store.db.execute("UPDATE conversations SET state = 'x' WHERE id = 'one'", []).unwrap();
    let batch = store.next_batch(NOW).unwrap().unwrap();
    assert_eq!(names(&batch), ["span 1", "span 3"]);
    store.settle(&batch, Settled::Delivered, &DeliveryState::default(), NOW).unwrap();
    assert!(store.next_batch(NOW).unwrap().is_none(), "nothing of the other batch can be read");
    let fold = store.fold(NOW).unwrap();
    assert_eq!(fold.conversation("one", &Origin::default()).unwrap(), Conversation::new(Origin::default()));
    fold.commit().unwrap();
    assert_eq!(store.conversations().unwrap().len(), 1);
    assert_eq!(store.waiting().unwrap().spans, 0);
    let counters = store.counters().unwrap();
    assert_eq!((counters["span_unreadable"], counters["conversation_unreadable"]), (3, 1));
}
