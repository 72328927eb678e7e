//! The hand-over from hook processes to the sender: one file per event, written beside and renamed into place, so that
//! a reader never sees half a record and writers never wait for each other.
//! Decided in `docs/adr/0021-spool-of-files.md`.

pub mod dir;
pub mod format;
pub mod key;
