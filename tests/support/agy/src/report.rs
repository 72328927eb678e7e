//! The report: one JSON line per hook run, tool and turn, a first line about hooks.json files and a last one of totals.
//!
//! Each line is written by one call, so that a killed program leaves whole lines behind. This file has the records and the
//! reader; the writer is `report::write`.

mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::behaviour::Behaviour;
use crate::event::Event;
use crate::hooks::LoadedFile;

pub(crate) use write::Writer;

/// One line: an object of one member. (A tag inside the object would not go with `RawValue`.)
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Record {
    Start(Box<Start>),
    Hook(Box<HookRecord>),
    Tool(ToolRecord),
    Turn(TurnRecord),
    Totals(Totals),
}

/// The first line: what was loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    /// The process id.
    pub pid: u32,
    /// The agy that is played.
    pub behaviour: Behaviour,
    /// Every place where a hooks.json may stand, and what came of it.
    pub files: Vec<LoadedFile>,
}

/// One run of one hook command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookRecord {
    /// The event.
    pub event: Event,
    /// The conversation.
    pub conversation: String,
    /// The key in hooks.json.
    pub name: String,
    /// agy's name for the handler, `jsonhook__<name>_<Event>_<i>_<j>`.
    pub id: String,
    /// The hooks.json.
    pub file: PathBuf,
    /// The command.
    pub command: String,
    /// The payload, as written to stdin.
    pub payload: Box<RawValue>,
    /// The shell's process id.
    pub pid: u32,
    /// When it started, in nanoseconds since the epoch.
    pub started_unix_ns: u64,
    /// The exit code; absent if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its stdout; with U+FFFD where it is not UTF-8.
    pub stdout: String,
    /// The bytes of stdout in hexadecimal, if they are not UTF-8.
    pub stdout_hex: Option<String>,
    /// Its stderr.
    pub stderr: String,
    /// Milliseconds from its start to the end of stdout; absent if stdout never ended.
    pub stdout_ms: Option<f64>,
    /// Milliseconds from its start to the end of the process.
    pub exit_ms: Option<f64>,
    /// Milliseconds for which agy waited.
    pub wall_ms: f64,
    /// Whether its time was up.
    pub timed_out: bool,
    /// Whether it left before it had read all of stdin.
    pub stdin_unread: bool,
    /// What its reply meant: `neutral`, `allow`, `deny: …`, `abort: …`, `continue`, ….
    pub effect: String,
    /// What agy would log as an error, whatever it did about it.
    pub fault: Option<String>,
}

/// What became of one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRecord {
    /// The conversation.
    pub conversation: String,
    /// The step.
    pub step_idx: u64,
    /// The tool.
    pub name: String,
    /// What became of it.
    pub result: ToolResult,
    /// Why; empty where the result says it all. For a tool that ran, its error.
    pub reason: String,
}

/// What became of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolResult {
    /// It ran, with or without an error.
    Ran,
    /// A hook denied it.
    Denied,
    /// It needed a question and nobody could be asked.
    SoftDenied,
    /// The user denied it.
    UserDenied,
    /// The user left the dialog with Esc.
    Escaped,
    /// agy refused it before any hook.
    Rejected,
    /// agy refused it after `PreToolUse`.
    FailedCheck,
    /// Another tool of its parallel group ended the turn first.
    Interrupted,
}

/// How one turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRecord {
    /// The conversation.
    pub conversation: String,
    /// Its place in the conversation's part of the script, from 0.
    pub turn: usize,
    /// How it ended.
    pub ended: TurnEnd,
    /// The termination reason of its last `Stop`, or why it was aborted.
    pub reason: String,
    /// How often a Stop hook continued it.
    pub continued: u32,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TurnEnd {
    /// With `Stop`.
    Stopped,
    /// Without `Stop`, as scripted.
    NoStop,
    /// By Esc, while the model answered or at a dialog.
    Escaped,
    /// By "No, deny".
    UserDenied,
    /// By a tool that needed a question in a headless run: no `Stop` (measured 1.1.12).
    SoftDenied,
    /// By a hook's reply around a model call; the program ends with exit code 1 (measured 1.2.1).
    Aborted,
    /// By the end of the program.
    Halted,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Hook runs, by event.
    pub hooks: BTreeMap<Event, u64>,
    /// Tools, by result.
    pub tools: BTreeMap<ToolResult, u64>,
    /// Turns, by end.
    pub turns: BTreeMap<TurnEnd, u64>,
    /// Hook runs that agy would log as an error.
    pub faults: u64,
    /// Hook runs whose time was up.
    pub timeouts: u64,
    /// The number of steps of each conversation; what `resumeAt` of a later run wants.
    pub conversations: BTreeMap<String, u64>,
    /// The signal that ended the program.
    pub interrupted_by: Option<i32>,
    /// The program's exit code.
    pub exit_code: i32,
}

/// A report that was read.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was loaded.
    pub start: Option<Start>,
    /// The hook runs, in the order in which they ended.
    pub hooks: Vec<HookRecord>,
    /// The tools, in the order in which they ended.
    pub tools: Vec<ToolRecord>,
    /// The turns, in the order in which they ended.
    pub turns: Vec<TurnRecord>,
    /// The totals; absent if the program was killed.
    pub totals: Option<Totals>,
}

/// A report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file cannot be read.
    #[error("cannot read the report {path}: {source}; was the program started with --report?")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not of a report.
    #[error("line {line} is not of a report: {source}; give only what the program wrote")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
}

impl Report {
    /// Reads a report from its text. A last line without a line end is that of a killed program and left out.
    ///
    /// # Errors
    /// [`ReportError::Line`] for the first line that is none of a report.
    pub fn parse(text: &str) -> Result<Self, ReportError> {
        let mut report = Self::default();
        for (index, line) in text.split_inclusive('\n').filter(|line| line.ends_with('\n')).enumerate() {
            let record = serde_json::from_str(line).map_err(|source| ReportError::Line { line: index + 1, source })?;
            match record {
                Record::Start(start) => report.start = Some(*start),
                Record::Hook(hook) => report.hooks.push(*hook),
                Record::Tool(tool) => report.tools.push(tool),
                Record::Turn(turn) => report.turns.push(turn),
                Record::Totals(totals) => report.totals = Some(totals),
            }
        }
        Ok(report)
    }

    /// Reads a report file.
    ///
    /// # Errors
    /// As [`Self::parse`], and [`ReportError::Unreadable`].
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ReportError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// The events in the order in which their hooks ended.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.hooks.iter().map(|hook| hook.event).collect()
    }

    /// The hook runs of one event.
    pub fn hooks_of(&self, event: Event) -> impl Iterator<Item = &HookRecord> {
        self.hooks.iter().filter(move |hook| hook.event == event)
    }

    /// The hook runs of one name.
    pub fn hooks_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a HookRecord> {
        self.hooks.iter().filter(move |hook| hook.name == name)
    }

    /// The hook runs that agy would log as an error.
    pub fn faults(&self) -> impl Iterator<Item = &HookRecord> {
        self.hooks.iter().filter(|hook| hook.fault.is_some())
    }
}

impl HookRecord {
    /// The exact bytes of stdout.
    #[must_use]
    pub fn stdout_bytes(&self) -> Vec<u8> {
        let Some(hex) = &self.stdout_hex else { return self.stdout.clone().into_bytes() };
        let digits: Vec<u8> =
            hex.chars().filter_map(|digit| digit.to_digit(16)).filter_map(|digit| u8::try_from(digit).ok()).collect();
        digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"{"tool":{"conversation":"c","stepIdx":2,"name":"view_file","result":"ran","reason":""}}"#;

    #[test]
    fn the_torn_last_line_of_a_killed_program_is_left_out() {
        let report = Report::parse(&format!("{TOOL}\n{}", TOOL.split_at(20).0)).unwrap();
        assert_eq!((report.tools.len(), report.totals.is_none()), (1, true));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let error = Report::parse(&format!("{TOOL}\n{{\"other\":1}}\n")).unwrap_err().to_string();
        assert!(error.starts_with("line 2 is not of a report"), "{error}");
    }
}
