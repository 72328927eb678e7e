//! `flush`: delivers what is recorded, now, and waits for it. The work is the sender's: this asks it to hurry, starts it
//! if there is none, and watches the store.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::capture::Place;
use crate::config::{self, Settings, sources};
use crate::spool::format::{Entry, FLUSH, Note};
use crate::store::{FLUSH_DONE, Store};
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
    let place = Place::find(&gathered, &settings)?;
    let folder = place.dir.path().to_owned();
    let before = counted(&folder)?;
    let clocks = sys::clocks();
    let note = Note { reason: FLUSH.to_owned(), event: String::new(), realtime_ns: clocks.realtime_ns };
    place.deposit(&Entry::Note(note), clocks)?;
    let bar = bar();
    let begun = Instant::now();
    let left = loop {
        // Again and again: the sender may have been killed meanwhile.
        place.wake_sender()?;
        let left = Left::look(&place, before)?;
        bar.set_length(left.all);
        bar.set_position(left.all - left.spans);
        let in_vain = left.folded && left.files == 0 && settings.destination.route().is_none();
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
    files: usize,
    folded: bool,
}

impl Left {
    fn look(place: &Place, before: u64) -> anyhow::Result<Self> {
        let files = std::fs::read_dir(place.dir.inbox()).map_or(0, Iterator::count);
        let folded = counted(place.dir.path())? > before;
        let (all, spans) = match Store::open_read_only(place.dir.path())? {
            Some(store) => (store.span_count()?, store.waiting()?.spans),
            None => (0, 0),
        };
        Ok(Self { all, spans, files, folded })
    }

    const fn nothing(&self) -> bool {
        self.folded && self.files == 0 && self.spans == 0
    }

    fn why(&self, settings: &Settings, folder: &Path) -> anyhow::Result<String> {
        if !self.folded || self.files > 0 {
            let log = folder.join("sender.log");
            return Ok(format!("{} events are not folded yet: see {}", self.files, log.display()));
        }
        let spans = self.spans;
        if settings.destination.route().is_none() {
            return Ok(format!("{spans} spans are not delivered: destination {}", settings.destination));
        }
        let state = Store::open_read_only(folder)?.context("the store is gone")?.delivery()?;
        let answer = match (state.message, state.reason) {
            (Some(message), Some(reason)) => format!("{reason}: {message}"),
            (_, reason) => reason.unwrap_or_else(|| "no answer yet".to_owned()),
        };
        Ok(format!("{spans} spans are left; last answer of {}: {answer}", settings.destination))
    }
}

fn counted(folder: &Path) -> anyhow::Result<u64> {
    let Some(store) = Store::open_read_only(folder)? else {
        return Ok(0);
    };
    Ok(store.counters()?.get(FLUSH_DONE).copied().unwrap_or(0))
}

/// Spans of other profiles can only be delivered with the settings of their environment, which are on no disk.
fn others(place: &Place) -> anyhow::Result<()> {
    let mut left = Vec::new();
    for (profile, folder) in super::profiles(&place.root) {
        let waiting = match Store::open_read_only(&folder) {
            Ok(Some(store)) if profile != place.profile => store.waiting()?.spans,
            _ => 0,
        };
        if waiting > 0 {
            left.push(format!("{waiting} of profile {profile}"));
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    bail!("spans are left: {}: run flush with the environment their agent had", left.join(", "))
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("delivering {bar:30} {pos}/{len} spans") {
        bar.set_style(style);
    }
    bar
}
