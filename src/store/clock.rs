//! Times in the store are of the wall clock, since they outlive boots. When that is stepped, they go with it: else what was
//! queued a minute ago would be too old, or its next try a year away.

use rusqlite::params;

use super::{Store, StoreError};

/// What drift and leap seconds may do to the wall clock without being a step.
const DRIFT_NS: u64 = 60 * 1_000_000_000;

impl Store {
    /// Moves the times of what waits by as much as the wall clock was stepped in this boot since the last call; returns
    /// by how much, in nanoseconds.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn follow_wall_clock(&mut self, boot_id: &str, realtime_ns: u64, boottime_ns: u64) -> Result<i64, StoreError> {
        let offset = i64::try_from(i128::from(realtime_ns) - i128::from(boottime_ns)).unwrap_or(0);
        let transaction = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let known: (Option<String>, Option<i64>) =
            transaction
                .query_row("SELECT boot_id, wall_offset_ns FROM delivery", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let step = match &known {
            (Some(boot), Some(before)) if boot == boot_id && !boot_id.is_empty() => offset.saturating_sub(*before),
            _ => 0,
        };
        let step = if step.unsigned_abs() > DRIFT_NS { step } else { 0 };
        if step != 0 {
            for (table, column) in [
                ("spans", "queued_ns"),
                ("spans", "settled_ns"),
                ("batches", "first_try_ns"),
                ("batches", "next_try_ns"),
                ("delivery", "next_try_ns"),
            ] {
                // 0 means at once, and NULL never; a time does not become either.
                let shift = format!("UPDATE {table} SET {column} = max(1, {column} + ?1) WHERE {column} > 0");
                transaction.execute(&shift, [step])?;
            }
        }
        if step != 0 || known.0.as_deref() != Some(boot_id) {
            transaction.execute("UPDATE delivery SET boot_id = ?1, wall_offset_ns = ?2", params![boot_id, offset])?;
        }
        transaction.commit()?;
        Ok(step)
    }
}
