//! Batches: which spans go together is written down before the first try and frozen until an answer is recorded, so
//! that a batch that is sent again is the same batch.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{Store, StoreError, content, signed, unsigned};
use crate::span::{Span, Value};

/// Most spans of a batch.
const BATCH_SPANS: usize = 512;
/// Most bytes of a batch, encoded: receivers refuse 4 MiB (gRPC default), one here 1 MiB.
const BATCH_BYTES: u64 = 1 << 20;

/// Spans that go out together.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The store's number for it.
    pub id: i64,
    /// Resource attributes, the same for all spans of it.
    pub resource: BTreeMap<String, Value>,
    /// In order of export.
    pub spans: Vec<Span>,
    /// How often it was sent before.
    pub tries: u32,
    /// CLOCK_REALTIME of the first try, nanoseconds; 0 before it.
    pub first_try_ns: u64,
}

/// What an answer means for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// All spans were taken.
    Delivered,
    /// Some were not, and must not be sent again: `rejected` of them.
    Partial {
        /// How many spans the receiver threw away.
        rejected: u64,
    },
    /// The receiver refuses this data: split it, or set its one span aside.
    Refused,
    /// The same batch again, not before this CLOCK_REALTIME in nanoseconds.
    Again {
        /// When.
        next_try_ns: u64,
    },
}

/// What is still to be delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// All spans without an outcome; a root counts for each of its snapshots.
    pub spans: u64,
    /// Those of them that are in a batch.
    pub frozen: u64,
    /// CLOCK_REALTIME at which the first batch is due, nanoseconds; None without batches.
    pub due_ns: Option<u64>,
}

/// How the destination answered last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryState {
    /// `delivered`, `partial`, `retry`, `refused` or `configuration`; None before the first answer.
    pub outcome: Option<String>,
    /// Machine-readable, e.g. `http_503`.
    pub reason: Option<String>,
    /// In plain words.
    pub message: Option<String>,
    /// CLOCK_REALTIME of the last acceptance, nanoseconds.
    pub delivered_ns: Option<u64>,
    /// CLOCK_REALTIME of the first of the present row of failures, nanoseconds.
    pub failing_since_ns: Option<u64>,
    /// Failures in a row.
    pub failures: u32,
    /// No try before this CLOCK_REALTIME, nanoseconds.
    pub next_try_ns: u64,
    /// Whether the receiver refused gzip, so that bodies go uncompressed.
    pub plain: bool,
}

impl Batch {
    /// Whether the user's content is in it.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.spans.iter().any(Span::has_content)
    }
}

impl Store {
    /// The next batch to send at `now_ns`: a frozen one that is due, else a new one of what waits, frozen by this call.
    ///
    /// # Errors
    /// When SQLite refuses or a row cannot be read.
    pub fn next_batch(&mut self, now_ns: u64) -> Result<Option<Batch>, StoreError> {
        let transaction = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let due: Option<i64> = transaction
            .prepare_cached("SELECT id FROM batches WHERE next_try_ns <= ?1 OR next_try_ns > ?2 ORDER BY id LIMIT 1")?
            // Later than any pause: the wall clock was set back.
            .query_row([signed(now_ns), signed(now_ns.saturating_add(REFUSED_PAUSE_MOST_NS))], |row| row.get(0))
            .optional()?;
        let mut batch = None;
        let mut next = due;
        // A batch of which nothing can be read is none.
        while batch.is_none() {
            let Some(id) = next.take().map_or_else(|| freeze(&transaction), |id| Ok(Some(id)))? else { break };
            batch = load(&transaction, id, now_ns)?;
        }
        transaction.commit()?;
        Ok(batch)
    }

    /// Records that a batch is about to be sent.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn trying(&mut self, batch: i64, now_ns: u64) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "UPDATE batches SET tries = tries + 1, first_try_ns = coalesce(first_try_ns, ?2) WHERE id = ?1",
            )?
            .execute(params![batch, signed(now_ns)])?;
        Ok(())
    }

    /// Records the answer to a batch, with the delivery state that follows from it. Spans with an outcome lose their
    /// content; [`clear_log`](Self::clear_log) has to follow.
    ///
    /// # Errors
    /// When SQLite refuses: the batch is sent again then.
    pub fn settle(
        &mut self,
        batch: &Batch,
        settled: Settled,
        state: &DeliveryState,
        now_ns: u64,
    ) -> Result<(), StoreError> {
        let transaction = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        match settled {
            Settled::Delivered => close(&transaction, batch.id, "delivered", now_ns)?,
            Settled::Partial { rejected } => {
                count(&transaction, "rejected_by_receiver", rejected, now_ns)?;
                close(&transaction, batch.id, "partial", now_ns)?;
            }
            Settled::Refused => refuse(&transaction, batch, now_ns)?,
            Settled::Again { next_try_ns } => {
                transaction
                    .prepare_cached("UPDATE batches SET next_try_ns = ?2 WHERE id = ?1")?
                    .execute(params![batch.id, signed(next_try_ns)])?;
            }
        }
        write_state(&transaction, state, now_ns)?;
        Ok(transaction.commit()?)
    }

    /// How the destination answered last.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn delivery(&self) -> Result<DeliveryState, StoreError> {
        let mut select = self.db.prepare_cached(
            "SELECT outcome, reason, message, delivered_ns, failing_since_ns, failures, next_try_ns, plain FROM delivery",
        )?;
        Ok(select.query_row([], |row| {
            Ok(DeliveryState {
                outcome: row.get(0)?,
                reason: row.get(1)?,
                message: row.get(2)?,
                delivered_ns: row.get::<_, Option<i64>>(3)?.map(unsigned),
                failing_since_ns: row.get::<_, Option<i64>>(4)?.map(unsigned),
                failures: row.get(5)?,
                next_try_ns: unsigned(row.get(6)?),
                plain: row.get(7)?,
            })
        })?)
    }

    /// Lets the next try happen at once, with everything that was learnt of the receiver forgotten: the settings have
    /// changed, or the user asks.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn retry_now(&mut self) -> Result<(), StoreError> {
        self.db.execute("UPDATE delivery SET next_try_ns = 0, plain = 0", [])?;
        self.db.execute("UPDATE batches SET next_try_ns = 0", [])?;
        Ok(())
    }

    /// How many spans are still to be delivered; a root of which several snapshots wait is one.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn undelivered(&self) -> Result<u64, StoreError> {
        let count = "SELECT count(DISTINCT span_id) FROM spans WHERE outcome IS NULL";
        Ok(unsigned(self.db.query_row(count, [], |row| row.get(0))?))
    }

    /// What is still to be delivered.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn waiting(&self) -> Result<Waiting, StoreError> {
        let mut select = self.db.prepare_cached(
            "SELECT (SELECT count(*) FROM spans WHERE outcome IS NULL),
             (SELECT count(*) FROM spans WHERE batch IS NOT NULL), (SELECT min(next_try_ns) FROM batches)",
        )?;
        Ok(select.query_row([], |row| {
            Ok(Waiting {
                spans: unsigned(row.get(0)?),
                frozen: unsigned(row.get(1)?),
                due_ns: row.get::<_, Option<i64>>(2)?.map(unsigned),
            })
        })?)
    }
}

/// Freezes the oldest waiting spans of one resource as a batch; None when nothing waits.
fn freeze(transaction: &Transaction<'_>) -> Result<Option<i64>, StoreError> {
    let mut waiting = transaction
        .prepare_cached("SELECT id, resource, bytes FROM spans WHERE outcome IS NULL AND batch IS NULL ORDER BY id")?;
    let mut rows = waiting.query([])?;
    let (mut members, mut resource, mut size) = (Vec::new(), 0, 0u64);
    while let Some(row) = rows.next()? {
        let (id, of, bytes): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if members.is_empty() {
            resource = of;
        } else if of != resource || members.len() == BATCH_SPANS || size + unsigned(bytes) > BATCH_BYTES {
            break;
        }
        members.push(id);
        size += unsigned(bytes);
    }
    if members.is_empty() {
        return Ok(None);
    }
    Ok(Some(make_batch(transaction, resource, None, &members)?))
}

fn make_batch(
    transaction: &Connection,
    resource: i64,
    bisection: Option<i64>,
    members: &[i64],
) -> Result<i64, StoreError> {
    transaction
        .prepare_cached("INSERT INTO batches (resource, bisection) VALUES (?1, ?2)")?
        .execute(params![resource, bisection])?;
    let batch = transaction.last_insert_rowid();
    let mut join = transaction.prepare_cached("UPDATE spans SET batch = ?2 WHERE id = ?1")?;
    for member in members {
        join.execute([*member, batch])?;
    }
    Ok(batch)
}

/// Reads a batch. A span that cannot be read is given up, counted, and keeps no other one; None if that is all of them.
fn load(transaction: &Connection, id: i64, now_ns: u64) -> Result<Option<Batch>, StoreError> {
    let (resource, tries, first_try): (String, u32, Option<i64>) = transaction
        .prepare_cached(
            "SELECT r.attributes, b.tries, b.first_try_ns FROM batches b JOIN resources r ON r.id = b.resource
             WHERE b.id = ?1",
        )?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut select = transaction.prepare_cached("SELECT id, body FROM spans WHERE batch = ?1 ORDER BY id")?;
    let rows = select.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut spans = Vec::new();
    for (row, body) in rows.collect::<Result<Vec<(i64, String)>, _>>()? {
        match serde_json::from_str(&body) {
            Ok(span) => spans.push(span),
            Err(_) => {
                count(transaction, "span_unreadable", 1, now_ns)?;
                transaction
                    .prepare_cached(
                        "UPDATE spans SET body = '', outcome = 'unreadable', settled_ns = ?2, batch = NULL WHERE id = ?1",
                    )?
                    .execute([row, signed(now_ns)])?;
            }
        }
    }
    if spans.is_empty() {
        close(transaction, id, "unreadable", now_ns)?;
        return Ok(None);
    }
    // What is known of a resource is worth less than its spans.
    let resource = serde_json::from_str(&resource).unwrap_or_default();
    Ok(Some(Batch { id, resource, spans, tries, first_try_ns: first_try.map_or(0, unsigned) }))
}

/// Takes a batch off the queue with one outcome for its spans.
fn close(transaction: &Connection, batch: i64, outcome: &str, now_ns: u64) -> Result<(), StoreError> {
    transaction
        .prepare_cached(
            "UPDATE bisections SET accepted = 1 WHERE ?2 <> 'refused'
             AND id = (SELECT bisection FROM batches WHERE id = ?1)",
        )?
        .execute(params![batch, outcome])?;
    // Refused parts of the same bisection now have their counter-example: they need not wait for hours.
    transaction
        .prepare_cached(
            "UPDATE batches SET next_try_ns = min(next_try_ns, ?3) WHERE ?2 <> 'refused'
             AND bisection = (SELECT bisection FROM batches WHERE id = ?1)",
        )?
        .execute(params![batch, outcome, signed(now_ns + REFUSED_PAUSE_NS)])?;
    content::forget(transaction, batch)?;
    transaction
        .prepare_cached("UPDATE spans SET outcome = ?2, settled_ns = ?3, batch = NULL WHERE batch = ?1")?
        .execute(params![batch, outcome, signed(now_ns)])?;
    transaction.prepare_cached("DELETE FROM batches WHERE id = ?1")?.execute([batch])?;
    transaction.execute(
        "DELETE FROM bisections WHERE id NOT IN (SELECT bisection FROM batches WHERE bisection IS NOT NULL)",
        [],
    )?;
    Ok(())
}

/// Tries of one refused span over at least [`REFUSED_FOR_NS`] before it is set aside without a counter-example.
const REFUSED_TRIES: u32 = 5;
const REFUSED_FOR_NS: u64 = 24 * 3600 * 1_000_000_000;
/// Tries of one refused span before it is set aside though another part of its batch was accepted: a receiver whose own
/// trouble comes and goes accepts and refuses by turns.
const CONFIRMED_TRIES: u32 = 4;
/// First pause between tries of a single refused span; each further one is four times as long.
const REFUSED_PAUSE_NS: u64 = 15 * 1_000_000_000;
/// Longest pause between tries of a single refused span.
const REFUSED_PAUSE_MOST_NS: u64 = 6 * 3600 * 1_000_000_000;

/// Splits a refused batch; sets a single refused span aside only after tries over minutes if another part of the same
/// batch was accepted, else over a day: a receiver that refuses everything is not a reason to throw spans away.
fn refuse(transaction: &Connection, batch: &Batch, now_ns: u64) -> Result<(), StoreError> {
    let found: Option<(i64, Option<i64>)> = transaction
        .prepare_cached("SELECT resource, bisection FROM batches WHERE id = ?1")?
        .query_row([batch.id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    // Given up meanwhile, by a sender of another profile that keeps the whole folder small.
    let Some((resource, bisection)) = found else { return Ok(()) };
    let members = transaction
        .prepare_cached("SELECT id FROM spans WHERE batch = ?1 ORDER BY id")?
        .query_map([batch.id], |row| row.get(0))?
        .collect::<Result<Vec<i64>, _>>()?;
    if members.len() > 1 {
        let bisection = bisection.unwrap_or(batch.id);
        transaction.execute("INSERT OR IGNORE INTO bisections (id) VALUES (?1)", [bisection])?;
        let (first, second) = members.split_at(members.len() / 2);
        make_batch(transaction, resource, Some(bisection), first)?;
        make_batch(transaction, resource, Some(bisection), second)?;
        transaction.execute("DELETE FROM batches WHERE id = ?1", [batch.id])?;
        return Ok(());
    }
    let accepted: bool = transaction
        .query_row("SELECT accepted FROM bisections WHERE id = ?1", [bisection], |row| row.get(0))
        .optional()?
        .unwrap_or(false);
    let worn_out = batch.tries + 1 >= REFUSED_TRIES && now_ns.saturating_sub(batch.first_try_ns) >= REFUSED_FOR_NS;
    if worn_out || accepted && batch.tries + 1 >= CONFIRMED_TRIES {
        count(transaction, "set_aside_refused", 1, now_ns)?;
        return close(transaction, batch.id, "refused", now_ns);
    }
    let pause = REFUSED_PAUSE_NS.saturating_mul(4u64.saturating_pow(batch.tries)).min(REFUSED_PAUSE_MOST_NS);
    transaction
        .prepare_cached("UPDATE batches SET next_try_ns = ?2 WHERE id = ?1")?
        .execute(params![batch.id, signed(now_ns.saturating_add(pause))])?;
    Ok(())
}

/// Adds to a counter.
pub(super) fn count(transaction: &Connection, name: &str, by: u64, now_ns: u64) -> Result<(), StoreError> {
    transaction
        .prepare_cached(
            "INSERT INTO counters (name, count, last_ns) VALUES (?1, ?2, ?3)
             ON CONFLICT (name) DO UPDATE SET count = count + ?2, last_ns = ?3",
        )?
        .execute(params![name, signed(by), signed(now_ns)])?;
    Ok(())
}

fn write_state(transaction: &Connection, state: &DeliveryState, now_ns: u64) -> Result<(), StoreError> {
    transaction
        .prepare_cached(
            "UPDATE delivery SET answered_ns = ?1, outcome = ?2, reason = ?3, message = ?4, delivered_ns = ?5,
             failing_since_ns = ?6, failures = ?7, next_try_ns = ?8, plain = ?9",
        )?
        .execute(params![
            signed(now_ns),
            state.outcome,
            state.reason,
            state.message,
            state.delivered_ns.map(signed),
            state.failing_since_ns.map(signed),
            state.failures,
            signed(state.next_try_ns),
            state.plain
        ])?;
    Ok(())
}
