//! The SQLite store of one profile: conversation state, spans and their delivery, counters. One sender writes it; `show`
//! reads it. Knows nothing of the network. Decided in `docs/adr/0022-sqlite-in-the-sender.md`.

mod bounds;
mod clock;
mod content;
mod fold;
mod queue;
mod read;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

pub use fold::Folding;
pub use queue::{Batch, DeliveryState, Settled, Waiting};
pub use read::{ConversationRow, StoredSpan};

/// Version of the schema this program writes.
pub const SCHEMA_VERSION: i64 = 1;
/// The store's file in a profile's folder.
const FILE: &str = "store.db";

/// How long a sender waits for somebody else who reads or writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A newer program has been here: an older writer would drop what it does not know.
    #[error("{path} is of version {version}, this program writes {SCHEMA_VERSION}: update it")]
    Newer {
        /// The store's file.
        path: PathBuf,
        /// Its version.
        version: i64,
    },
    /// SQLite refused.
    #[error("store: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A row holds what this program did not write.
    #[error("store: a row cannot be read: {0}")]
    Row(#[from] serde_json::Error),
}

impl StoreError {
    /// Whether the same may work later: the store is locked, the disk full or out of order.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull, SystemIoFailure};
        let Self::Sqlite(error) = self else { return false };
        matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked | DiskFull | SystemIoFailure))
    }
}

/// The store of one profile.
#[derive(Debug)]
pub struct Store {
    db: Connection,
}

impl Store {
    /// Opens the store for writing; makes it if it is not there. Only the sender may do this.
    ///
    /// # Errors
    /// When the file is of a newer version, damaged, or cannot be written.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        let db = Connection::open(&path)?;
        db.busy_timeout(PATIENCE)?;
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > SCHEMA_VERSION {
            return Err(StoreError::Newer { path, version });
        }
        if version == 0 {
            db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        }
        db.pragma_update(None, "journal_mode", "WAL")?;
        // A batch marked as delivered must stay so after a power cut, or it would be sent twice.
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "foreign_keys", true)?;
        // Deleted content must not survive in free pages, nor pass through files elsewhere.
        db.pragma_update(None, "secure_delete", true)?;
        db.pragma_update(None, "temp_store", "MEMORY")?;
        db.pragma_update(None, "cache_size", -1024)?;
        if version == 0 {
            db.execute_batch(&format!(
                "BEGIN;\n{}\nPRAGMA user_version = {SCHEMA_VERSION};\nCOMMIT;",
                include_str!("schema.sql")
            ))?;
        }
        Ok(Self { db })
    }

    /// Opens the store of another profile, whose sender may be at work, to remove from it; None if there is none yet.
    ///
    /// # Errors
    /// When the file is of a newer version, damaged, or cannot be written.
    pub fn open_beside(folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let db = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.busy_timeout(Duration::from_secs(1))?;
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match version {
            // Its sender is just making it.
            0 => return Ok(None),
            1..=SCHEMA_VERSION => {}
            _ => return Err(StoreError::Newer { path, version }),
        }
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "foreign_keys", true)?;
        db.pragma_update(None, "secure_delete", true)?;
        db.pragma_update(None, "cache_size", -1024)?;
        Ok(Some(Self { db }))
    }

    /// Opens the store for writing; a damaged one is set aside first, beside a new one. Only the sender may do this.
    ///
    /// # Errors
    /// When the file is of a newer version or cannot be written.
    pub fn open_or_set_aside(folder: &Path, now_ns: u64) -> Result<Self, StoreError> {
        let damaged = match Self::open(folder).and_then(|store| store.check().map(|()| store)) {
            Err(StoreError::Sqlite(error)) if is_damage(&error) => folder.join(format!("damaged-{now_ns}.db")),
            other => return other,
        };
        for end in ["", "-wal", "-shm"] {
            // What is not there need not be moved; what cannot be moved shows when the new store is opened.
            let _ = std::fs::rename(folder.join(format!("{FILE}{end}")), append(&damaged, end));
        }
        let mut store = Self::open(folder)?;
        let fold = store.fold(now_ns)?;
        fold.count("store_damaged", 1)?;
        fold.commit()?;
        Ok(store)
    }

    fn check(&self) -> Result<(), StoreError> {
        let verdict: String = self.db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if verdict == "ok" {
            return Ok(());
        }
        let damage = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        Err(StoreError::Sqlite(rusqlite::Error::SqliteFailure(damage, Some(verdict))))
    }

    /// Opens the store for reading; None if there is none yet.
    ///
    /// # Errors
    /// When the file is of a newer version or damaged.
    pub fn open_read_only(folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let db = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.busy_timeout(Duration::from_secs(5))?;
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match version {
            // The sender is just making it.
            0 => Ok(None),
            1..=SCHEMA_VERSION => Ok(Some(Self { db })),
            _ => Err(StoreError::Newer { path, version }),
        }
    }

    /// Whether a newer program has taken over the file meanwhile.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        let version: Result<i64, _> = self.db.pragma_query_value(None, "user_version", |row| row.get(0));
        version.is_ok_and(|version| version > SCHEMA_VERSION)
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

fn append(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// SQLite's integers are signed; times stay below 2^63 until the year 2262.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
