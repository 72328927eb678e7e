//! Any bytes as a payload of any event: no panic, the same in whatever pieces they come, and whatever is kept can be
//! written and read back.

#![no_main]

use fi_hook_to_otlp::event::{Action, Event, Wanted};
use fi_hook_to_otlp::hosts::{self, Progress, Rejection, Seen};
use fi_hook_to_otlp::redact::{self, Allowed};
use libfuzzer_sys::fuzz_target;

const EVENTS: [&str; 6] = ["SessionStart", "PreInvocation", "PostInvocation", "PreToolUse", "PostToolUse", "Stop"];

fn scan<'a>(event: &str, wanted: Wanted, pieces: impl Iterator<Item = &'a [u8]>) -> Result<Seen, Rejection> {
    let mut scan = hosts::find("antigravity").and_then(|host| host.scan(event)).expect("the event is known");
    scan.want(wanted);
    for piece in pieces {
        if scan.feed(piece) != Progress::More {
            break;
        }
    }
    scan.finish()
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let size = usize::from(size).max(1);
    for event in EVENTS {
        for wanted in [Wanted::default(), Wanted::ALL] {
            let whole = scan(event, wanted, std::iter::once(bytes));
            let pieces = scan(event, wanted, bytes.chunks(size));
            match (whole, pieces) {
                (Ok(whole), Ok(pieces)) => {
                    assert_eq!(whole.event, pieces.event);
                    assert_eq!(whole.workspaces, pieces.workspaces);
                    assert!(wanted == Wanted::ALL || whole.event.told.is_none(), "content that nobody asked for");
                    let safe = redact::event(whole.event, &Allowed { content: wanted, digest_key: None });
                    assert!(safe.conversation.chars().count() <= redact::CONVERSATION_CHARS);
                    if let Action::PreToolUse(step) | Action::PostToolUse(step) = &safe.action {
                        assert!(step.tool.as_deref().is_none_or(|tool| !tool.chars().any(char::is_control)));
                    }
                    let text = serde_json::to_string(&*safe).expect("it can be written");
                    let again: Event = serde_json::from_str(&text).expect("it can be read back");
                    assert_eq!(again, *safe);
                }
                (Err(whole), Err(pieces)) => assert_eq!(whole, pieces),
                (whole, pieces) => panic!("{whole:?} and {pieces:?}"),
            }
        }
    }
});
