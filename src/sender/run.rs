//! The sender's loop: fold, watch, close what is overdue, send, and know when to end.

mod delivery;

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::signal::unix::Signal;

use super::agents::Agents;
use super::ingest::{Around, Ingest, Left};
use super::life::{self, Work};
use super::log::SenderLog;
use super::stamp::Stamp;
use super::watch::Watch;
use super::{Lock, SendError, bounds};
use crate::config::{self, Destination, Settings, sources};
use crate::conversation::{Conversation, Now, Options, Output};
use crate::export::{Answer, Exporter};
use crate::spool::dir::ProfileDir;
use crate::store::{Batch, DeliveryState, Store};
use crate::sys;

/// Between two looks at age and size of what is kept.
const BOUNDS_EVERY: Duration = Duration::from_secs(60);
/// Between two tries to come within the bounds.
const BOUNDS_AGAIN: Duration = Duration::from_secs(2);
/// An agent's end is acted on this long after it was seen: events of its last moments are folded first.
const LAST_WORDS: Duration = Duration::from_millis(150);
/// Between two tries to clear the store's log.
const CLEAR_AGAIN: Duration = Duration::from_secs(2);
/// Longest time between looks at clocks and files, whatever is going on.
const MOST_SLEEP: Duration = Duration::from_secs(60);

/// A batch that is due later than this is one the receiver refused.
const REFUSED_IS_LATER_NS: u64 = 600 * 1_000_000_000;

/// How a sender ended.
#[derive(Debug)]
pub(super) enum End {
    /// Nothing to do but with these files, which cannot be read; if something has come meanwhile, go on.
    Idle(Left),
    /// Told to stop, or of no use any more: the next hook starts another.
    Stop,
}

type Sending = Pin<Box<dyn Future<Output = (Batch, Answer)>>>;

struct Sender<'a> {
    dir: &'a ProfileDir,
    lock: &'a Lock,
    log: SenderLog,
    store: Store,
    settings: Settings,
    settings_file: Stamp,
    executable: Stamp,
    exporter: Option<Rc<Exporter>>,
    ingest: Ingest,
    open: HashMap<String, Conversation>,
    agents: Agents,
    /// Events are held back.
    holding: bool,
    delivery: DeliveryState,
    sending: Option<Sending>,
    bounded: Option<Instant>,
    /// Whether content that was removed may still lie in the store's log.
    to_clear: bool,
    /// CLOCK_REALTIME minus CLOCK_BOOTTIME, nanoseconds.
    wall_offset: Option<i128>,
    begun: Instant,
    active: Instant,
    stopping: bool,
}

pub(super) async fn run(dir: &ProfileDir, lock: &Lock, terminate: &mut Signal) -> Result<End, SendError> {
    let mut sender = Sender::start(dir, lock)?;
    let folder = sender.settings_file.path.as_deref().and_then(|file| file.parent()).map(PathBuf::from);
    let inbox = dir.inbox();
    let folders: Vec<_> = std::iter::once(inbox.as_path()).chain(folder.as_deref()).collect();
    let watch = Watch::new(&folders);
    loop {
        let mut sleep = sender.step()?;
        if let Some(end) = sender.end(&mut sleep)? {
            sender.log.line(format_args!("end after={}s", sender.begun.elapsed().as_secs()));
            return Ok(end);
        }
        let Sender { agents, sending, stopping, .. } = &mut sender;
        tokio::select! {
            () = watch.changed(), if !*stopping => {}
            () = agents.exited() => {}
            answered = answer(sending) => sender.answered(answered)?,
            _ = terminate.recv(), if !*stopping => sender.stopping = true,
            () = tokio::time::sleep(sleep) => {}
        }
    }
}

/// The answer to what is being sent; never while nothing is.
async fn answer(sending: &mut Option<Sending>) -> (Batch, Answer) {
    match sending {
        Some(sending) => sending.as_mut().await,
        None => std::future::pending().await,
    }
}

impl<'a> Sender<'a> {
    fn start(dir: &'a ProfileDir, lock: &'a Lock) -> Result<Self, SendError> {
        let settings = config::resolve(&sources::gather());
        let settings_file = Stamp::of(sources::settings_file());
        let store = Store::open_or_set_aside(dir.path(), sys::clocks().realtime_ns)?;
        let ingest = Ingest::resume(dir, store.folded_files()?);
        let mut sender = Self {
            dir,
            lock,
            log: SenderLog::new(dir.path()),
            delivery: store.delivery()?,
            open: store.open_conversations()?.into_iter().map(|row| (row.id, row.state)).collect(),
            store,
            settings,
            settings_file,
            executable: Stamp::of(std::env::current_exe().ok()),
            exporter: None,
            ingest,
            agents: Agents::default(),
            holding: false,
            sending: None,
            bounded: None,
            // A sender that was killed may have left some.
            to_clear: true,
            wall_offset: None,
            begun: Instant::now(),
            active: Instant::now(),
            stopping: false,
        };
        sender.log.line(format_args!("start version={} pid={}", env!("CARGO_PKG_VERSION"), std::process::id()));
        sender.connect();
        sender.watch_agents(&sys::boot_id());
        Ok(sender)
    }

    /// Builds the exporter for the destination of the settings, if there is one.
    fn connect(&mut self) {
        self.exporter = None;
        for problem in &self.settings.problems {
            self.log.line(format_args!("settings problem={:?}", problem.to_string()));
        }
        if self.settings.destination.route().is_none() {
            return self.log.line(format_args!("destination {}", self.settings.destination));
        }
        let mut destination = self.settings.destination.clone();
        if self.delivery.plain {
            destination = destination.without_compression();
        }
        match Exporter::build(&destination) {
            Ok(exporter) => self.exporter = Some(Rc::new(exporter)),
            Err(error) => self.log.line(format_args!("destination error={:?}", error.to_string())),
        }
    }

    /// Does whatever can be done without waiting; returns how long nothing more will be due.
    fn step(&mut self) -> Result<Duration, SendError> {
        let (mut sleep, begun) = (MOST_SLEEP, Instant::now());
        if self.settings_file.changed() {
            self.reload()?;
        }
        let clocks = sys::clocks();
        let boot_id = sys::boot_id();
        self.follow_wall_clock(clocks, &boot_id)?;
        let options = self.settings.options();
        let around = Around { open: &self.open, options: &options, now: clocks, boot_id: &boot_id };
        let round = self.ingest.round(self.dir, &mut self.store, &around)?;
        if round.files > 0 {
            self.active = Instant::now();
        }
        self.holding = round.next.is_some();
        if round.flush {
            self.reload()?;
        }
        sleep = sleep.min(round.next.unwrap_or(MOST_SLEEP));
        for (id, conversation) in round.changed {
            self.keep_open(id, conversation);
        }
        self.watch_agents(&boot_id);
        let now = Now { realtime_ns: clocks.realtime_ns, boottime_ns: clocks.boottime_ns, boot_id };
        // What lies in the spool may belong to a session that seems to be over.
        if !round.more && !round.waits {
            sleep = sleep.min(self.close_sessions(&now, begun, &options)?);
        }
        if !self.holding && !self.agents.any_gone() {
            self.ingest.answered(self.dir);
        }
        sleep = sleep.min(self.keep_bounds(clocks.realtime_ns)?);
        sleep = sleep.min(self.send_next(clocks.realtime_ns)?);
        // A reader, or a full disk, only postpones it.
        self.to_clear = self.to_clear && !self.store.clear_log().unwrap_or(false);
        Ok(if self.to_clear { sleep.min(CLEAR_AGAIN) } else { sleep })
    }

    /// Gives up what is too much or too old; returns when to look again. A burst does not wait for the minute, nor does what
    /// could not go at once, since a batch was under way or a reader held the store's log.
    fn keep_bounds(&mut self, now_ns: u64) -> Result<Duration, SendError> {
        let due = self.bounded.is_none_or(|last| last.elapsed() >= BOUNDS_EVERY)
            || bounds::exceeded(self.dir, &self.settings);
        // The answer to what is under way wakes the sender.
        if !due || self.sending.is_some() {
            return Ok(MOST_SLEEP);
        }
        let gone = bounds::enforce(self.dir, &mut self.store, &self.settings, now_ns)?;
        self.bounded = Some(Instant::now());
        if gone > 0 {
            self.to_clear = true;
            self.log.line(format_args!("bounds spans={gone} given up"));
        }
        Ok(if bounds::exceeded(self.dir, &self.settings) { BOUNDS_AGAIN } else { MOST_SLEEP })
    }

    fn follow_wall_clock(&mut self, clocks: sys::Clocks, boot_id: &str) -> Result<(), SendError> {
        let offset = i128::from(clocks.realtime_ns) - i128::from(clocks.boottime_ns);
        if self.wall_offset.is_some_and(|before| before.abs_diff(offset) < 1_000_000_000) {
            return Ok(());
        }
        self.wall_offset = Some(offset);
        let step = self.store.follow_wall_clock(boot_id, clocks.realtime_ns, clocks.boottime_ns)?;
        if step != 0 {
            self.log.line(format_args!("wall clock stepped={}s", step / 1_000_000_000));
            self.delivery = self.store.delivery()?;
        }
        Ok(())
    }

    fn reload(&mut self) -> Result<(), SendError> {
        self.settings_file = Stamp::of(self.settings_file.path.take());
        self.settings = config::resolve(&sources::gather());
        self.log.line(format_args!("settings read again"));
        self.store.retry_now()?;
        self.delivery = self.store.delivery()?;
        self.connect();
        self.active = Instant::now();
        Ok(())
    }

    fn keep_open(&mut self, id: String, conversation: Conversation) {
        let has_content = conversation.has_content();
        let before = if conversation.is_open() { self.open.insert(id, conversation) } else { self.open.remove(&id) };
        self.to_clear |= !has_content && before.is_some_and(|before| before.has_content());
    }

    fn watch_agents(&mut self, boot_id: &str) {
        for conversation in self.open.values() {
            for agent in conversation.agents() {
                self.agents.observe(&agent, conversation.last_boot() == boot_id);
            }
        }
        let open = &self.open;
        self.agents.keep_only(|agent| open.values().any(|conversation| conversation.agents().contains(agent)));
    }

    /// Closes the sessions of agents that have ended and what is overdue; returns when to look again. `begun` is when this
    /// step looked into the spool: what was held back then, or came later, may be of an agent that has been gone for
    /// longer by now, since to fold takes time.
    fn close_sessions(&mut self, now: &Now, begun: Instant, options: &Options) -> Result<Duration, SendError> {
        // Each agent's own last words: that another one has been gone for longer says nothing about them.
        let (gone, next) = self.agents.gone_for(LAST_WORDS, begun);
        let mut sleep = next.unwrap_or(MOST_SLEEP);
        let mut closed: Vec<(String, Conversation, Vec<Output>)> = Vec::new();
        for (id, conversation) in &self.open {
            let mut conversation = conversation.clone();
            let mut outputs = Vec::new();
            for agent in &gone {
                outputs.extend(conversation.agent_exited(agent, now, options));
            }
            let live = |agent: &crate::event::Agent| self.agents.is_live(agent);
            outputs.extend(conversation.overdue(now, &live, options));
            if let Some(deadline) = conversation.next_deadline(now, &live, options) {
                sleep = sleep.min(deadline);
            }
            if self.open.get(id) != Some(&conversation) || !outputs.is_empty() {
                closed.push((id.clone(), conversation, outputs));
            }
        }
        if !closed.is_empty() {
            let fold = self.store.fold(now.realtime_ns)?;
            for (id, conversation, outputs) in &closed {
                fold.keep(id, conversation, outputs)?;
            }
            fold.commit()?;
            for (id, conversation, _) in closed {
                self.keep_open(id, conversation);
            }
            self.active = Instant::now();
        }
        if !gone.is_empty() {
            self.watch_agents(&now.boot_id);
        }
        Ok(sleep)
    }

    fn work(&self) -> Result<Work, SendError> {
        let waiting = self.store.waiting()?;
        if matches!(self.settings.destination, Destination::None { .. }) || waiting.spans == 0 {
            return Ok(Work::None);
        }
        // All that is left are spans the receiver refused, to be tried again much later.
        let only_refused = waiting.spans == waiting.frozen
            && waiting.due_ns.is_some_and(|due| due > sys::clocks().realtime_ns + REFUSED_IS_LATER_NS);
        Ok(match self.delivery.outcome.as_deref() {
            _ if self.exporter.is_none() => Work::Misconfigured,
            Some("retry") => Work::Failing,
            Some("configuration" | "refused") => Work::Misconfigured,
            _ if only_refused => Work::Misconfigured,
            _ => Work::Queued,
        })
    }

    fn idle(&self) -> End {
        let left = self.ingest.left().clone();
        if !left.is_empty() {
            let files = left.len();
            self.log.line(format_args!("left files={files} of a newer version, or not readable"));
        }
        End::Idle(left)
    }

    /// Whether to end now; shortens `sleep` to the moment when that may be.
    fn end(&self, sleep: &mut Duration) -> Result<Option<End>, SendError> {
        if self.sending.is_some() {
            return Ok(None);
        }
        let unsettled = self.holding || self.agents.any_gone();
        if self.stopping || !self.dir.is_current_lock(self.lock) || self.store.is_newer() {
            return Ok(Some(End::Stop));
        }
        if unsettled {
            return Ok(None);
        }
        let work = self.work()?;
        if work != Work::Queued && !sleep.is_zero() && self.executable.changed() {
            return Ok(Some(self.idle()));
        }
        let left = life::remaining(
            work,
            self.agents.any_live(),
            self.active.elapsed(),
            self.begun.elapsed(),
            self.settings.idle,
        );
        if left.is_zero() {
            return Ok(Some(self.idle()));
        }
        *sleep = (*sleep).min(left);
        Ok(None)
    }
}
