//! Writing what the reducer made of events: state, spans and the names of the spool files in one transaction, so that a
//! crash at any point folds each event once.

use rusqlite::{OptionalExtension, Transaction, params};

use super::content::text_of;
use super::queue::count;
use super::{Store, StoreError, signed};
use crate::conversation::{Conversation, Output, resource};
use crate::event::Origin;
use crate::export::encode::encoded_len;
use crate::span::{Role, Span};

/// One open transaction of the sender's; nothing is kept unless [`commit`](Self::commit) is called.
#[derive(Debug)]
pub struct Folding<'a> {
    transaction: Transaction<'a>,
    now_ns: u64,
}

impl Store {
    /// Starts a transaction at `now_ns` (CLOCK_REALTIME).
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn fold(&mut self, now_ns: u64) -> Result<Folding<'_>, StoreError> {
        let transaction = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        Ok(Folding { transaction, now_ns })
    }
}

impl Folding<'_> {
    /// Whether this spool file was folded before; from now on it counts as folded.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn claim_file(&self, name: &str) -> Result<bool, StoreError> {
        let mut insert = self.transaction.prepare_cached("INSERT OR IGNORE INTO folded_files (name) VALUES (?1)")?;
        Ok(insert.execute([name])? == 1)
    }

    /// Forgets files that are removed from the spool.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn forget_files<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), StoreError> {
        let mut delete = self.transaction.prepare_cached("DELETE FROM folded_files WHERE name = ?1")?;
        for name in names {
            delete.execute([name])?;
        }
        Ok(())
    }

    /// The state of a conversation, or a new one with `origin` frozen; a new one, too, if the state cannot be read.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn conversation(&self, id: &str, origin: &Origin) -> Result<Conversation, StoreError> {
        let mut select = self.transaction.prepare_cached("SELECT state FROM conversations WHERE id = ?1")?;
        let state: Option<String> = select.query_row([id], |row| row.get(0)).optional()?;
        let Some(state) = state else { return Ok(Conversation::new(origin.clone())) };
        if let Ok(conversation) = serde_json::from_str(&state) {
            return Ok(conversation);
        }
        self.count("conversation_unreadable", 1)?;
        Ok(Conversation::new(origin.clone()))
    }

    /// Keeps a conversation's state and what came out of it.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn keep(&self, id: &str, conversation: &Conversation, outputs: &[Output]) -> Result<(), StoreError> {
        let attributes = serde_json::to_string(&resource(conversation.origin()))?;
        self.transaction
            .prepare_cached("INSERT OR IGNORE INTO resources (attributes) VALUES (?1)")?
            .execute([&attributes])?;
        let resource: i64 = self
            .transaction
            .prepare_cached("SELECT id FROM resources WHERE attributes = ?1")?
            .query_row([&attributes], |row| row.get(0))?;
        self.transaction
            .prepare_cached(
                "INSERT INTO conversations (id, state, open, last_event_ns, resource) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (id) DO UPDATE SET state = ?2, open = ?3, last_event_ns = ?4",
            )?
            .execute(params![
                id,
                text_of(conversation, conversation.has_content())?,
                conversation.is_open(),
                signed(conversation.last_event_ns()),
                resource
            ])?;
        for output in outputs {
            match output {
                Output::Span(span) => self.queue(id, span, resource)?,
                Output::Session(span) => self.queue_snapshot(id, span, resource)?,
                Output::Count(reason) => self.count(reason, 1)?,
            }
        }
        Ok(())
    }

    /// Adds to a counter.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn count(&self, name: &str, by: u64) -> Result<(), StoreError> {
        count(&self.transaction, name, by, self.now_ns)
    }

    /// Makes all of it last.
    ///
    /// # Errors
    /// When SQLite refuses: nothing of it is kept then.
    pub fn commit(self) -> Result<(), StoreError> {
        Ok(self.transaction.commit()?)
    }

    fn queue(&self, conversation: &str, span: &Span, resource: i64) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached(
                "INSERT INTO spans (conversation, span_id, role, start_ns, body, bytes, resource, queued_ns)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                conversation,
                span.span_id.to_string(),
                role_name(span.role),
                signed(span.start_ns),
                text_of(span, span.has_content())?,
                signed(encoded_len(span) as u64),
                resource,
                signed(self.now_ns)
            ])?;
        Ok(())
    }

    /// A newer snapshot of the root takes the place of one that no batch holds yet.
    fn queue_snapshot(&self, conversation: &str, span: &Span, resource: i64) -> Result<(), StoreError> {
        let replaced = self
            .transaction
            .prepare_cached(
                "UPDATE spans SET body = ?2, bytes = ?3 WHERE span_id = ?1 AND outcome IS NULL AND batch IS NULL",
            )?
            .execute(params![
                span.span_id.to_string(),
                text_of(span, span.has_content())?,
                signed(encoded_len(span) as u64)
            ])?;
        if replaced == 0 { self.queue(conversation, span, resource) } else { Ok(()) }
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Session => "session",
        Role::Turn => "turn",
        Role::ModelCall => "model_call",
        Role::Tool => "tool",
    }
}
