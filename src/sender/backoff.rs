//! What follows from an answer: what becomes of the batch, and when the next try is due. Pure: time and chance are
//! arguments. Decided in `docs/adr/0024-answers-and-tries.md`.

use std::time::Duration;

use crate::export::{Answer, Outcome};
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

/// Draws the conclusions from an answer at `now_ns` (CLOCK_REALTIME); `chance` is uniform in 0..=1.
pub(super) fn conclude(answer: &Answer, before: &DeliveryState, now_ns: u64, chance: f64) -> (Settled, DeliveryState) {
    let mut state = DeliveryState {
        reason: Some(answer.reason.to_owned()),
        message: answer.message.clone(),
        failures: before.failures.saturating_add(1),
        failing_since_ns: before.failing_since_ns.or(Some(now_ns)),
        delivered_ns: before.delivered_ns,
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
