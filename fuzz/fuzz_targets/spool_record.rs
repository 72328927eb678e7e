//! Any bytes as a file of the spool: no panic in reader or reducer, and what can be read is written as it was.

#![no_main]

use fi_hook_to_otlp::conversation::{Conversation, Options};
use fi_hook_to_otlp::spool::format::{Entry, decode, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(entry) = decode(bytes) else { return };
    assert_eq!(decode(&encode(&entry)).as_ref(), Ok(&entry));
    let Entry::Event(captured) = entry else { return };
    let options = Options::default();
    let mut conversation = Conversation::new(captured.origin.clone());
    for _ in 0..2 {
        let _ = conversation.apply(&captured.event, &captured.capture, &options);
        let text = serde_json::to_string(&conversation).expect("the state can be written");
        conversation = serde_json::from_str(&text).expect("the state can be read back");
    }
});
