//! Which hooks.json files the program reads, and what it says about them.

use agy_stand_in::hooks::FileState;
use std::os::unix::process::ExitStatusExt;

use agy_stand_in::report::TurnEnd;
use agy_stand_in::{Agy, Event, Report};
use serde_json::{Value, json};

use crate::world::{World, hook, one_answer, payload};

const QUIET: &str = "cat > /dev/null";

#[test]
fn one_bad_member_silences_the_whole_file_and_the_conversation_goes_on() {
    let world = World::new();
    let good = hook(&[(Event::Stop, QUIET)]);
    for bad in [
        json!({"good": good, "version": 1}),
        json!({"good": good, "x": {"Stop": [{"matcher": "*", "hooks": [{"command": QUIET}]}]}}),
    ] {
        world.global(&bad);
        let run = world.run(&one_answer());
        assert!(run.report.hooks.is_empty(), "{bad}");
        assert_eq!(run.report.start.unwrap().files[0].state, FileState::Void, "{bad}");
        assert_eq!(run.status.code(), Some(0), "{bad}");
        assert!(run.stderr.contains("loaded 0 named hooks from 0 hooks.json file(s)"), "{}", run.stderr);
    }
    world.global(&json!({"good": good}));
    assert_eq!(world.run(&one_answer()).report.hooks.len(), 1);
}

#[test]
fn a_hook_installed_twice_gets_each_event_twice_unless_it_has_one_name() {
    let world = World::new();
    world.global(&json!({"ours": hook(&[(Event::Stop, QUIET)])}));
    world.workspace(&json!({"ours": hook(&[(Event::Stop, QUIET), (Event::PreInvocation, QUIET)])}));
    assert_eq!(world.run(&one_answer()).report.events(), [Event::Stop]);
    world.workspace(&json!({"theirs": hook(&[(Event::Stop, QUIET)])}));
    let run = world.run(&one_answer());
    assert_eq!(run.report.hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>(), ["ours", "theirs"]);
    assert_eq!(run.report.hooks_named("theirs").count(), 1);
}

#[test]
fn a_disabled_hook_runs_nothing() {
    let world = World::new();
    let mut off = hook(&[(Event::Stop, QUIET)]);
    off["enabled"] = json!(false);
    world.global(&json!({"off": off, "on": hook(&[(Event::Stop, QUIET)])}));
    assert_eq!(world.run(&one_answer()).report.hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>(), ["on"]);
}

#[test]
fn workspace_paths_are_those_of_open_folders() {
    let world = World::silent();
    let paths = |agy: Agy| payload(&agy.run(&one_answer()).unwrap().report.hooks[0])["workspacePaths"].clone();
    let (project, other) = (world.path("project"), world.path("other"));
    std::fs::create_dir(&other).unwrap();
    assert_eq!(paths(world.agy()), json!([]));
    assert_eq!(paths(world.agy().arg("--add-dir").arg(&other)), json!([other]));
    assert_eq!(
        paths(world.agy().args(["--mode", "interactive"]).arg("--add-dir").arg(&other)),
        json!([project, other])
    );
}

#[test]
fn the_global_file_can_be_another_one() {
    let world = World::silent();
    world.write("other.json", &json!({"other": hook(&[(Event::Stop, QUIET)])}).to_string());
    let run = world.agy().arg("--home-config").arg(world.path("other.json")).run(&one_answer()).unwrap();
    assert_eq!(run.report.hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>(), ["other"]);
}

#[test]
fn flags_win_over_the_script() {
    let world = World::silent();
    let agy = world.agy().args([
        "--product",
        "ide",
        "--profile-version",
        "1.0.1",
        "--conversation",
        "1F0A2C1E-9b1d-4a2e-8a53-55d7c0f2ab01",
    ]);
    let payload = payload(&agy.run(&one_answer()).unwrap().report.hooks[0]);
    assert!(
        payload["transcriptPath"].as_str().unwrap().contains("/.gemini/antigravity-ide/brain/1f0a2c1e-"),
        "{payload}"
    );
    assert_eq!(payload.get("modelName"), None);
}

#[test]
fn the_hooks_can_be_listed_without_a_conversation() {
    let world = World::new();
    world.global(&json!({"ours": hook(&[(Event::Stop, "x"), (Event::PreToolUse, "y")])}));
    let output = world.agy().args(["-p", "/hooks", "--output-format", "json"]).command().output().unwrap();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!([{
        "name": "ours",
        "enabled": true,
        "source": world.path("home/.gemini/config/hooks.json"),
        "actions": [
            {"event": "PreToolUse", "type": "command", "command": "y", "timeout_seconds": 30},
            {"event": "Stop", "type": "command", "command": "x", "timeout_seconds": 30},
        ],
    }]);
    assert_eq!(listed["command"]["data"]["hooks"], expected);
}

#[test]
fn the_version_is_that_of_the_profile() {
    let world = World::new();
    let output = world.agy().arg("--version").env("AGY_STAND_IN_PROFILE", "1.2.7").command().output().unwrap();
    assert_eq!(output.stdout, b"1.2.7\n");
}

#[test]
fn a_wrong_use_says_what_to_do_and_exits_with_2() {
    let world = World::new();
    world.write("bad.json", r#"{"conversations": [{"turn": []}]}"#);
    for (arguments, said) in [
        (vec!["--script", "no-such-file"], "no-such-file"),
        (vec!["--script", "../bad.json"], "is not a script"),
        (vec!["--play", "../bad.json"], "is not a recorded event"),
        (vec!["-p", "/help"], "only /hooks is known"),
    ] {
        let output = world.agy().args(&arguments).command().output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(said),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn the_script_of_the_readme_plays() {
    let readme = include_str!("../../README.md");
    let script = readme.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let world = World::silent();
    world.write("script.json", script);
    let output = world.agy().args(["--script", "../script.json"]).command().output().unwrap();
    let report = Report::parse(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let ended: Vec<_> = report.turns.iter().map(|turn| turn.ended).collect();
    assert_eq!(ended, [TurnEnd::Stopped, TurnEnd::Stopped, TurnEnd::Escaped]);
    assert_eq!((output.status.signal(), report.faults().count()), (Some(9), 0));
}
