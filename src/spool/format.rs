//! The versioned record of a spool file. Pure: bytes in, bytes out.
//!
//! A reader that meets a newer version leaves the file alone and says so; one that meets garbage sets it aside.

use serde::{Deserialize, Serialize};

use crate::event::{Capture, Event, Origin};
use crate::redact::Redacted;

/// Reason of the note by which `flush` asks the sender to hurry.
pub const FLUSH: &str = "flush_asked";

/// How large most records are at most, without and with content. Buffers of pages that grow are mapped anew each time.
const USUAL_BYTES: usize = 1 << 10;
const CONTENT_BYTES: usize = 8 << 10;

/// Version of the records this program writes.
pub const VERSION: u32 = 1;

/// What a spool file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// One event of a conversation.
    Event(Box<Captured>),
    /// Something that gives no event but must be counted.
    Note(Note),
}

/// One event, with when, where and under which settings it was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// When, where and by whom.
    pub capture: Capture,
    /// The settings that belong to the data, as they were then.
    pub origin: Origin,
    /// What happened.
    pub event: Redacted<Event>,
}

/// A hook call that gave no event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The counter's name.
    pub reason: String,
    /// The event's name from the command line, at most 64 characters.
    pub event: String,
    /// CLOCK_REALTIME, nanoseconds since 1970.
    pub realtime_ns: u64,
}

/// Why a spool file cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A newer program wrote it.
    #[error("record of version {0}, this program reads up to {VERSION}: update it")]
    Newer(u32),
    /// Nothing that this or an older version wrote.
    #[error("not a spool record")]
    Garbage,
}

#[derive(Serialize)]
struct Written<'a> {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<&'a Capture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a Event>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a Note>,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

#[derive(Deserialize)]
struct Read {
    capture: Option<Capture>,
    origin: Option<Origin>,
    event: Option<Event>,
    note: Option<Note>,
}

/// The bytes of a record.
#[must_use]
pub fn encode(entry: &Entry) -> Vec<u8> {
    let written = match entry {
        Entry::Event(captured) => Written {
            v: VERSION,
            capture: Some(&captured.capture),
            origin: Some(&captured.origin),
            event: Some(&captured.event),
            note: None,
        },
        Entry::Note(note) => Written { v: VERSION, capture: None, origin: None, event: None, note: Some(note) },
    };
    let content = written.event.is_some_and(|event| event.told.is_some());
    let mut record = Vec::with_capacity(if content { CONTENT_BYTES } else { USUAL_BYTES });
    // Strings, numbers and maps with string keys only, into memory: this cannot fail.
    let _ = serde_json::to_writer(&mut record, &written);
    record
}

/// Reads a record.
///
/// # Errors
/// When it is of a newer version, or no record at all.
pub fn decode(bytes: &[u8]) -> Result<Entry, RecordError> {
    let Version { v } = serde_json::from_slice(bytes).map_err(|_| RecordError::Garbage)?;
    if v > VERSION {
        return Err(RecordError::Newer(v));
    }
    let read: Read = serde_json::from_slice(bytes).map_err(|_| RecordError::Garbage)?;
    match read {
        Read { capture: Some(capture), origin: Some(origin), event: Some(event), note: None } => {
            Ok(Entry::Event(Box::new(Captured { capture, origin, event: Redacted::from_spool(event) })))
        }
        Read { note: Some(note), .. } => Ok(Entry::Note(note)),
        Read { .. } => Err(RecordError::Garbage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Action, Agent, Invocation};
    use crate::redact::{self, Allowed};

    fn sample() -> Entry {
        Entry::Event(Box::new(Captured {
            capture: Capture {
                realtime_ns: 1_790_000_000_000_000_000,
                boottime_ns: 5,
                boot_id: "b".into(),
                agent: Some(Agent { pid: 42, started_ns: 3, namespace: 7, marked: true }),
                registration: u64::MAX,
                traceparent: None,
            },
            origin: Origin { service_name: "antigravity-cli".into(), ..Origin::default() },
            event: redact::event(
                Event::new("c".into(), Action::PreInvocation(Invocation { num: Some(0), initial_steps: None })),
                &Allowed::default(),
            ),
        }))
    }

    #[test]
    fn records_are_read_back_as_written() {
        let note = Entry::Note(Note { reason: "unknown_event".into(), event: "X".into(), realtime_ns: 1 });
        for entry in [sample(), note] {
            assert_eq!(decode(&encode(&entry)), Ok(entry));
        }
    }

    #[test]
    fn version_1_reads_as_it_was_first_written() {
        let written = r#"{"v":1,"capture":{"realtime_ns":1790000000000000000,"boottime_ns":5,"boot_id":"b","agent":{"pid":42,"started_ns":3,"namespace":7,"marked":true},"registration":18446744073709551615},"origin":{"service_name":"antigravity-cli","project_name":""},"event":{"conversation":"c","action":{"event":"PreInvocation","num":0}}}"#;
        assert_eq!(String::from_utf8(encode(&sample())).unwrap(), written);
        assert_eq!(decode(written.as_bytes()), Ok(sample()));
    }

    #[test]
    fn newer_and_broken_records_are_told_apart() {
        assert_eq!(decode(br#"{"v":2,"anything":[]}"#), Err(RecordError::Newer(2)));
        for garbage in [&b""[..], b"\0\0\0", b"{}", br#"{"v":1}"#, br#"{"v":1,"event":{}}"#, b"[1]", br#"{"v":1,"#] {
            assert_eq!(decode(garbage), Err(RecordError::Garbage), "{garbage:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_lies_in_the_spool_is_read_or_refused(
            noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
            at in proptest::prelude::any::<proptest::sample::Index>(),
            taken in 0usize..20,
        ) {
            // A record in which something was overwritten, as a broken disk or a stranger would.
            let mut bytes = encode(&sample());
            let start = at.index(bytes.len());
            let end = bytes.len().min(start + taken);
            bytes.splice(start..end, noise.iter().copied());
            for bytes in [bytes, noise] {
                if let Ok(entry) = decode(&bytes) {
                    proptest::prop_assert_eq!(decode(&encode(&entry)), Ok(entry));
                }
            }
        }
    }
}
