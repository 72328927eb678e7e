//! What follows from an answer: what becomes of the batch, and when the next try is due. Pure: time and chance are
//! arguments. Decided in `docs/adr/0024-answers-and-tries.md`.

use std::time::Duration;

use crate::export::{Answer, Code, Outcome};
use crate::store::{DeliveryState, Settled};

/// First pause after a failure that may pass.
const RETRY_FIRST: Duration = Duration::from_millis(500);
/// Longest pause after a failure that may pass.
const RETRY_MOST: Duration = Duration::from_secs(60);
/// First pause after an answer that only a change of settings mends.
const CONFIGURATION_FIRST: Duration = Duration::from_secs(2);
/// Longest pause after such an answer.
const CONFIGURATION_MOST: Duration = Duration::from_secs(300);
/// Longest pause a receiver can ask for.
const ASKED_MOST: Duration = Duration::from_secs(3600);
/// Refusals in a row that bisection of a full batch needs to single out a span, and some.
const REFUSALS: u32 = 12;

/// Draws the conclusions from an answer at `now_ns` (CLOCK_REALTIME); `gzip` tells whether the request was compressed,
/// `chance` is uniform in 0..=1.
pub(super) fn conclude(
    answer: &Answer,
    before: &DeliveryState,
    gzip: bool,
    now_ns: u64,
    chance: f64,
) -> (Settled, DeliveryState) {
    let mut state = DeliveryState {
        reason: Some(answer.reason.to_owned()),
        message: words(answer),
        failures: before.failures.saturating_add(1),
        failing_since_ns: before.failing_since_ns.or(Some(now_ns)),
        delivered_ns: before.delivered_ns,
        plain: before.plain,
        ..DeliveryState::default()
    };
    let (outcome, settled) = match &answer.outcome {
        Outcome::Delivered => ("delivered", Settled::Delivered),
        Outcome::Partial { rejected, .. } => ("partial", Settled::Partial { rejected: *rejected }),
        Outcome::Retry { after } => {
            let pause = after.map_or_else(
                || jitter(growing(RETRY_FIRST, RETRY_MOST, before.failures), chance),
                |asked| asked.min(ASKED_MOST),
            );
            state.next_try_ns = later(now_ns, pause);
            ("retry", Settled::Again { next_try_ns: state.next_try_ns })
        }
        // A receiver that cannot unpack gzip says 400 to anything: once without, before spans are suspected.
        Outcome::Refused if gzip && answer.code == Some(Code::Http(400)) => {
            state.plain = true;
            ("refused", Settled::Again { next_try_ns: 0 })
        }
        Outcome::Refused => {
            // One span or half a batch may be at fault: go on at once. But if everything is refused, it is not the spans.
            if state.failures > REFUSALS {
                let pause = growing(CONFIGURATION_FIRST, CONFIGURATION_MOST, state.failures - REFUSALS);
                state.next_try_ns = later(now_ns, jitter(pause, chance));
            }
            ("refused", Settled::Refused)
        }
        Outcome::Configuration(_) => {
            let pause = growing(CONFIGURATION_FIRST, CONFIGURATION_MOST, before.failures);
            state.next_try_ns = later(now_ns, jitter(pause, chance));
            ("configuration", Settled::Again { next_try_ns: state.next_try_ns })
        }
    };
    if matches!(settled, Settled::Delivered | Settled::Partial { .. }) {
        state.failures = 0;
        state.failing_since_ns = None;
        state.delivered_ns = Some(now_ns);
    }
    state.outcome = Some(outcome.to_owned());
    (settled, state)
}

/// What to change comes before what the receiver said.
fn words(answer: &Answer) -> Option<String> {
    match (&answer.outcome, &answer.message) {
        (Outcome::Configuration(ours), Some(theirs)) => Some(format!("{ours} ({theirs})")),
        (Outcome::Configuration(ours), None) => Some(ours.clone()),
        (_, theirs) => theirs.clone(),
    }
}

/// How long the next try has to wait; None if it is due.
pub(super) fn pause(state: &DeliveryState, now_ns: u64) -> Option<Duration> {
    let left = Duration::from_nanos(state.next_try_ns.saturating_sub(now_ns));
    // Longer than any pause: the wall clock was set back.
    (!left.is_zero() && left <= ASKED_MOST).then_some(left)
}

fn growing(first: Duration, most: Duration, failures: u32) -> Duration {
    first.saturating_mul(1 << failures.min(16)).min(most)
}

/// Half of the pause for certain, the other half by chance: senders that failed together do not come back together.
fn jitter(pause: Duration, chance: f64) -> Duration {
    pause.mul_f64(chance.clamp(0.0, 1.0).mul_add(0.5, 0.5))
}

fn later(now_ns: u64, pause: Duration) -> u64 {
    now_ns.saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_000_000_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn answer(outcome: Outcome) -> Answer {
        Answer { outcome, code: None, message: None, reason: "test" }
    }

    fn after(failures: u32, outcome: Outcome, chance: f64) -> (Settled, DeliveryState) {
        let before = DeliveryState { failures, failing_since_ns: Some(1), ..DeliveryState::default() };
        conclude(&answer(outcome), &before, false, NOW, chance)
    }

    #[test]
    fn pauses_grow_with_jitter_up_to_a_bound() {
        for (failures, chance, milliseconds) in [
            (0, 1.0, 500),
            (0, 0.0, 250),
            (1, 1.0, 1000),
            (3, 1.0, 4000),
            (3, 0.5, 3000),
            (20, 1.0, 60_000),
            (u32::MAX, 1.0, 60_000),
        ] {
            let (settled, state) = after(failures, Outcome::Retry { after: None }, chance);
            let due = NOW + milliseconds * 1_000_000;
            assert_eq!(state.next_try_ns, due, "{failures} {chance}");
            assert_eq!(settled, Settled::Again { next_try_ns: due });
        }
        let configuration = || Outcome::Configuration("words".into());
        for (failures, seconds) in [(0, 2), (1, 4), (5, 64), (9, 300), (40, 300)] {
            assert_eq!(after(failures, configuration(), 1.0).1.next_try_ns, NOW + seconds * SECOND, "{failures}");
        }
    }

    #[test]
    fn a_pause_that_nobody_asked_for_is_none() {
        let due = |next_try_ns| pause(&DeliveryState { next_try_ns, ..DeliveryState::default() }, NOW);
        assert_eq!((due(0), due(NOW)), (None, None));
        assert_eq!(due(NOW + 5 * SECOND), Some(Duration::from_secs(5)));
        assert_eq!((due(NOW + 3600 * SECOND), due(NOW + 3601 * SECOND)), (Some(ASKED_MOST), None));
    }

    #[test]
    fn what_the_receiver_asks_for_is_honoured_within_an_hour() {
        for (asked, seconds) in [(0, 0), (7, 7), (3600, 3600), (1_000_000, 3600)] {
            let (_, state) = after(5, Outcome::Retry { after: Some(Duration::from_secs(asked)) }, 0.3);
            assert_eq!(state.next_try_ns, NOW + seconds * SECOND, "{asked}");
        }
    }

    #[test]
    fn acceptance_ends_a_row_of_failures_and_the_row_keeps_its_beginning() {
        let (settled, state) = after(7, Outcome::Delivered, 0.5);
        assert_eq!((settled, state.failures, state.failing_since_ns), (Settled::Delivered, 0, None));
        assert_eq!((state.delivered_ns, state.next_try_ns), (Some(NOW), 0));
        let (_, state) = after(7, Outcome::Retry { after: None }, 0.5);
        assert_eq!((state.failures, state.failing_since_ns), (8, Some(1)));
        let partial = Outcome::Partial { rejected: 3, message: "words".into() };
        assert_eq!(after(2, partial, 0.5).0, Settled::Partial { rejected: 3 });
    }

    #[test]
    fn what_to_change_is_said_before_what_was_answered() {
        let said = |outcome, message: Option<&str>| {
            let answer = Answer { message: message.map(str::to_owned), ..answer(outcome) };
            conclude(&answer, &DeliveryState::default(), false, NOW, 0.5).1.message
        };
        let configuration = || Outcome::Configuration("check the key".into());
        assert_eq!(said(configuration(), Some("no")).as_deref(), Some("check the key (no)"));
        assert_eq!(said(configuration(), None).as_deref(), Some("check the key"));
        assert_eq!(said(Outcome::Refused, Some("no")).as_deref(), Some("no"));
    }

    #[test]
    fn gzip_is_given_up_before_spans_are() {
        let refused = Answer { code: Some(Code::Http(400)), ..answer(Outcome::Refused) };
        let (settled, state) = conclude(&refused, &DeliveryState::default(), true, NOW, 0.5);
        assert_eq!((settled, state.plain, state.next_try_ns), (Settled::Again { next_try_ns: 0 }, true, 0));
        let (settled, state) = conclude(&refused, &state, false, NOW, 0.5);
        assert_eq!((settled, state.plain), (Settled::Refused, true));
        let (_, state) = conclude(&answer(Outcome::Delivered), &state, false, NOW, 0.5);
        assert!(state.plain, "remembered");
    }

    #[test]
    fn refusals_go_on_at_once_until_bisection_should_have_found_the_span() {
        assert_eq!(after(0, Outcome::Refused, 1.0).1.next_try_ns, 0);
        assert_eq!(after(REFUSALS - 1, Outcome::Refused, 1.0).1.next_try_ns, 0);
        assert_eq!(after(REFUSALS, Outcome::Refused, 1.0).1.next_try_ns, NOW + 4 * SECOND);
    }
}
