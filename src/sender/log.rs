//! The sender's own log: `sender.log` and one older file, 1 MiB each, checked at every line. Never content or keys.

use std::fmt::Arguments;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::sys;

/// Most bytes of one file.
const FILE_BYTES: u64 = 1 << 20;

/// Writes `sender.log`, and the lines per export to FI_HOOK_LOG_FILE too.
#[derive(Debug)]
pub(super) struct SenderLog {
    path: PathBuf,
}

impl SenderLog {
    pub(super) fn new(folder: &Path) -> Self {
        Self { path: folder.join("sender.log") }
    }

    /// Adds one line; a log that cannot be written stops nothing.
    pub(super) fn line(&self, line: Arguments<'_>) {
        if fs::metadata(&self.path).is_ok_and(|file| file.len() >= FILE_BYTES) {
            let _ = fs::rename(&self.path, self.path.with_extension("log.1"));
        }
        append(&self.path, line);
    }

    /// Adds one line about an export, also to the user's log file.
    pub(super) fn export(&self, user_log: Option<&Path>, line: Arguments<'_>) {
        self.line(line);
        if let Some(path) = user_log {
            append(path, line);
        }
    }
}

fn append(path: &Path, line: Arguments<'_>) {
    let now = sys::clocks().realtime_ns;
    let text = format!("{}.{:03} {line}\n", now / 1_000_000_000, now / 1_000_000 % 1000);
    // A pipe that nobody reads must not hold up the sender.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = fs::OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path);
    if let Ok(mut file) = opened {
        let _ = file.write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_of_one_mebibyte_are_all_there_ever_is() {
        let base = tempfile::tempdir().unwrap();
        let log = SenderLog::new(base.path());
        let long = "x".repeat(64 * 1024);
        for _ in 0..60 {
            log.line(format_args!("{long}"));
        }
        let sizes: Vec<u64> =
            fs::read_dir(base.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= FILE_BYTES + 70_000), "{sizes:?}");
    }
}
