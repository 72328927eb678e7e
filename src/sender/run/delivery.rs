//! The sender's part with the destination: one batch at a time out, its answer in. May not quote a receiver that was sent
//! content. Decided in `docs/adr/0024-answers-and-tries.md` and `docs/adr/0041-opt-in-content.md`.

use std::time::{Duration, Instant};

use super::{MOST_SLEEP, Sender};
use crate::export::{Answer, Outcome};
use crate::sender::{SendError, backoff};
use crate::store::{Batch, Settled};
use crate::sys;

impl Sender<'_> {
    /// Starts sending the next batch if that may be done now; returns when it may, if not.
    pub(super) fn send_next(&mut self, now_ns: u64) -> Result<Duration, SendError> {
        if self.sending.is_some() || self.stopping {
            return Ok(MOST_SLEEP);
        }
        let Some(exporter) = self.exporter.clone() else {
            return Ok(MOST_SLEEP);
        };
        if let Some(pause) = backoff::pause(&self.delivery, now_ns) {
            return Ok(pause);
        }
        let Some(batch) = self.store.next_batch(now_ns)? else {
            let due = self.store.waiting()?.due_ns;
            return Ok(due.map_or(MOST_SLEEP, |due| Duration::from_nanos(due.saturating_sub(now_ns))));
        };
        self.store.trying(batch.id, now_ns)?;
        self.sending = Some(Box::pin(async move {
            let answer = exporter.export(&batch.resource, &batch.spans).await;
            (batch, answer)
        }));
        Ok(MOST_SLEEP)
    }

    pub(super) fn answered(&mut self, (batch, answer): (Batch, Answer)) -> Result<(), SendError> {
        self.sending = None;
        // A receiver may quote what it was sent.
        let has_content = batch.has_content();
        let answer = if has_content { answer.without_quotes() } else { answer };
        let now_ns = sys::clocks().realtime_ns;
        let chance = sys::random::<4>().map_or(0.5, |bytes| f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX));
        let gzip = self.settings.destination.is_compressed() && !self.delivery.plain;
        let (settled, state) = backoff::conclude(&answer, &self.delivery, gzip, now_ns, chance);
        self.store.settle(&batch, settled, &state, now_ns)?;
        self.to_clear |= has_content && !matches!(settled, Settled::Again { .. });
        let gives_up_gzip = state.plain && gzip;
        if matches!(answer.outcome, Outcome::Delivered | Outcome::Partial { .. }) {
            self.active = Instant::now();
        }
        self.delivery = state;
        if gives_up_gzip {
            self.connect();
        }
        let status = answer.code.map_or_else(|| "http=none".to_owned(), |code| code.to_string());
        let spans = batch.spans.len();
        let outcome = self.delivery.outcome.as_deref().unwrap_or_default();
        let user_log = self.settings.log_file.as_deref();
        let reason = answer.reason;
        match &self.delivery.message {
            Some(message) if answer.outcome != Outcome::Delivered => {
                let line = format_args!("export spans={spans} {status} {outcome} reason={reason} error={message:?}");
                self.log.export(user_log, line);
            }
            _ => self.log.export(user_log, format_args!("export spans={spans} {status} {outcome} reason={reason}")),
        }
        Ok(())
    }
}
