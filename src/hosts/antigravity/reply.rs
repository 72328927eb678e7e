//! The bytes agy reads on our stdout. A reply decides whether the agent's tool runs, so each is a constant that
//! depends on the command line alone; decided in `docs/adr/0001-reply-first-and-neutral.md`.

/// The reply for an event; `reply_option` is the word after `--reply`.
///
/// PreToolUse is the permission gate: `{}` denies every tool on agy 1.0.3 to 1.2.7, nothing at all is neutral
/// (measured 1.0.3, 1.1.7, 1.1.12, 1.2.6). An unknown key in PreInvocation's reply aborts the turn (measured 1.2.1).
/// Stop goes on only for `continue` (documented; `{}` and nothing measured 1.1.12, 1.2.7).
#[must_use]
pub fn bytes(event: &str, reply_option: Option<&str>) -> &'static [u8] {
    match event {
        "SessionStart" | "PreInvocation" | "PostInvocation" | "PostToolUse" => b"{}",
        "PreToolUse" if reply_option == Some("empty-decision") => br#"{"decision":""}"#,
        "Stop" => br#"{"decision":""}"#,
        _ => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn every_event_has_its_exact_reply() {
        for (event, option, expected) in [
            ("SessionStart", None, "{}"),
            ("PreInvocation", None, "{}"),
            ("PostInvocation", None, "{}"),
            ("PreToolUse", None, ""),
            ("PreToolUse", Some("empty-decision"), r#"{"decision":""}"#),
            ("PreToolUse", Some("allow"), ""),
            ("PostToolUse", None, "{}"),
            ("Stop", None, r#"{"decision":""}"#),
            ("SessionEnd", None, ""),
            ("pretooluse", None, ""),
            ("", None, ""),
        ] {
            assert_eq!(bytes(event, option), expected.as_bytes(), "{event} {option:?}");
        }
    }
}
