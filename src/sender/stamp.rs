//! Tells whether a file changed meanwhile: the settings, and the program itself.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Tells whether a file is still the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) path: Option<PathBuf>,
    seen: Option<(u64, u64, i64, i64, u64)>,
}

impl Stamp {
    pub(super) fn of(path: Option<PathBuf>) -> Self {
        let seen = path.as_ref().and_then(|path| std::fs::metadata(path).ok());
        let seen = seen.map(|file| (file.dev(), file.ino(), file.mtime(), file.mtime_nsec(), file.size()));
        Self { path, seen }
    }

    pub(super) fn changed(&self) -> bool {
        Self::of(self.path.clone()) != *self
    }
}
