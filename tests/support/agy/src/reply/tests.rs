//! The table of reference section 1.3, row by row.

use super::*;
use crate::version::Version;

fn said(event: Event, stdout: &str, behaviour: &Behaviour) -> String {
    interpret(event, HookEnd { exit_code: Some(0), stdout: stdout.as_bytes(), timed_out: false }, behaviour).describe()
}

fn on(version: (u16, u16, u16)) -> Behaviour {
    Behaviour { profile: Version::new(version.0, version.1, version.2), ..Behaviour::default() }
}

#[test]
fn before_a_tool() {
    let cases = [
        ("", "neutral"),
        ("{}", "deny: "),
        (r#"{"decision":""}"#, "deny: "),
        (r#"{"decision":null}"#, "deny: "),
        (r#"{"reason":"because"}"#, "deny: because"),
        (r#"{"decision":"allow"}"#, "allow"),
        (r#"{"decision":"ask","reason":"look"}"#, "ask"),
        (r#"{"decision":"force_ask"}"#, "force_ask"),
        (r#"{"decision":"deny","reason":"no"}"#, "deny: no"),
        (r#"{"decision":"deny_unless_prior_grant"}"#, "deny_unless_prior_grant"),
        (r#"{"decision":"allow","permissionOverrides":["x"],"overwrite":{"a":1}}"#, "allow"),
        (r#"{"decision":"allow","permission_overrides":[]}"#, "allow"),
        (r#"{"allowTool":true}"#, "allow"),
        (r#"{"allow_tool":false,"deny_reason":"old"}"#, "deny: old"),
        (r#"{"decision":"block"}"#, "deny: unknown pre-tool hook decision: \"block\""),
        (r#"{"decision":"allow","continue":true}"#, "deny: unknown field \"continue\""),
        (r#"{"decision":true}"#, "deny: decision is not a string"),
        ("[]", "deny: the reply is not a JSON object"),
    ];
    for (stdout, expected) in cases {
        assert_eq!(said(Event::PreToolUse, stdout, &Behaviour::default()), expected, "{stdout}");
    }
    for stdout in ["\n", "ok", "{} {}", "{", "{}\nlog line"] {
        let said = said(Event::PreToolUse, stdout, &Behaviour::default());
        assert!(said.starts_with("deny: the reply is not JSON"), "{stdout:?}: {said}");
    }
}

#[test]
fn an_empty_decision_can_be_neutral_and_an_empty_object_cannot() {
    let behaviour = Behaviour { empty_decision: EmptyDecision::Neutral, ..Behaviour::default() };
    assert_eq!(said(Event::PreToolUse, r#"{"decision":""}"#, &behaviour), "neutral");
    assert_eq!(said(Event::PreToolUse, "{}", &behaviour), "deny: ");
}

#[test]
fn around_a_model_call() {
    for event in [Event::PreInvocation, Event::PostInvocation] {
        for (stdout, expected) in [
            ("", "neutral"),
            ("{}", "neutral"),
            (r#"{"injectSteps":[]}"#, "neutral"),
            (r#"{"decision":"allow"}"#, "abort: unknown field \"decision\""),
            (r#"{"injectSteps":{}}"#, "abort: injectSteps is not an array"),
            (r#"{"injectSteps":[{"other":1}]}"#, "abort: unknown field \"other\" in an injected step"),
            (r#"{"injectSteps":[{}]}"#, "abort: an injected step is not of exactly one kind"),
        ] {
            assert_eq!(said(event, stdout, &Behaviour::default()), expected, "{event}: {stdout}");
        }
    }
    assert_eq!(
        said(Event::PostInvocation, r#"{"terminationBehavior":"terminate"}"#, &Behaviour::default()),
        "terminate"
    );
    assert_eq!(
        said(Event::PostInvocation, r#"{"terminationBehavior":"force_continue"}"#, &Behaviour::default()),
        "force_continue"
    );
    assert!(said(Event::PreInvocation, r#"{"terminationBehavior":""}"#, &Behaviour::default()).starts_with("abort"));
}

#[test]
fn injected_steps_are_counted() {
    let steps = br#"{"injectSteps":[{"userMessage":"a"},{"ephemeralMessage":"b"},{"toolCall":{}}]}"#;
    let end = HookEnd { exit_code: Some(0), stdout: steps, timed_out: false };
    assert_eq!(interpret(Event::PreInvocation, end, &Behaviour::default()).inject, 3);
    let system = r#"{"injectSteps":[{"systemMessage":{"systemMessage":"a"}}]}"#;
    assert_eq!(said(Event::PreInvocation, system, &on((1, 5, 14))), "neutral");
    assert!(said(Event::PreInvocation, system, &on((1, 4, 7))).starts_with("abort"));
}

#[test]
fn at_a_stop_only_continue_goes_on() {
    for (stdout, expected) in [
        ("", "neutral"),
        ("{}", "neutral"),
        (r#"{"decision":""}"#, "neutral"),
        (r#"{"decision":"block"}"#, "neutral"),
        (r#"{"decision":"continue","reason":"more"}"#, "continue"),
        (r#"{"decision":"continue","extra":1}"#, "neutral"),
    ] {
        assert_eq!(said(Event::Stop, stdout, &Behaviour::default()), expected, "{stdout}");
    }
}

#[test]
fn a_failed_hook_denies_a_tool_aborts_an_invocation_and_is_only_logged_elsewhere() {
    for (exit_code, stdout) in [(Some(1), ""), (Some(2), r#"{"decision":"allow"}"#), (Some(127), ""), (None, "")] {
        let end = HookEnd { exit_code, stdout: stdout.as_bytes(), timed_out: false };
        for (event, expected) in [
            (Event::PreToolUse, "deny: "),
            (Event::PreInvocation, "abort: "),
            (Event::PostInvocation, "abort: "),
            (Event::PostToolUse, "neutral"),
            (Event::Stop, "neutral"),
            (Event::SessionStart, "neutral"),
        ] {
            let effect = interpret(event, end, &Behaviour::default());
            assert!(effect.describe().starts_with(expected), "{event} {exit_code:?}: {}", effect.describe());
            assert!(effect.fault.is_some(), "{event} {exit_code:?}");
        }
    }
}

#[test]
fn what_a_timeout_does_can_be_chosen() {
    let end = HookEnd { exit_code: Some(0), stdout: b"", timed_out: true };
    assert_eq!(interpret(Event::PreToolUse, end, &Behaviour::default()).describe(), "deny: timed out");
    let open = Behaviour { on_timeout: TimeoutOutcome::Open, ..Behaviour::default() };
    let effect = interpret(Event::PreToolUse, end, &open);
    assert_eq!((effect.describe().as_str(), effect.fault.as_deref()), ("neutral", Some("timed out")));
}

#[test]
fn a_reply_to_an_event_that_takes_none_is_a_fault() {
    for event in [Event::PostToolUse, Event::SessionStart] {
        let end = |stdout| HookEnd { exit_code: Some(0), stdout, timed_out: false };
        assert_eq!(interpret(event, end(b"{}"), &Behaviour::default()).fault, None);
        assert!(interpret(event, end(br#"{"decision":"allow"}"#), &Behaviour::default()).fault.is_some());
    }
}

#[test]
fn overwrite_counts_since_1_2_6() {
    let end = HookEnd {
        exit_code: Some(0),
        stdout: br#"{"decision":"allow","overwrite":{"CommandLine":"true"}}"#,
        timed_out: false,
    };
    assert_eq!(interpret(Event::PreToolUse, end, &on((1, 2, 6))).overwrite.len(), 1);
    assert_eq!(interpret(Event::PreToolUse, end, &on((1, 2, 5))).overwrite.len(), 0);
}

#[test]
fn of_several_hooks_the_strongest_counts_and_the_first_of_two_denials_is_named() {
    let mut effect = Effect::default();
    for decision in [Decision::Ask, Decision::Allow, Decision::Neutral] {
        effect.add(Effect { decision, ..Effect::default() });
    }
    assert_eq!(effect.decision, Decision::Ask);
    for reason in ["first", "second"] {
        effect.add(Effect { decision: Decision::Deny(reason.to_owned()), ..Effect::default() });
    }
    assert_eq!(effect.decision, Decision::Deny("first".to_owned()));
}
