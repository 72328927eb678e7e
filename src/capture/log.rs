//! The line per event in FI_HOOK_LOG_FILE. Holds names, numbers and reasons, never content or keys.

use std::io::Write;
use std::path::Path;

use super::CaptureError;
use crate::spool::format::Entry;

/// Adds one line; a log that cannot be written is not worth a word to the agent.
pub(super) fn append(path: &Path, realtime_ns: u64, event: &str, entry: &Entry, error: Option<&CaptureError>) {
    let seconds = realtime_ns / 1_000_000_000;
    let millis = realtime_ns / 1_000_000 % 1000;
    let event = crate::redact::name(event, 64);
    let subject = match entry {
        Entry::Event(captured) => format!("conversation={}", captured.event.conversation.replace(' ', "_")),
        Entry::Note(note) => format!("skipped={}", note.reason),
    };
    let outcome = match error {
        None => "spool=ok".to_owned(),
        Some(error) => format!("error={error:?}", error = error.to_string()),
    };
    let line = format!("{seconds}.{millis:03} event={event} {subject} {outcome}\n");
    let opened = {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe that nobody reads must not hold up the agent.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        std::fs::OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)
    };
    if let Ok(mut file) = opened {
        // One write, so that lines of hooks at the same time do not mix.
        let _ = file.write_all(line.as_bytes());
    }
}
