//! Times of spans: the wall clock may be stepped while a turn runs, so a turn takes it once per boot as its anchor
//! and counts everything else in BOOTTIME from there. Pure; decided in `docs/adr/0006-times.md`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Now;
use crate::event::Capture;

/// Most boots that one turn keeps an anchor of; in further ones the wall clock is taken as it is.
const MAX_ANCHORS: usize = 4;

/// When an event was captured, by both clocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moment {
    /// Empty when unknown: then `boottime_ns` is not used, since it may count from another boot.
    boot: String,
    boottime_ns: u64,
    pub(super) realtime_ns: u64,
}

impl From<&Capture> for Moment {
    fn from(capture: &Capture) -> Self {
        Self {
            boot: capture.boot_id.clone(),
            boottime_ns: capture.boottime_ns,
            // A clock that could not be read must not give a span that starts at 0, which back ends take for unset.
            realtime_ns: capture.realtime_ns.max(1),
        }
    }
}

impl From<&Now> for Moment {
    fn from(now: &Now) -> Self {
        Self { boot: now.boot_id.clone(), boottime_ns: now.boottime_ns, realtime_ns: now.realtime_ns.max(1) }
    }
}

impl Moment {
    /// The boot it lies in.
    pub(super) fn boot(&self) -> &str {
        &self.boot
    }

    fn same_boot(&self, other: &Self) -> bool {
        !self.boot.is_empty() && self.boot == other.boot
    }

    /// Whether this was surely captured before the other; never told from the wall clock.
    pub(super) fn before(&self, other: &Self) -> bool {
        self.same_boot(other) && self.boottime_ns < other.boottime_ns
    }

    /// Whether this was surely captured before the other or together with it.
    pub(super) fn not_after(&self, other: &Self) -> bool {
        self.same_boot(other) && self.boottime_ns <= other.boottime_ns
    }

    /// The time from an earlier moment to this one; zero if it seems to run backwards.
    pub(super) fn since(&self, earlier: &Self) -> Duration {
        Duration::from_nanos(if self.same_boot(earlier) {
            self.boottime_ns.saturating_sub(earlier.boottime_ns)
        } else {
            self.realtime_ns.saturating_sub(earlier.realtime_ns)
        })
    }

    /// The time between the two, whichever came first.
    pub(super) fn apart(&self, other: &Self) -> Duration {
        self.since(other).max(other.since(self))
    }
}

/// A time of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Time {
    /// Nanoseconds since 1970, never 0.
    pub(super) ns: u64,
    /// Whether it is later than what the clocks said.
    pub(super) clamped: bool,
}

impl Time {
    /// This time, or the other's if that is later, and then marked.
    pub(super) const fn not_before(self, ns: u64) -> Self {
        if self.ns < ns { Self { ns, clamped: true } } else { self }
    }
}

/// The wall clock at one instant of one boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Anchor {
    moment: Moment,
    time: Time,
}

/// Gives the times of one turn, or of the session outside its turns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Clock {
    floor_ns: u64,
    latest_ns: u64,
    anchors: Vec<Anchor>,
}

impl Clock {
    /// A clock that starts at this moment, but not before `floor_ns`, the start of the parent.
    pub(super) fn start(moment: &Moment, floor_ns: u64) -> (Self, Time) {
        let mut clock = Self { floor_ns, latest_ns: floor_ns, anchors: Vec::new() };
        let start = clock.at(moment);
        clock.floor_ns = start.ns;
        (clock, start)
    }

    /// The time of a moment: never before the clock's start.
    pub(super) fn at(&mut self, moment: &Moment) -> Time {
        let time = self.anchored(moment).not_before(self.floor_ns);
        self.latest_ns = self.latest_ns.max(time.ns);
        time
    }

    /// The latest time that was given.
    pub(super) const fn latest_ns(&self) -> u64 {
        self.latest_ns
    }

    fn anchored(&mut self, moment: &Moment) -> Time {
        if let Some(anchor) = self.anchors.iter().find(|anchor| anchor.moment.same_boot(moment)) {
            let (from, to) = (anchor.moment.boottime_ns, moment.boottime_ns);
            let ns = anchor.time.ns.saturating_add(to.saturating_sub(from)).saturating_sub(from.saturating_sub(to));
            return Time { ns, clamped: anchor.time.clamped };
        }
        let time = Time { ns: moment.realtime_ns, clamped: false };
        if moment.boot.is_empty() || self.anchors.len() >= MAX_ANCHORS {
            return time;
        }
        // After a reboot the wall clock may lag (no battery): the turn goes on from where it was.
        let time = time.not_before(self.latest_ns);
        self.anchors.push(Anchor { moment: moment.clone(), time });
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(boot: &str, boottime_ns: u64, realtime_ns: u64) -> Moment {
        Moment { boot: boot.into(), boottime_ns, realtime_ns }
    }

    fn plain(ns: u64) -> Time {
        Time { ns, clamped: false }
    }

    #[test]
    fn a_stepped_wall_clock_does_not_move_later_times() {
        let (mut clock, start) = Clock::start(&moment("a", 100, 5_000), 1);
        assert_eq!(start, plain(5_000));
        assert_eq!(clock.at(&moment("a", 160, 9_999_999)), plain(5_060));
        assert_eq!(clock.at(&moment("a", 150, 2)), plain(5_050));
        assert_eq!(clock.latest_ns(), 5_060);
    }

    #[test]
    fn nothing_is_earlier_than_the_start_or_the_parent() {
        let (mut clock, start) = Clock::start(&moment("a", 100, 5_000), 6_000);
        assert_eq!(start, Time { ns: 6_000, clamped: true });
        assert_eq!(clock.at(&moment("a", 40, 1)), Time { ns: 6_000, clamped: true });
    }

    #[test]
    fn each_boot_has_its_own_anchor() {
        let (mut clock, _) = Clock::start(&moment("a", 100, 5_000), 1);
        assert_eq!(clock.at(&moment("b", 7, 8_000)), plain(8_000));
        assert_eq!(clock.at(&moment("b", 9, 1)), plain(8_002));
        assert_eq!(clock.at(&moment("a", 130, 1)), plain(5_030));
        // A boot whose wall clock lags goes on from the latest time, marked.
        assert_eq!(clock.at(&moment("c", 1, 3)), Time { ns: 8_002, clamped: true });
        assert_eq!(clock.at(&moment("c", 4, 3)), Time { ns: 8_005, clamped: true });
    }

    #[test]
    fn without_a_boot_id_the_wall_clock_is_all_there_is() {
        let (mut clock, _) = Clock::start(&moment("", 100, 5_000), 1);
        assert_eq!(clock.at(&moment("", 1, 5_500)), plain(5_500));
        assert_eq!(clock.at(&moment("", 1, 400)), Time { ns: 5_000, clamped: true });
        assert!(!moment("", 1, 1).before(&moment("", 2, 2)));
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let (mut clock, _) = Clock::start(&moment("a", u64::MAX, u64::MAX), 1);
        assert_eq!(clock.at(&moment("a", 0, 0)).ns, u64::MAX);
        assert_eq!(moment("a", 0, 0).since(&moment("a", u64::MAX, 0)), Duration::ZERO);
    }
}
