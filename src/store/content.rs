//! Content in the store: where it lies while a span waits, and that nothing of it is left once the span has its outcome.
//! Decided in `docs/adr/0041-opt-in-content.md`.

use rusqlite::{Connection, params};
use serde::Serialize;

use super::{Store, StoreError};
use crate::span::Span;

/// Blanks before a JSON text that holds content: more than a page has room for.
///
/// SQLite writes zeroes over what is deleted (`secure_delete`), but copies rows to other places of a page when it moves
/// them, and those copies are never overwritten. Only the beginning of a long row lies in such a page; the rest lies in
/// pages of its own, which are not copied. So the beginning is blank.
const PADDING: usize = 4096;

/// The JSON text of a row.
pub(super) fn text_of(row: &impl Serialize, has_content: bool) -> Result<String, StoreError> {
    let text = serde_json::to_string(row)?;
    Ok(if has_content { format!("{:PADDING$}{text}", "") } else { text })
}

/// Takes the content out of a batch's spans.
pub(super) fn forget(transaction: &Connection, batch: i64) -> Result<(), StoreError> {
    // Rows without padding have none, so the others need not be read.
    let mut select =
        transaction.prepare_cached("SELECT id, body FROM spans WHERE batch = ?1 AND substr(body, 1, 1) = ' '")?;
    let rows = select.query_map([batch], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let rows = rows.collect::<Result<Vec<(i64, String)>, _>>()?;
    let mut update = transaction.prepare_cached("UPDATE spans SET body = ?2 WHERE id = ?1")?;
    for (id, body) in &rows {
        // What cannot be read has been given up.
        let without = serde_json::from_str(body).map_or(Ok(String::new()), |mut span: Span| {
            span.forget_content();
            text_of(&span, false)
        });
        update.execute(params![id, without?])?;
    }
    Ok(())
}

impl Store {
    /// Clears what was removed out of the write-ahead log, too. False if somebody reads at the moment: then it has to be
    /// tried again.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn clear_log(&mut self) -> Result<bool, StoreError> {
        // Not the usual patience with readers: the sender has other things to do.
        self.db.busy_timeout(std::time::Duration::ZERO)?;
        let busy = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        self.db.busy_timeout(super::PATIENCE)?;
        Ok(!busy?)
    }
}

#[cfg(test)]
mod tests;
