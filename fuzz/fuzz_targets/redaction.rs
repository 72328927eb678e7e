//! Any bytes as content: no panic, no more than 4096 characters, JSON where it says so, nothing invisible, and a planted
//! token never shows.

#![no_main]

use fi_hook_to_otlp::redact::{CONTENT_CHARS, Raw, Shape, Text, content};
use libfuzzer_sys::fuzz_target;

/// Valid in shape; made up, and in no sample that the fuzzer begins with.
const PLANTED: &str = concat!("gh", "p_q7Zk2Wv9Xb4Rt8Lm1Pn6Hd3Jf5Gs0YcTqWe1");

fn check(bytes: Vec<u8>, whole: bool, shape: Shape) -> Text {
    let text = content(&Raw::new(bytes, whole), shape);
    assert!(text.as_str().chars().count() <= CONTENT_CHARS);
    assert!(!text.as_str().chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    if text.is_json() {
        assert!(serde_json::from_str::<serde::de::IgnoredAny>(text.as_str()).is_ok());
    }
    text
}

fuzz_target!(|bytes: &[u8]| {
    for shape in [Shape::Json, Shape::Plain] {
        check(bytes.to_vec(), true, shape);
        check(bytes.to_vec(), false, shape);
        check([b"\"", bytes, b"\""].concat(), true, shape);
    }
    // Between words, as a string of an argument, whatever stands around it.
    let around = String::from_utf8_lossy(bytes);
    let middle = around.floor_char_boundary(around.len() / 2);
    let (head, tail) = around.split_at(middle);
    let around = |secret: &str| serde_json::json!({ "a": format!("{head} {secret} {tail}") }).to_string().into_bytes();
    let piece = &PLANTED[4..14];
    // The fuzzer learns what it is compared with, and says it itself, maybe where the output is cut without the token.
    if head.contains(piece) || tail.contains(piece) || check(around(""), true, Shape::Json).as_str().contains(piece) {
        return;
    }
    let text = check(around(PLANTED), true, Shape::Json);
    assert!(!text.as_str().contains(piece), "{}", text.as_str());
});
