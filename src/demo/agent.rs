//! Plays the agent: runs the hooks one after the other as agy does, with their payload on standard input and the mark in
//! the environment. A process of its own, since the end of the agent's process is the end of the session.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;

use super::recording::Step;
use crate::capture::MARK;
use crate::hosts::{Host, antigravity::Antigravity};

/// Why the conversation could not be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// No hook process could be started.
    #[error("cannot run the hook of {event}: {error}")]
    Start {
        /// The event.
        event: String,
        /// What the system said.
        error: io::Error,
    },
    /// agy would have taken it for an answer.
    #[error("the hook of {event} did not give its neutral reply ({status}): please report this bug")]
    NotNeutral {
        /// The event.
        event: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// It answered well and recorded nothing.
    #[error("the hook of {event} says: {words}")]
    Complaint {
        /// The event.
        event: String,
        /// Its standard error.
        words: String,
    },
}

/// Runs the hooks with their pauses.
///
/// # Errors
/// At the first hook that does not run, does not answer as it must, or complains.
pub fn play(steps: &[Step], conversation: &str) -> Result<(), PlayError> {
    for step in steps {
        sleep(step.delay());
        let event = || step.event.clone();
        let output = hook(step, conversation).map_err(|error| PlayError::Start { event: event(), error })?;
        if !output.status.success() || output.stdout != Antigravity.reply(&step.event, None) {
            return Err(PlayError::NotNeutral { event: event(), status: output.status });
        }
        if !output.stderr.is_empty() {
            let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(PlayError::Complaint { event: event(), words });
        }
    }
    Ok(())
}

fn hook(step: &Step, conversation: &str) -> io::Result<Output> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["hook", Antigravity.id(), &step.event])
        .env(MARK, conversation)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A hook that does not read is judged by its reply.
        let _ = stdin.write_all(step.payload().as_bytes());
    }
    child.wait_with_output()
}
