//! What goes when there is too much or it is too old: the oldest first, each counted with its reason.

use super::queue::count;
use super::{Store, StoreError, signed, unsigned};

impl Store {
    /// Gives up what has waited since before `before_ns` (CLOCK_REALTIME, nanoseconds); returns how many spans.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn expire(&mut self, before_ns: u64, now_ns: u64) -> Result<u64, StoreError> {
        let old = "outcome IS NULL AND queued_ns < ?1";
        self.give_up(old, before_ns, "expired_max_days", now_ns)
    }

    /// Gives up the `most` spans that have waited longest; returns how many there were.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn drop_oldest(&mut self, most: u64, now_ns: u64) -> Result<u64, StoreError> {
        let oldest = "id IN (SELECT id FROM spans WHERE outcome IS NULL ORDER BY id LIMIT ?1)";
        self.give_up(oldest, most, "dropped_max_mb", now_ns)
    }

    /// Since when the oldest span waits (CLOCK_REALTIME, nanoseconds); None if none does.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn oldest_waiting_ns(&self) -> Result<Option<u64>, StoreError> {
        let mut select = self.db.prepare_cached("SELECT min(queued_ns) FROM spans WHERE outcome IS NULL")?;
        Ok(select.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(unsigned))
    }

    /// Gives the space of what was removed back to the disk.
    ///
    /// # Errors
    /// When SQLite refuses; a reader at the same time is no error.
    pub fn shrink(&mut self) -> Result<(), StoreError> {
        self.vacuum(0)?;
        // The answer is a row: busy, frames, checkpointed. A reader that holds the journal only postpones it.
        self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    /// Gives up to `pages` free pages back to the disk; 0 means all.
    pub(super) fn vacuum(&self, pages: u32) -> Result<(), StoreError> {
        // Each step of this statement frees one page, so it has to be run to its end.
        let mut vacuum = self.db.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut steps = vacuum.query([])?;
        while steps.next()?.is_some() {}
        Ok(())
    }

    fn give_up(&mut self, which: &str, argument: u64, reason: &str, now_ns: u64) -> Result<u64, StoreError> {
        let transaction = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let gone = transaction.execute(&format!("DELETE FROM spans WHERE {which}"), [signed(argument)])? as u64;
        if gone > 0 {
            transaction
                .execute("DELETE FROM batches WHERE id NOT IN (SELECT batch FROM spans WHERE batch IS NOT NULL)", [])?;
            count(&transaction, reason, gone, now_ns)?;
        }
        transaction.commit()?;
        Ok(gone)
    }
}
