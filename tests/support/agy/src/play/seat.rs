//! Whose event is next when several conversations take turns.
//!
//! One event each, in the order of the script. A seat that is given up is skipped. Threads of one conversation share a seat.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The right of one conversation to fire events.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Absent where nobody takes turns.
    table: Option<Arc<Table>>,
    number: usize,
}

#[derive(Debug)]
struct Table {
    state: Mutex<Order>,
    changed: Condvar,
}

#[derive(Debug)]
struct Order {
    seats: Vec<usize>,
    next: usize,
    busy: bool,
}

/// Makes so many seats, at one table if they take turns.
pub(crate) fn seats(count: usize, take_turns: bool) -> Vec<Seat> {
    let order = Order { seats: (0..count).collect(), next: 0, busy: false };
    let table = Arc::new(Table { state: Mutex::new(order), changed: Condvar::new() });
    (0..count).map(|number| Seat { table: take_turns.then(|| Arc::clone(&table)), number }).collect()
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Order> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// The seat of whoever has nobody to take turns with.
    pub(crate) const fn alone() -> Self {
        Self { table: None, number: 0 }
    }

    /// Does something when it is this seat's turn, and passes the turn on.
    pub(crate) fn on_turn<T>(&self, act: impl FnOnce() -> T) -> T {
        let Some(table) = &self.table else { return act() };
        let waits = |order: &mut Order| order.busy || order.seats.get(order.next) != Some(&self.number);
        let mut order = table.changed.wait_while(table.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        order.busy = true;
        drop(order);
        let outcome = act();
        let mut order = table.lock();
        order.busy = false;
        order.next = (order.next + 1) % order.seats.len().max(1);
        table.changed.notify_all();
        outcome
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(table) = &self.table else { return };
        let mut order = table.lock();
        if let Some(place) = order.seats.iter().position(|seat| *seat == self.number) {
            order.seats.remove(place);
            if place < order.next {
                order.next -= 1;
            }
            order.next %= order.seats.len().max(1);
        }
        table.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn seats_alternate_and_a_seat_that_is_given_up_is_skipped() {
        let said = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for (seat, events) in seats(3, true).into_iter().zip([3, 1, 2]) {
                let said = &said;
                scope.spawn(move || {
                    for _ in 0..events {
                        seat.on_turn(|| said.lock().unwrap().push(seat.number));
                    }
                });
            }
        });
        assert_eq!(*said.lock().unwrap(), [0, 1, 2, 0, 2, 0]);
    }
}
