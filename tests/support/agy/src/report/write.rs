//! Writes the report and keeps its totals.
//!
//! Owns the only handle; after the last line nothing is written any more.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Record, Totals};

/// Where records go.
pub(crate) struct Writer(Mutex<State>);

struct State {
    out: Box<dyn Write + Send>,
    totals: Totals,
    finished: bool,
}

impl Writer {
    /// Writes to a file, or to stdout.
    ///
    /// # Errors
    /// As `File::create`.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let out: Box<dyn Write + Send> = match path {
            Some(path) => Box::new(File::create(path)?),
            None => Box::new(io::stdout()),
        };
        Ok(Self(Mutex::new(State { out, totals: Totals::default(), finished: false })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts and writes one record.
    pub(crate) fn record(&self, record: &Record) {
        let mut state = self.lock();
        if !state.finished {
            count(&mut state.totals, record);
            state.line(record);
        }
    }

    /// Notes the number of steps of a conversation.
    pub(crate) fn steps(&self, conversation: &str, steps: u64) {
        self.lock().totals.conversations.insert(conversation.to_owned(), steps);
    }

    /// Writes the last line; later calls do nothing.
    pub(crate) fn finish(&self, exit_code: i32, interrupted_by: Option<i32>) {
        let mut state = self.lock();
        if !state.finished {
            state.finished = true;
            state.totals.exit_code = exit_code;
            state.totals.interrupted_by = interrupted_by;
            let totals = Record::Totals(state.totals.clone());
            state.line(&totals);
        }
    }
}

impl State {
    fn line(&mut self, record: &Record) {
        match serde_json::to_vec(record) {
            Ok(mut line) => {
                line.push(b'\n');
                // Nobody may be reading any more; the conversation goes on as agy's would.
                _ = self.out.write_all(&line).and_then(|()| self.out.flush());
            }
            Err(error) => eprintln!("agy: cannot write a report line: {error}"),
        }
    }
}

fn count(totals: &mut Totals, record: &Record) {
    match record {
        Record::Hook(hook) => {
            *totals.hooks.entry(hook.event).or_default() += 1;
            totals.faults += u64::from(hook.fault.is_some());
            totals.timeouts += u64::from(hook.timed_out);
        }
        Record::Tool(tool) => *totals.tools.entry(tool.result).or_default() += 1,
        Record::Turn(turn) => *totals.turns.entry(turn.ended).or_default() += 1,
        Record::Start(_) | Record::Totals(_) => {}
    }
}
