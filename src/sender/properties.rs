//! Properties of spool, reducer and store together: whatever arrives in whatever order within the hold-back, is reported
//! twice, or is cut off by a crash at any point, is delivered as if nothing had happened.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

use super::ingest::{Around, Ingest};
use super::suspects::Suspects;
use crate::conversation::{Conversation, Now, Options, SessionSpan};
use crate::event::{Action, Agent, Capture, Event, Invocation, Origin, Stop, ToolStep};
use crate::redact::{self, Allowed};
use crate::span::{Span, SpanId, TraceId};
use crate::spool::dir::{ProfileDir, file_name};
use crate::spool::format::{Captured, Entry, encode};
use crate::store::{DeliveryState, Settled, Store};
use crate::sys::Clocks;

const BOOT: &str = "a";
const START_MS: u64 = 1_796_029_200_000;
/// Events arrive up to this much after their capture: less than they are held back.
const LATEST_MS: u64 = 50;
/// Deaths that leave a note of what was folded; more of them over one file may make it wait for others.
const NOTED_DEATHS: usize = 2;

/// A record of the spool, and when it gets there.
#[derive(Debug, Clone)]
struct Arrival {
    at_ms: u64,
    name: String,
    record: Vec<u8>,
}

/// What a sender does next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Fold,
    /// Dies with nothing of the round committed; whether it had noted what it was folding.
    DieFolding {
        noted: bool,
    },
    /// Dies after the commit; each bit of the number says whether a file was removed before.
    DieRemoving(u64),
    Send,
    /// Dies before the receiver has the batch, or after it, but before that is recorded.
    DieSending {
        arrived: bool,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Fold),
        2 => any::<bool>().prop_map(|noted| Step::DieFolding { noted }),
        2 => any::<u64>().prop_map(Step::DieRemoving),
        2 => Just(Step::Send),
        2 => any::<bool>().prop_map(|arrived| Step::DieSending { arrived }),
    ]
}

/// What a conversation is told, in order.
fn actions(turns: &[u8]) -> Vec<Action> {
    let (mut actions, mut steps) = (vec![Action::SessionStart], 1);
    for tools in turns {
        let call = |num, steps| Invocation { num: Some(num), initial_steps: Some(steps) };
        actions.push(Action::PreInvocation(call(0, steps)));
        for index in 1..=i64::from(*tools) {
            let step = ToolStep { step: Some(steps + index), tool: Some("a".into()), failed: index % 2 == 0 };
            actions.push(Action::PreToolUse(step.clone()));
            actions.push(Action::PostToolUse(step));
        }
        actions.push(Action::PostInvocation(call(0, steps)));
        let reason = Some("NO_TOOL_CALL".to_owned());
        actions.push(Action::Stop(Stop { reason, execution_num: Some(0), fully_idle: Some(true), failed: false }));
        steps += 2 + i64::from(*tools);
    }
    actions
}

/// A few conversations at once: what each is told, the time since the event before, how late it is in the spool, and
/// whether hooks that are registered twice report it twice.
fn any_play() -> impl Strategy<Value = Vec<Arrival>> {
    let conversations = vec(vec(0..3u8, 1..3), 1..4);
    let circumstances = vec((1..60u64, 0..LATEST_MS, 0..LATEST_MS, proptest::bool::weighted(0.2)), 24);
    (conversations, circumstances, any::<u64>()).prop_map(|(conversations, circumstances, order)| {
        let mut queues: Vec<_> = conversations.iter().map(|turns| actions(turns).into_iter()).collect();
        let (mut arrivals, mut at_ms, mut order) = (Vec::new(), 0, order);
        let mut circumstances = circumstances.iter().cycle();
        while !queues.iter().all(|queue| queue.as_slice().is_empty()) {
            order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let conversation = usize::try_from(order >> 33).unwrap() % queues.len();
            let Some(action) = queues[conversation].next() else { continue };
            let (gap, late, again_late, twice) = *circumstances.next().unwrap();
            at_ms += gap;
            let number = arrivals.len() as u64;
            arrivals.push(arrival(conversation, action.clone(), at_ms, late, 1, number));
            if twice {
                arrivals.push(arrival(conversation, action, at_ms + 1, again_late, 2, number + 1));
            }
        }
        arrivals.sort_by_key(|arrival| arrival.at_ms);
        arrivals
    })
}

fn arrival(conversation: usize, action: Action, at_ms: u64, late: u64, registration: u64, number: u64) -> Arrival {
    let clocks = clocks(at_ms);
    let capture = Capture {
        realtime_ns: clocks.realtime_ns,
        boottime_ns: clocks.boottime_ns,
        boot_id: BOOT.into(),
        agent: Some(Agent { pid: 7, started_ns: 1, namespace: 1, marked: true }),
        registration,
        traceparent: None,
    };
    let event = Event { model: Some("m".into()), ..Event::new(format!("c{conversation}"), action) };
    let captured = Captured { capture, origin: Origin::default(), event: redact::event(event, &Allowed::default()) };
    Arrival {
        at_ms: at_ms + late,
        name: file_name(clocks.realtime_ns, 1, number),
        record: encode(&Entry::Event(Box::new(captured))),
    }
}

fn clocks(at_ms: u64) -> Clocks {
    Clocks { realtime_ns: (START_MS + at_ms) * 1_000_000, boottime_ns: at_ms * 1_000_000 }
}

/// What a receiver has, by id: a span that comes again must be the same.
type Delivered = BTreeMap<(TraceId, SpanId), Span>;

/// A profile's folder, and the sender that works there at present.
struct Machine {
    _base: tempfile::TempDir,
    dir: ProfileDir,
    options: Options,
    sender: Option<Working>,
    delivered: Delivered,
    noted: usize,
}

/// What a sender has in memory, which is what a crash takes.
struct Working {
    store: Store,
    ingest: Ingest,
    open: HashMap<String, Conversation>,
}

impl Machine {
    fn new() -> Self {
        // In memory where there is such a folder: a disk's syncs would be most of the time.
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let dir = ProfileDir::open(base.path(), "p").unwrap();
        dir.make().unwrap();
        let options = Options { session_span: SessionSpan::Once, ..Options::default() };
        Self { _base: base, dir, options, sender: None, delivered: Delivered::new(), noted: 0 }
    }

    fn sender(&mut self) -> &mut Working {
        let dir = &self.dir;
        self.sender.get_or_insert_with(|| {
            let store = Store::open(dir.path()).unwrap();
            let ingest = Ingest::resume(dir, store.folded_files().unwrap());
            let open = store.open_conversations().unwrap().into_iter().map(|row| (row.id, row.state)).collect();
            Working { store, ingest, open }
        })
    }

    /// One round; true if more are ready at that time.
    fn fold(&mut self, at_ms: u64) -> bool {
        self.sender();
        let Self { dir, options, sender, .. } = self;
        let Working { store, ingest, open } = sender.as_mut().unwrap();
        let around = Around { open, options, now: clocks(at_ms), boot_id: BOOT };
        let round = ingest.round(dir, store, &around).unwrap();
        open.extend(round.changed);
        open.retain(|_, conversation| conversation.is_open());
        round.more
    }

    fn send(&mut self, at_ms: u64, step: Step) -> bool {
        let now_ns = clocks(at_ms).realtime_ns;
        let store = &mut self.sender().store;
        let Some(batch) = store.next_batch(now_ns).unwrap() else { return false };
        store.trying(batch.id, now_ns).unwrap();
        if matches!(step, Step::Send) {
            store.settle(&batch, Settled::Delivered, &DeliveryState::default(), now_ns).unwrap();
        }
        if !matches!(step, Step::DieSending { arrived: false }) {
            for span in batch.spans {
                let before = self.delivered.insert((span.trace_id, span.span_id), span.clone());
                assert!(before.is_none_or(|before| before == span), "another span under the same id: {span:?}");
            }
        }
        true
    }

    fn step(&mut self, at_ms: u64, step: Step) {
        match step {
            Step::Fold => drop(self.fold(at_ms)),
            Step::DieFolding { noted } => {
                self.sender = None;
                let before = Snapshot::take(self.dir.path());
                self.fold(at_ms);
                self.sender = None;
                before.restore(self.dir.path(), |_| true);
                if noted && self.noted < NOTED_DEATHS {
                    self.noted += 1;
                    let names: Vec<_> = before.inbox().into_iter().collect();
                    Suspects::left_behind(&self.dir).begin(&self.dir, &names, clocks(at_ms).realtime_ns);
                }
            }
            Step::DieRemoving(removed) => {
                let before = Snapshot::take(self.dir.path());
                self.fold(at_ms);
                self.sender = None;
                let inbox = before.inbox();
                let back: BTreeSet<_> = inbox.iter().zip(0..64).filter(|(_, bit)| removed >> bit & 1 == 0).collect();
                let back: BTreeSet<&String> = back.into_iter().map(|(name, _)| name).collect();
                before.restore(self.dir.path(), |file| {
                    file.strip_prefix("spool/new/").is_some_and(|name| back.contains(&name.to_owned()))
                });
            }
            Step::Send => drop(self.send(at_ms, step)),
            Step::DieSending { .. } => {
                self.send(at_ms, step);
                self.sender = None;
            }
        }
    }

    /// Folds, closes and sends all there is.
    fn finish(mut self, at_ms: u64) -> Delivered {
        while self.fold(at_ms) {}
        assert_eq!(fs::read_dir(self.dir.inbox()).unwrap().count(), 0, "something stays in the spool");
        let Self { options, sender, .. } = &mut self;
        let Working { store, open, .. } = sender.as_mut().unwrap();
        let now = Now { realtime_ns: u64::MAX, boottime_ns: 0, boot_id: "last".into() };
        let fold = store.fold(clocks(at_ms).realtime_ns).unwrap();
        for (id, mut conversation) in open.drain() {
            let outputs = conversation.overdue(&now, &|_| false, options);
            fold.keep(&id, &conversation, &outputs).unwrap();
        }
        fold.commit().unwrap();
        while self.send(at_ms, Step::Send) {}
        assert_eq!(self.sender().store.counters().unwrap().get("event_late"), None, "nothing was late");
        self.delivered
    }
}

/// The files of a profile at one moment, which is what a crash leaves.
struct Snapshot(BTreeMap<String, Vec<u8>>);

impl Snapshot {
    fn take(profile: &Path) -> Self {
        let files = ["", "spool/", "spool/new/"].into_iter().flat_map(|folder| {
            let entries = fs::read_dir(profile.join(folder)).unwrap().map(Result::unwrap);
            let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
            files.map(move |file| {
                (format!("{folder}{}", file.file_name().to_str().unwrap()), fs::read(file.path()).unwrap())
            })
        });
        Self(files.collect())
    }

    fn inbox(&self) -> BTreeSet<String> {
        self.0.keys().filter_map(|file| file.strip_prefix("spool/new/").map(str::to_owned)).collect()
    }

    /// Puts some files back as they were; if that is all of them, newer ones go.
    fn restore(&self, profile: &Path, which: impl Fn(&str) -> bool) {
        for file in Self::take(profile).0.keys().filter(|file| which(file) && !self.0.contains_key(*file)) {
            fs::remove_file(profile.join(file)).unwrap();
        }
        for (file, bytes) in self.0.iter().filter(|(file, _)| which(file)) {
            fs::write(profile.join(file), bytes).unwrap();
        }
    }
}

/// What is delivered without any fault, when all of it was there from the beginning.
fn undisturbed(play: &[Arrival], end_ms: u64) -> Delivered {
    let machine = Machine::new();
    for arrival in play {
        machine.dir.deposit(&arrival.name, &arrival.record).unwrap();
    }
    machine.finish(end_ms)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn c4_c7_whatever_happens_the_same_spans_are_delivered(
        play in any_play(),
        steps in vec((1..120u64, any_step()), 1..40),
    ) {
        let end_ms = play.last().map_or(0, |last| last.at_ms) + 10_000;
        let expected = undisturbed(&play, end_ms);
        prop_assert!(!expected.is_empty());
        let mut machine = Machine::new();
        let (mut now_ms, mut rest) = (0, play.iter().peekable());
        for (gap, step) in steps {
            now_ms += gap;
            while let Some(arrival) = rest.next_if(|arrival| arrival.at_ms <= now_ms) {
                machine.dir.deposit(&arrival.name, &arrival.record).unwrap();
            }
            machine.step(now_ms, step);
        }
        for arrival in rest {
            machine.dir.deposit(&arrival.name, &arrival.record).unwrap();
        }
        let delivered = machine.finish(end_ms);
        let lost: Vec<_> = expected.iter().filter(|(id, _)| !delivered.contains_key(id)).collect();
        prop_assert!(lost.is_empty(), "lost: {lost:#?}");
        prop_assert_eq!(delivered, expected);
    }
}
