//! Reading what is stored: for `show`, for the sender's start, for tests.

use std::collections::BTreeMap;

use rusqlite::params;

use super::{Store, StoreError, signed, unsigned};
use crate::conversation::Conversation;
use crate::span::{Span, Value};

/// A conversation as stored.
#[derive(Debug)]
pub struct ConversationRow {
    /// Its id as agy sent it.
    pub id: String,
    /// The reducer's state.
    pub state: Conversation,
    /// CLOCK_REALTIME of its last event, nanoseconds.
    pub last_event_ns: u64,
    /// Resource attributes, frozen when it began.
    pub resource: BTreeMap<String, Value>,
}

/// A span as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSpan {
    /// The span.
    pub span: Span,
    /// `delivered`, `partial`, `refused`, `expired`, `unreadable`; None while it waits.
    pub outcome: Option<String>,
}

impl Store {
    /// Conversations whose session has not ended.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn open_conversations(&self) -> Result<Vec<ConversationRow>, StoreError> {
        self.conversations_where("c.open = 1 AND ?1 = ?1", "")
    }

    /// All conversations, the newest first.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn conversations(&self) -> Result<Vec<ConversationRow>, StoreError> {
        self.conversations_where("?1 = ?1", "")
    }

    /// Conversations whose id starts like this, the newest first.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn conversations_like(&self, prefix: &str) -> Result<Vec<ConversationRow>, StoreError> {
        self.conversations_where("substr(c.id, 1, length(?1)) = ?1", prefix)
    }

    fn conversations_where(&self, condition: &str, argument: &str) -> Result<Vec<ConversationRow>, StoreError> {
        let mut select = self.db.prepare_cached(&format!(
            "SELECT c.id, c.state, c.last_event_ns, r.attributes FROM conversations c
             JOIN resources r ON r.id = c.resource WHERE {condition} ORDER BY c.last_event_ns DESC, c.id"
        ))?;
        let mut rows = select.query([argument])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            // One row that cannot be read must not keep the others; its conversation begins anew with its next event.
            let Ok(state) = serde_json::from_str(&row.get::<_, String>(1)?) else { continue };
            found.push(ConversationRow {
                id: row.get(0)?,
                state,
                last_event_ns: unsigned(row.get(2)?),
                resource: serde_json::from_str(&row.get::<_, String>(3)?).unwrap_or_default(),
            });
        }
        Ok(found)
    }

    /// The spans of a conversation by start; of a session root sent several times, the newest.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn spans(&self, conversation: &str) -> Result<Vec<StoredSpan>, StoreError> {
        let mut select = self.db.prepare_cached(
            "SELECT body, outcome FROM spans WHERE conversation = ?1
             AND id IN (SELECT max(id) FROM spans WHERE conversation = ?1 GROUP BY span_id)
             ORDER BY start_ns, id",
        )?;
        let mut rows = select.query([conversation])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            if let Ok(span) = serde_json::from_str(&row.get::<_, String>(0)?) {
                found.push(StoredSpan { span, outcome: row.get(1)? });
            }
        }
        Ok(found)
    }

    /// How many spans are stored, in whatever state.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn span_count(&self) -> Result<u64, StoreError> {
        Ok(unsigned(self.db.query_row("SELECT count(*) FROM spans", [], |row| row.get(0))?))
    }

    /// Spool files that were folded and may still lie in the spool.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn folded_files(&self) -> Result<Vec<String>, StoreError> {
        let mut select = self.db.prepare_cached("SELECT name FROM folded_files ORDER BY name")?;
        let rows = select.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// All counters by name.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut select = self.db.prepare_cached("SELECT name, count FROM counters")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, unsigned(row.get(1)?))))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes spans settled before `before_ns`, and conversations without an event since `forget_ns` (CLOCK_REALTIME,
    /// nanoseconds), and gives the freed pages back.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn sweep(&mut self, before_ns: u64, forget_ns: u64) -> Result<(), StoreError> {
        self.db.execute("DELETE FROM spans WHERE settled_ns < ?1", [signed(before_ns)])?;
        self.db.execute(
            "DELETE FROM conversations WHERE last_event_ns < ?1
             AND NOT EXISTS (SELECT 1 FROM spans WHERE conversation = conversations.id)",
            params![signed(forget_ns)],
        )?;
        self.vacuum(256)
    }
}
