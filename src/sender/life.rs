//! How long a sender stays: while there is something to wait for, and never for weeks. Pure: times are arguments.

use std::time::Duration;

/// Longest life of a sender.
pub(super) const LIFE: Duration = Duration::from_secs(24 * 3600);
/// How long it goes on without a live agent while only a change of settings would help.
const CONFIGURATION: Duration = Duration::from_secs(60);
/// How long it goes on without a live agent while the destination does not answer well.
const FAILING: Duration = Duration::from_secs(600);

/// What a sender has on its hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing is queued, or there is no destination to send it to.
    None,
    /// Spans are queued and the destination takes them, or has not been tried.
    Queued,
    /// Spans are queued; the last try failed in a way that may pass.
    Failing,
    /// Spans are queued; only a change of settings helps.
    Misconfigured,
}

/// How much longer to stay; `quiet` is the time since the last event or acceptance, `age` the time since the start.
pub(super) fn remaining(work: Work, live_agent: bool, quiet: Duration, age: Duration, linger: Duration) -> Duration {
    let left_of_life = LIFE.saturating_sub(age);
    let limit = match work {
        _ if live_agent => return left_of_life,
        Work::Queued => return left_of_life,
        Work::None => linger,
        Work::Failing => FAILING,
        Work::Misconfigured => CONFIGURATION,
    };
    limit.saturating_sub(quiet).min(left_of_life)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_stays_as_long_as_there_is_something_to_wait_for() {
        let seconds = Duration::from_secs;
        let linger = seconds(10);
        for (work, live, quiet, age, expected) in [
            (Work::None, false, 0, 0, 10),
            (Work::None, false, 4, 100, 6),
            (Work::None, false, 11, 100, 0),
            (Work::None, true, 10_000, 10_000, 76_400),
            (Work::Queued, false, 10_000, 10_000, 76_400),
            (Work::Misconfigured, false, 59, 59, 1),
            (Work::Misconfigured, true, 59, 59, 86_341),
            (Work::Failing, false, 599, 599, 1),
            (Work::Failing, false, 601, 601, 0),
            (Work::Failing, true, 601, 86_400, 0),
            (Work::None, true, 0, 90_000, 0),
        ] {
            let left = remaining(work, live, seconds(quiet), seconds(age), linger);
            assert_eq!(left, seconds(expected), "{work:?} live={live} quiet={quiet} age={age}");
        }
    }
}
