//! Watches the store, which the sender writes, for what became of one conversation. Reads only.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::recording::TURNS;
use crate::span::Role;
use crate::store::{DeliveryState, Store, StoreError};

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(40);

/// How much of the conversation is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing.
    Nothing,
    /// So many of its turns.
    Turns(usize),
    /// All turns; the session stays open, as the end of a process cannot be seen here.
    StillOpen,
    /// All of it, and the session has ended.
    Whole,
}

/// What the destination has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Spans of the conversation.
    pub spans: usize,
    /// Those of them that were accepted.
    pub accepted: usize,
    /// Those of them that wait.
    pub waiting: usize,
    /// How the destination answered last, whatever it was sent.
    pub last: DeliveryState,
}

/// Waits until the conversation is whole in the store of the profile in `folder`.
///
/// # Errors
/// When the store cannot be read.
pub fn arrival(folder: &Path, conversation: &str, limit: Duration) -> Result<Arrival, StoreError> {
    wait(limit, || {
        let arrival = look(folder, conversation)?;
        Ok((arrival == Arrival::Whole, arrival))
    })
}

fn look(folder: &Path, conversation: &str) -> Result<Arrival, StoreError> {
    let Some(store) = Store::open_read_only(folder)? else {
        return Ok(Arrival::Nothing);
    };
    let rows = store.conversations_like(conversation)?;
    let Some(row) = rows.first() else {
        return Ok(Arrival::Nothing);
    };
    let spans = store.spans(conversation)?;
    let turns = spans.iter().filter(|stored| stored.span.role == Role::Turn).count();
    Ok(match (turns >= TURNS, row.state.is_open()) {
        (true, false) => Arrival::Whole,
        (true, true) => Arrival::StillOpen,
        (false, _) => Arrival::Turns(turns),
    })
}

/// Waits until no span of the conversation waits any more, or the next try would come too late.
///
/// # Errors
/// When the store cannot be read.
pub fn delivery(
    folder: &Path,
    conversation: &str,
    limit: Duration,
    now_ns: impl Fn() -> u64,
) -> Result<Delivery, StoreError> {
    let end_ns = now_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    wait(limit, || {
        let mut delivery = Delivery { spans: 0, accepted: 0, waiting: 0, last: DeliveryState::default() };
        let Some(store) = Store::open_read_only(folder)? else {
            return Ok((false, delivery));
        };
        for stored in store.spans(conversation)? {
            delivery.spans += 1;
            delivery.waiting += usize::from(stored.outcome.is_none());
            delivery.accepted += usize::from(stored.outcome.as_deref() == Some("delivered"));
        }
        delivery.last = store.delivery()?;
        Ok((delivery.waiting == 0 || delivery.last.next_try_ns > end_ns, delivery))
    })
}

/// Looks until the look says that it is the last one, or time is up.
fn wait<T>(limit: Duration, mut look: impl FnMut() -> Result<(bool, T), StoreError>) -> Result<T, StoreError> {
    let begun = Instant::now();
    loop {
        let (last, seen) = look()?;
        if last || begun.elapsed() >= limit {
            return Ok(seen);
        }
        sleep(PAUSE);
    }
}
