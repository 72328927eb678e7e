//! Plays a script or a recording: turns what user, model and tools do into hook events, and obeys the replies.
//!
//! `stage` fires one event, `seat` says whose event is next, `conversation`, `turn` and `tool` follow the script,
//! `recording` follows recorded payloads. Only `stage` knows processes and the report.

mod conversation;
pub(crate) mod recording;
mod seat;
pub(crate) mod stage;
mod tool;
mod turn;

use std::sync::Arc;
use std::thread;

use crate::script::{Interleave, Script};
use conversation::Player;
use seat::seats;
use stage::Stage;

/// Plays all conversations of a script; the outcome is in the stage.
pub(crate) fn play(script: &Script, stage: &Arc<Stage>) {
    let seats = seats(script.conversations.len(), script.interleave == Interleave::Alternate);
    let parts = script.conversations.iter().zip(seats);
    if script.interleave == Interleave::Sequential {
        for (conversation, seat) in parts {
            if Player::new(stage, Arc::new(seat), conversation, "").play(conversation).is_err() {
                return;
            }
        }
        return;
    }
    thread::scope(|scope| {
        for (conversation, seat) in parts {
            // A cut conversation ends its own thread; the stage stops the others.
            scope.spawn(move || _ = Player::new(stage, Arc::new(seat), conversation, "").play(conversation));
        }
    });
}
