//! `flush`: delivers what is recorded, now, and waits for it. The work is the sender's: this asks it to hurry, starts it
//! if there is none, and watches the store.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::capture::Place;
use crate::config::{self, Settings, sources};
use crate::spool::dir::named_time;
use crate::spool::format::{Entry, FLUSH, Note, RecordError, decode};
use crate::store::{Store, StoreError};
use crate::sys;

/// Between two looks at the store.
const LOOK: Duration = Duration::from_millis(50);

/// Delivers within `timeout`.
///
/// # Errors
/// When something is left; the text says what and why.
pub fn run(timeout: Duration) -> anyhow::Result<()> {
    let gathered = sources::gather();
    let settings = config::resolve(&gathered);
    for problem in &settings.problems {
        let _ = writeln!(std::io::stderr(), "fi-hook-to-otlp: {problem}");
    }
    let place = Place::find(&gathered, &settings)?;
    let folder = place.dir.path().to_owned();
    let clocks = sys::clocks();
    let note = Note { reason: FLUSH.to_owned(), event: String::new(), realtime_ns: clocks.realtime_ns };
    place.deposit(&Entry::Note(note), clocks)?;
    let bar = bar();
    let begun = Instant::now();
    let left = loop {
        // Again and again: the sender may have been killed meanwhile.
        place.wake_sender()?;
        let left = Left::look(&place)?;
        bar.set_length(left.all);
        bar.set_position(left.all.saturating_sub(left.spans));
        let in_vain = left.folded() && settings.destination.route().is_none();
        if left.nothing() || in_vain || begun.elapsed() >= timeout {
            break left;
        }
        std::thread::sleep(LOOK);
    };
    bar.finish_and_clear();
    if !left.nothing() {
        bail!("{}", left.why(&settings, &folder)?);
    }
    others(&place)
}

/// What is still to be delivered.
struct Left {
    /// Spans in the store, delivered or not.
    all: u64,
    spans: u64,
    /// In the spool, with the note that asks: it goes when all before it is folded, and what can be closed is closed.
    files: usize,
    /// Whether there is a store that can be read.
    store: bool,
}

impl Left {
    fn look(place: &Place) -> anyhow::Result<Self> {
        let files = records(&place.dir.inbox()).count();
        let folder = place.dir.path();
        // Between the two numbers the sender may add spans.
        let look = |store: Store| Ok((store.waiting()?.spans, store.span_count()?));
        let seen = tolerant(Store::open_read_only(folder).and_then(|store| store.map(look).transpose()))?;
        let (spans, all) = seen.unwrap_or_default();
        Ok(Self { all, spans, files, store: seen.is_some() })
    }

    const fn folded(&self) -> bool {
        self.store && self.files == 0
    }

    const fn nothing(&self) -> bool {
        self.folded() && self.spans == 0
    }

    fn why(&self, settings: &Settings, folder: &Path) -> anyhow::Result<String> {
        let newer = records(&folder.join("spool/new")).filter(|file| is_newer(file)).count();
        if newer > 0 {
            return Ok(format!("{newer} events were recorded by a newer version of this program: update it"));
        }
        if !self.folded() {
            let log = folder.join("sender.log");
            return Ok(format!("{} events are not folded yet: see {}", self.files, log.display()));
        }
        let store = Store::open_read_only(folder)?.context("the store is gone")?;
        let spans = store.undelivered()?;
        if settings.destination.route().is_none() {
            return Ok(format!("{spans} spans are not delivered: destination {}", settings.destination));
        }
        let state = store.delivery()?;
        if matches!(state.outcome.as_deref(), Some("delivered" | "partial")) {
            return Ok(format!(
                "{spans} spans are left: {} refused them, and they are tried again",
                settings.destination
            ));
        }
        let answer = match (state.message, state.reason) {
            (Some(message), Some(reason)) => format!("{reason}: {message}"),
            (_, reason) => reason.unwrap_or_else(|| "no answer yet".to_owned()),
        };
        Ok(format!("{spans} spans are left; last answer of {}: {answer}", settings.destination))
    }
}

/// The files of the spool that may be records.
fn records(inbox: &Path) -> impl Iterator<Item = PathBuf> {
    let files = std::fs::read_dir(inbox).into_iter().flatten().flatten();
    files.map(|file| file.path()).filter(|path| {
        path.file_name().and_then(std::ffi::OsStr::to_str).is_some_and(|name| named_time(name).is_some())
    })
}

fn is_newer(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|bytes| matches!(decode(&bytes), Err(RecordError::Newer(_))))
}

/// A store that SQLite refuses is the sender's business: it sets a damaged one aside.
fn tolerant<T>(seen: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match seen {
        Err(StoreError::Sqlite(_)) => Ok(None),
        other => other,
    }
}

/// What is in other profiles can only be delivered with the settings of their environment, which are on no disk.
fn others(place: &Place) -> anyhow::Result<()> {
    let others = super::profiles(&place.root).into_iter().filter(|(profile, _)| *profile != place.profile);
    let mut left = Vec::new();
    for (profile, folder) in others {
        // First: what is folded meanwhile is then in both rather than in neither.
        let files = records(&folder.join("spool/new")).count() as u64;
        let spans = match Store::open_read_only(&folder) {
            Ok(Some(store)) => store.waiting()?.spans,
            _ => 0,
        };
        if files + spans > 0 {
            left.push(format!("{} of profile {profile}", files + spans));
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    bail!("events or spans are left: {}: run flush with the environment their agent had", left.join(", "))
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("delivering {bar:30} {pos}/{len} spans") {
        bar.set_style(style);
    }
    bar
}
