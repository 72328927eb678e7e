//! The recorded conversation, and a fresh id for each time it is played. Pure.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Made up from the fields measured on agy 1.4.7; `workspacePaths` is empty, as in `agy -p`, so that no excluded folder
/// can match. The form is that of `agy --play` in `tests/support/agy`.
const TEXT: &str = include_str!("../../examples/sessions/demo.ndjson");
/// The id in the recording, which the fresh one replaces wherever it stands.
const RECORDED_ID: &str = "7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11";
/// The turns in it.
pub const TURNS: usize = 2;
/// The tool calls in it.
pub const TOOLS: usize = 4;

/// One hook call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The event's name.
    pub event: String,
    #[serde(default)]
    delay_ms: u64,
    payload: Box<RawValue>,
}

impl Step {
    /// The time that passes before it.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    /// What the hook reads on its standard input.
    #[must_use]
    pub fn payload(&self) -> &str {
        self.payload.get()
    }
}

/// The recorded calls under another conversation id.
///
/// # Errors
/// When the id cannot stand in a JSON string as it is.
pub fn steps(conversation: &str) -> Result<Vec<Step>, serde_json::Error> {
    TEXT.replace(RECORDED_ID, conversation).lines().map(serde_json::from_str).collect()
}

/// A random UUID (version 4).
#[must_use]
pub fn fresh_id(random: [u8; 16]) -> String {
    let bits = u128::from_be_bytes(random) & !(0xf << 76 | 0b11 << 62) | 0x4 << 76 | 0b10 << 62;
    let digits = format!("{bits:032x}");
    let mut rest = digits.as_str();
    let groups = [8, 4, 4, 4, 12].map(|length| {
        let (group, after) = rest.split_at(length);
        rest = after;
        group
    });
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_is_what_the_words_about_it_say() {
        let id = fresh_id([0x5a; 16]);
        let steps = steps(&id).unwrap();
        let count = |event: &str| steps.iter().filter(|step| step.event == event).count();
        assert_eq!((count("Stop"), count("PreToolUse"), count("PostToolUse")), (TURNS, TOOLS, TOOLS));
        assert_eq!(steps.iter().filter(|step| step.payload().contains("exit status")).count(), 1);
        assert!(steps.iter().all(|step| step.payload().contains(&id) && !step.payload().contains(RECORDED_ID)));
        let time: Duration = steps.iter().map(Step::delay).sum();
        assert!(time > Duration::from_secs(2) && time < Duration::from_secs(4), "{time:?}");
    }

    #[test]
    fn fresh_ids_are_uuids_of_version_4() {
        assert_eq!(fresh_id([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(fresh_id([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(
            fresh_id([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]),
            "01234567-89ab-4def-8123-456789abcdef"
        );
    }
}
