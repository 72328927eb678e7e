//! From the spool to the store: which files are ready, in which order they are folded, and that each counts once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::SendError;
use super::suspects::Suspects;
use crate::conversation::{Conversation, Options, Output};
use crate::spool::dir::{ProfileDir, named_time};
use crate::spool::format::{Captured, Entry, FLUSH, RecordError, decode};
use crate::store::{Folding, Store};
use crate::sys::Clocks;

/// An event is folded this long after its capture, so that a slower hook process before it can catch up.
const HOLD_BACK: Duration = Duration::from_millis(50);
/// Most files folded in one transaction: bounds memory when a long backlog is found.
const MOST_FILES: usize = 1000;

/// Most bytes of a record: far more than a hook writes.
const MOST_BYTES: u64 = 8 << 20;

/// How long a file that cannot be read now is left alone.
const LEFT_FOR: Duration = Duration::from_secs(60);

/// A hook is killed by agy after 10 s; what it wrote beside the spool an hour ago is nobody's.
const UNFINISHED_NS: u64 = 3600 * 1_000_000_000;

/// What one round over the spool did.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Conversations that events were folded into, as they are now.
    pub(super) changed: HashMap<String, Conversation>,
    /// Spool files folded.
    pub(super) files: usize,
    /// Whether somebody has asked to deliver now, and waits for [`Ingest::answered`].
    pub(super) flush: bool,
    /// Whether more are ready now.
    pub(super) more: bool,
    /// Whether one waits that senders died over: its session must not be closed before it.
    pub(super) waits: bool,
    /// When the next file is ready; zero if more are ready now.
    pub(super) next: Option<Duration>,
}

/// What a round is given from outside.
pub(super) struct Around<'a> {
    /// Conversations whose sessions have not ended.
    pub(super) open: &'a HashMap<String, Conversation>,
    /// How events become spans.
    pub(super) options: &'a Options,
    /// When the round begins.
    pub(super) now: Clocks,
    /// The boot that it is in.
    pub(super) boot_id: &'a str,
}

/// Reads the spool. Keeps what it must know from round to round.
#[derive(Debug, Default)]
pub(super) struct Ingest {
    /// Files that a sender died over, with the tries so far.
    suspects: Suspects,
    /// Removed from the spool, but still listed as folded in the store.
    removed: Vec<String>,
    /// CLOCK_BOOTTIME of the last folded event, by boot.
    folded_up_to: BTreeMap<String, u64>,
    left: Left,
    left_since: Option<Instant>,
    /// Notes of those who asked to deliver now: in the spool until they are answered, so that a sender which dies before
    /// that leaves them to the next one.
    asked: Vec<String>,
}

/// Names of files that stay in the spool: of a newer version, or not readable at present.
pub(super) type Left = BTreeSet<String>;

/// Whether something lies in the spool that nobody has looked at.
pub(super) fn has_new(dir: &ProfileDir, left: &Left) -> bool {
    list(&dir.inbox()).iter().any(|name| named_time(name).is_some() && !left.contains(name))
}

/// A file that was read.
struct Ready {
    name: String,
    entry: Entry,
}

impl Ingest {
    /// Goes on where an earlier sender stopped, which left `folded` on its list.
    pub(super) fn resume(dir: &ProfileDir, folded: Vec<String>) -> Self {
        let there: HashSet<String> = list(&dir.inbox()).into_iter().collect();
        let removed = folded.into_iter().filter(|name| !there.contains(name)).collect();
        sweep_unfinished(dir);
        Self { removed, suspects: Suspects::left_behind(dir), ..Self::default() }
    }

    /// Folds what is ready, in one transaction, then removes its files.
    pub(super) fn round(
        &mut self,
        dir: &ProfileDir,
        store: &mut Store,
        around: &Around<'_>,
    ) -> Result<Round, SendError> {
        if self.left_since.is_some_and(|since| since.elapsed() >= LEFT_FOR) {
            self.left.clear();
            self.left_since = None;
        }
        let known = |name: &str| self.left.contains(name) || self.asked.iter().any(|asked| asked == name);
        let (mut names, more) = settled_names(&dir.inbox(), known);
        let waiting = self.suspects.isolate(&mut names, around.now.realtime_ns);
        let more = waiting.more || more;
        if names.is_empty() && self.removed.is_empty() {
            return Ok(Round { next: waiting.next, waits: waiting.next.is_some(), ..Round::default() });
        }
        let round = self.fold(dir, store, &names, around);
        // Not only when all went well: a store that refuses is no death.
        self.suspects.end(dir, &names);
        let mut round = round?;
        if round.flush {
            self.suspects.hurry();
        }
        let next = [round.next, waiting.next].into_iter().flatten().min();
        let soon = more || round.flush && waiting.next.is_some();
        round.more = more;
        round.waits = waiting.next.is_some();
        round.next = if soon { Some(Duration::ZERO) } else { next };
        Ok(round)
    }

    /// All is folded, and what can be closed is closed: whoever asked for that sees it by the note that is gone.
    pub(super) fn answered(&mut self, dir: &ProfileDir) {
        for name in std::mem::take(&mut self.asked) {
            if fs::remove_file(dir.inbox().join(&name)).is_err() {
                self.leave(name);
            }
        }
    }

    fn leave(&mut self, name: String) {
        self.left.insert(name);
        self.left_since.get_or_insert_with(Instant::now);
    }

    /// The files that stay in the spool, as far as is known.
    pub(super) const fn left(&self) -> &Left {
        &self.left
    }

    fn fold(
        &mut self,
        dir: &ProfileDir,
        store: &mut Store,
        names: &[String],
        around: &Around<'_>,
    ) -> Result<Round, SendError> {
        let inbox = dir.inbox();
        let mut round = Round::default();
        // To wait for the store is no part of what a record may be the death of.
        let fold = store.fold(around.now.realtime_ns)?;
        let mut names = names.to_vec();
        if self.suspects.begin(dir, &names, around.now.realtime_ns) {
            fold.count("spool_deadly", names.len() as u64)?;
            for name in names.drain(..) {
                set_aside(dir, &name);
            }
        }
        let begun = names.clone();
        fold.forget_files(self.removed.iter().map(String::as_str))?;
        let mut ready = self.readable(dir, &fold, &mut names, &mut round, around);
        sort(&mut ready);
        let mut outputs: BTreeMap<String, Vec<Output>> = BTreeMap::new();
        for file in &ready {
            if fold.claim_file(&file.name)? {
                self.fold_one(&fold, &file.entry, around, &mut round, &mut outputs)?;
                round.files += 1;
            } else {
                fold.count("spool_replayed", 1)?;
            }
        }
        for (id, conversation) in &round.changed {
            fold.keep(id, conversation, outputs.get(id).map_or(&[], Vec::as_slice))?;
        }
        // Nobody dies of a record any more from here on, and writing to a slow disk is when a kill from outside is most
        // likely to hit.
        self.suspects.end(dir, &begun);
        fold.commit()?;
        self.removed.clear();
        for name in names {
            if fs::remove_file(inbox.join(&name)).is_ok() {
                self.removed.push(name);
            }
        }
        Ok(round)
    }

    /// The entries of those files that are ready; takes the other names away.
    fn readable(
        &mut self,
        dir: &ProfileDir,
        fold: &Folding<'_>,
        names: &mut Vec<String>,
        round: &mut Round,
        around: &Around<'_>,
    ) -> Vec<Ready> {
        let inbox = dir.inbox();
        let mut ready = Vec::new();
        names.retain(|name| match read(&inbox, name) {
            Ok(Entry::Note(note)) if note.reason == FLUSH => {
                self.asked.push(name.clone());
                round.flush = true;
                false
            }
            Ok(entry) => {
                let held = held_back(&entry, around.now, around.boot_id);
                if let Some(left) = held {
                    round.next = Some(round.next.map_or(left, |next| next.min(left)));
                    return false;
                }
                ready.push(Ready { name: name.clone(), entry });
                true
            }
            // Of a newer version: left for a newer sender. Gone: removed by hand.
            Err(Unreadable::Leave) => {
                self.leave(name.clone());
                false
            }
            Err(Unreadable::Garbage) => {
                set_aside(dir, name);
                let _ = fold.count("spool_garbage", 1);
                false
            }
        });
        ready
    }

    fn fold_one(
        &mut self,
        fold: &Folding<'_>,
        entry: &Entry,
        around: &Around<'_>,
        round: &mut Round,
        outputs: &mut BTreeMap<String, Vec<Output>>,
    ) -> Result<(), SendError> {
        let captured: &Captured = match entry {
            Entry::Event(captured) => captured,
            Entry::Note(note) => {
                fold.count(&note.reason, 1)?;
                if note.reason == "unknown_event" {
                    fold.count(&format!("unknown_event:{}", note.event), 1)?;
                }
                return Ok(());
            }
        };
        let capture = &captured.capture;
        let up_to = self.folded_up_to.entry(capture.boot_id.clone()).or_default();
        if capture.boottime_ns < *up_to {
            fold.count("event_late", 1)?;
        }
        *up_to = capture.boottime_ns.max(*up_to);
        let id = captured.event.conversation.clone();
        let conversation = match round.changed.entry(id.clone()) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(vacant) => vacant.insert(match around.open.get(&id) {
                Some(conversation) => conversation.clone(),
                None => fold.conversation(&id, &captured.origin)?,
            }),
        };
        let made = conversation.apply(&captured.event, capture, around.options);
        outputs.entry(id).or_default().extend(made);
        Ok(())
    }
}

/// The oldest files but the `known` ones that no earlier one can precede any more, and whether there are more than one
/// round takes.
///
/// Listed twice, since a listing that runs beside renames may miss a file: whatever is not later than the newest of the
/// first listing was renamed before the second one began.
fn settled_names(inbox: &Path, known: impl Fn(&str) -> bool) -> (Vec<String>, bool) {
    let Some(newest) = list(inbox).into_iter().filter_map(|name| named_time(&name)).max() else {
        return (Vec::new(), false);
    };
    let mut names = list(inbox);
    names.retain(|name| named_time(name).is_some_and(|time| time <= newest) && !known(name));
    names.sort_unstable();
    let more = names.len() > MOST_FILES;
    names.truncate(MOST_FILES);
    (names, more)
}

fn list(inbox: &Path) -> Vec<String> {
    let Ok(files) = fs::read_dir(inbox) else {
        return Vec::new();
    };
    files.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect()
}

/// Removes what hooks that were killed half way left beside the spool.
fn sweep_unfinished(dir: &ProfileDir) {
    let beside = dir.path().join("spool/tmp");
    let now = crate::sys::clocks().realtime_ns;
    for name in list(&beside) {
        if named_time(&name).is_none_or(|time| time.saturating_add(UNFINISHED_NS) < now) {
            let _ = fs::remove_file(beside.join(name));
        }
    }
}

enum Unreadable {
    Leave,
    Garbage,
}

fn read(inbox: &Path, name: &str) -> Result<Entry, Unreadable> {
    // Without waiting: nobody may write into what only looks like a record.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(inbox.join(name));
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(Unreadable::Garbage),
        Err(_) => return Err(Unreadable::Leave),
    };
    let metadata = file.metadata().map_err(|_| Unreadable::Leave)?;
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return Err(Unreadable::Garbage);
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|_| Unreadable::Leave)?;
    decode(&bytes).map_err(|error| match error {
        RecordError::Newer(_) => Unreadable::Leave,
        RecordError::Garbage => Unreadable::Garbage,
    })
}

fn set_aside(dir: &ProfileDir, name: &str) {
    let aside = dir.path().join("spool/garbage");
    let _ = fs::create_dir(&aside);
    let _ = fs::rename(dir.inbox().join(name), aside.join(name));
}

fn held_back(entry: &Entry, now: Clocks, boot_id: &str) -> Option<Duration> {
    let Entry::Event(captured) = entry else {
        return None;
    };
    if captured.capture.boot_id != boot_id {
        return None;
    }
    let waited = Duration::from_nanos(now.boottime_ns.saturating_sub(captured.capture.boottime_ns));
    HOLD_BACK.checked_sub(waited).filter(|left| !left.is_zero())
}

/// Within a boot by BOOTTIME, then name; boots by their first REALTIME, since nothing else orders them.
fn sort(ready: &mut [Ready]) {
    let mut boots: HashMap<String, u64> = HashMap::new();
    for file in &*ready {
        if let Entry::Event(captured) = &file.entry {
            let first = boots.entry(captured.capture.boot_id.clone()).or_insert(u64::MAX);
            *first = captured.capture.realtime_ns.min(*first);
        }
    }
    ready.sort_by_cached_key(|file| match &file.entry {
        Entry::Event(captured) => {
            let boot = boots.get(&captured.capture.boot_id).copied().unwrap_or(0);
            (boot, captured.capture.boottime_ns, file.name.clone())
        }
        Entry::Note(note) => (note.realtime_ns, 0, file.name.clone()),
    });
}
