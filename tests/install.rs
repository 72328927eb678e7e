//! `install` and `uninstall` with the real binary: what is in hooks.json afterwards, and that nothing else is touched.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failure here is a failed test")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use agy_stand_in::hooks::HookFile;
use serde_json::{Value, json};
use support::agent::registration;
use support::program::write_program;
use support::sandbox::{PROGRAM, Sandbox, feed};

const DEFAULT_WORD: &str = r#""$HOME/.local/bin/fi-hook-to-otlp""#;

/// A sandbox with the program in `~/.local/bin`.
fn with_program() -> Sandbox {
    let sandbox = Sandbox::new();
    put_program(&sandbox.home().join(".local/bin"));
    sandbox
}

/// A link, since the test program has 50 MB.
fn put_program(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join("fi-hook-to-otlp");
    symlink(PROGRAM, &path).unwrap();
    path
}

fn hooks_file(sandbox: &Sandbox) -> PathBuf {
    sandbox.work().join(".agents/hooks.json")
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    sandbox.command(arguments).output().unwrap()
}

#[track_caller]
fn expect(sandbox: &Sandbox, arguments: &[&str], code: i32) -> (String, String) {
    let output = run(sandbox, arguments);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
    (out, err)
}

/// The file as it must be for a program that the shell knows by `word`.
fn expected(word: &str) -> Value {
    let inside_json = |text: &str| {
        let quoted = serde_json::to_string(text).unwrap();
        quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap().to_owned()
    };
    let own = inside_json(&format!("\"{PROGRAM}\""));
    let member = registration().to_string().replace(&own, &inside_json(word));
    json!({"fi-hook-to-otlp": serde_json::from_str::<Value>(&member).unwrap()})
}

fn written(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    let read = HookFile::parse(&text).unwrap();
    assert!(read.notes.is_empty(), "agy would drop a part: {:?}", read.notes);
    serde_json::from_str(&text).unwrap()
}

/// Event and command of everything registered in a file.
fn commands(file: &Path) -> Vec<(String, String)> {
    let actions = HookFile::parse(&fs::read_to_string(file).unwrap()).unwrap().hooks.remove(0).actions;
    actions.into_iter().map(|action| (action.event.to_string(), action.handler.command)).collect()
}

/// Everything below a folder: path, inode, mode, time and bytes.
fn everything(folder: &Path) -> Vec<(PathBuf, u64, u32, i64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path.clone());
            }
            let bytes = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.push((path, meta.ino(), meta.mode(), meta.mtime_nsec(), bytes));
        }
    }
    found.sort();
    found
}

#[test]
fn a_fresh_folder_gets_the_registration_and_the_second_time_changes_nothing() {
    let sandbox = with_program();
    let (out, err) = expect(&sandbox, &["install"], 0);
    assert_eq!(written(&hooks_file(&sandbox)), expected(DEFAULT_WORD));
    assert!(out.starts_with("installed    ") && err.is_empty(), "{out}{err}");
    for said in ["destination  none", ".config/fi-hook-to-otlp/env (not there yet)", " demo", " show"] {
        assert!(out.contains(said), "{said}: {out}");
    }
    let before = everything(&sandbox.work());
    let (out, _) = expect(&sandbox, &["install", sandbox.work().to_str().unwrap()], 0);
    assert!(out.starts_with("already installed, nothing changed"), "{out}");
    assert_eq!(everything(&sandbox.work()), before);

    expect(&sandbox, &["uninstall"], 0);
    assert!(!hooks_file(&sandbox).exists());
    let (out, _) = expect(&sandbox, &["uninstall"], 0);
    assert!(out.starts_with("not installed"), "{out}");
}

#[test]
fn a_file_of_somebody_else_stays_as_it_is_and_the_member_to_add_is_printed() {
    let sandbox = with_program();
    let file = hooks_file(&sandbox);
    fs::create_dir(file.parent().unwrap()).unwrap();
    let exact = expected(DEFAULT_WORD);
    let mut other_command = exact.clone();
    other_command["fi-hook-to-otlp"]["Stop"][0]["command"] = "/opt/old/fi-hook-to-otlp hook antigravity Stop".into();
    for (text, why) in [
        ("{\n\t\"b\": {\"Stop\": [{\"command\":\"b\"}]}, \"a\" : {} }\n", "written by somebody else"),
        ("{}", "written by somebody else"),
        ("", "not JSON"),
        ("// mine\n{\"a\":{}}", "not JSON"),
        ("{\"a\":{},}", "not JSON"),
        ("\u{feff}{\"a\":{}}", "not JSON"),
        ("{\"a\":{\"Stop\":[", "not JSON"),
        ("[]", "not a JSON object"),
        ("{\"version\": 1}", "version is not a map of events"),
        ("{\"a\":{\"Stop\":[{\"matcher\":\"*\",\"hooks\":[]}]}}", "a.Stop[0] is a matcher group"),
        (&other_command.to_string(), "other options"),
    ] {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let before = everything(&sandbox.work());
        let (out, err) = expect(&sandbox, &["install"], 1);
        assert_eq!(everything(&sandbox.work()), before, "{text}");
        assert!(err.contains("left as it is") && err.contains(why), "{text}: {err}");
        assert_eq!(serde_json::from_str::<Value>(&format!("{{{out}}}")).unwrap(), exact, "{text}");
        if !text.contains("fi-hook") {
            run(&sandbox, &["uninstall"]);
            assert_eq!(everything(&sandbox.work()), before, "{text}");
        }
    }
}

#[test]
fn a_pasted_member_counts_as_installed() {
    let sandbox = with_program();
    let file = hooks_file(&sandbox);
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, "{\"a\":{}}").unwrap();
    let (member, _) = expect(&sandbox, &["install"], 1);
    fs::write(&file, format!("{{\"a\":{{}},\n{member}}}")).unwrap();
    let before = everything(&sandbox.work());
    expect(&sandbox, &["install"], 0);
    let (_, err) = expect(&sandbox, &["uninstall"], 1);
    assert!(err.contains("it holds other hooks, too") && err.contains("by hand"), "{err}");
    assert_eq!(everything(&sandbox.work()), before);
}

#[test]
fn links_stay_links() {
    let sandbox = with_program();
    let file = hooks_file(&sandbox);
    let dotfiles = sandbox.path().join("dot files");
    fs::create_dir_all(&dotfiles).unwrap();
    fs::create_dir(file.parent().unwrap()).unwrap();
    symlink("../../dot files/hooks.json", &file).unwrap();
    expect(&sandbox, &["install"], 0);
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(written(&dotfiles.join("hooks.json")), expected(DEFAULT_WORD));
    assert_eq!(fs::read_dir(&dotfiles).unwrap().count(), 1, "nothing is left beside");
    expect(&sandbox, &["install"], 0);
    expect(&sandbox, &["uninstall"], 0);
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink() && !file.exists());
    fs::write(dotfiles.join("hooks.json"), "{}").unwrap();
    expect(&sandbox, &["install"], 1);
    assert_eq!(fs::read(&file).unwrap(), b"{}");
}

#[test]
fn many_at_once_leave_one_whole_file() {
    let sandbox = with_program();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let output = run(&sandbox, &["install"]);
                let lost = String::from_utf8_lossy(&output.stderr).contains("run this again");
                assert!(output.status.success() || lost, "{output:?}");
            });
        }
    });
    assert_eq!(written(&hooks_file(&sandbox)), expected(DEFAULT_WORD));
    assert_eq!(fs::read_dir(sandbox.work().join(".agents")).unwrap().count(), 1);
}

#[test]
fn the_global_file_and_odd_places_of_the_program() {
    let sandbox = with_program();
    expect(&sandbox, &["install", "--global"], 0);
    let global = sandbox.home().join(".gemini/config/hooks.json");
    assert_eq!(written(&global), expected(DEFAULT_WORD));
    expect(&sandbox, &["uninstall", "--global"], 0);
    assert!(!global.exists() && !hooks_file(&sandbox).exists());

    for (folder, word) in [
        ("home/b i n", r#""$HOME/b i n/fi-hook-to-otlp""#.to_owned()),
        (
            "o'b \"q\" $(touch x) `touch x` \\n",
            format!(r#""{}/o'b \"q\" \$(touch x) \`touch x\` \\n/fi-hook-to-otlp""#, sandbox.path().to_str().unwrap()),
        ),
    ] {
        let folder = sandbox.path().join(folder);
        put_program(&folder);
        expect(&sandbox, &["install", "--bin-dir", folder.to_str().unwrap()], 0);
        assert_eq!(written(&hooks_file(&sandbox)), expected(&word));
        assert_commands(&sandbox, &hooks_file(&sandbox), true);
        expect(&sandbox, &["uninstall"], 0);
    }
    assert!(!sandbox.work().join(".agents/x").exists());
}

#[test]
fn a_vendored_program_is_registered_by_its_relative_path() {
    let sandbox = Sandbox::new();
    let own = sandbox.work().join(".agents/fi-hook-to-otlp/fi-hook-to-otlp");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    write_program(&own, "an older one");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    expect(&sandbox, &["install", "--vendor"], 0);
    assert_eq!(written(&hooks_file(&sandbox)), expected(r#""./fi-hook-to-otlp/fi-hook-to-otlp""#));
    assert_eq!(fs::read(&own).unwrap(), fs::read(PROGRAM).unwrap());
    assert_commands(&sandbox, &hooks_file(&sandbox), true);
    let before = everything(&sandbox.work());
    expect(&sandbox, &["install", "--vendor"], 0);
    assert_eq!(everything(&sandbox.work()), before);
    expect(&sandbox, &["uninstall"], 0);
    assert_eq!(fs::read_dir(sandbox.work().join(".agents")).unwrap().count(), 0);
}

#[test]
fn flags_change_the_registration_or_leave_the_disk_alone() {
    let sandbox = with_program();
    let file = hooks_file(&sandbox);
    for arguments in [&["install", "--print"][..], &["install", "--dry-run"]] {
        let (out, _) = expect(&sandbox, arguments, 0);
        assert!(!file.parent().unwrap().exists());
        let text = out.split_at(out.find('{').unwrap()).1;
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected(DEFAULT_WORD), "{arguments:?}");
    }
    expect(&sandbox, &["install", "--no-pre-tool-use"], 0);
    let mut without = expected(DEFAULT_WORD);
    without["fi-hook-to-otlp"].as_object_mut().unwrap().remove("PreToolUse");
    assert_eq!(written(&file), without);
    expect(&sandbox, &["uninstall"], 0);

    expect(&sandbox, &["install", "--pre-tool-reply", "empty-decision"], 0);
    let command = commands(&file).into_iter().find(|(event, _)| event == "PreToolUse").unwrap().1;
    assert!(command.contains("hook antigravity PreToolUse --reply empty-decision 2>/dev/null || :"), "{command}");
    for wrong in [
        &["install", "--pre-tool-reply", "allow"][..],
        &["install", "--no-pre-tool-use", "--pre-tool-reply", "nothing"],
        &["install", "--vendor", "--bin-dir", "/x"],
        &["install", "--global", "x"],
    ] {
        expect(&sandbox, wrong, 2);
    }
}

#[test]
fn a_program_that_cannot_be_run_is_not_registered() {
    let sandbox = Sandbox::new();
    let folder = sandbox.home().join(".local/bin");
    let program = folder.join("fi-hook-to-otlp");
    let refused = |arguments: &[&str], why: &str| {
        let (_, err) = expect(&sandbox, arguments, 1);
        assert!(err.contains(why), "{why}: {err}");
        assert!(!sandbox.work().join(".agents").exists());
    };
    refused(&["install"], "there is no ");
    refused(&["install", "--bin-dir", "bin"], "give an absolute path");
    refused(&["install", "no such folder"], "no folder no such folder");
    refused(&["install", "--bin-dir", Path::new(PROGRAM).parent().unwrap().to_str().unwrap()], "next upgrade or build");
    fs::create_dir_all(&program).unwrap();
    refused(&["install"], "is not an executable file");
    fs::remove_dir(&program).unwrap();
    write_program(&program, "#!/bin/sh\necho something else\n");
    refused(&["install"], "is not an executable file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    refused(&["install"], "does not answer as fi-hook-to-otlp does");
    write_program(&program, foreign_program());
    refused(&["install"], "does not run");
    fs::write(sandbox.work().join("file"), "").unwrap();
    refused(&["install", "file"], "is not a folder");
}

/// The start of a program for a machine that this is not.
fn foreign_program() -> Vec<u8> {
    let mut bytes = fs::read(PROGRAM).unwrap();
    bytes.truncate(1 << 16);
    // e_machine: SPARC.
    bytes[18..20].copy_from_slice(&[2, 0]);
    bytes
}

#[test]
fn the_registered_commands_are_neutral_whatever_is_in_the_programs_place() {
    let sandbox = with_program();
    expect(&sandbox, &["install"], 0);
    let program = sandbox.home().join(".local/bin/fi-hook-to-otlp");
    assert_commands(&sandbox, &hooks_file(&sandbox), true);
    fs::remove_file(&program).unwrap();
    assert_commands(&sandbox, &hooks_file(&sandbox), false);
    write_program(&program, fs::read(PROGRAM).unwrap().get(..4096).unwrap());
    assert_commands(&sandbox, &hooks_file(&sandbox), false);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_commands(&sandbox, &hooks_file(&sandbox), false);
    write_program(&program, foreign_program());
    assert_commands(&sandbox, &hooks_file(&sandbox), false);
    fs::write(&program, "#!/bin/sh\nkill -9 $$\n").unwrap();
    assert_commands(&sandbox, &hooks_file(&sandbox), false);
    assert_eq!(fs::read_dir(sandbox.work().join(".agents")).unwrap().count(), 1, "no shell wrote a file there");
}

/// Runs every registered command as agy does. Without a program that works each says nothing, which is neutral, too.
#[track_caller]
fn assert_commands(sandbox: &Sandbox, file: &Path, works: bool) {
    let commands = commands(file);
    assert_eq!(commands.len(), 6);
    for (event, command) in commands {
        let reply = match event.as_str() {
            _ if !works => "",
            "PreToolUse" => "",
            "Stop" => r#"{"decision":""}"#,
            _ => "{}",
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]);
        sandbox.dress(&mut shell);
        shell.current_dir(file.parent().unwrap());
        let output = feed(shell.spawn().unwrap(), br#"{"conversationId":"c"}"#);
        assert_eq!(String::from_utf8_lossy(&output.stdout), reply, "{event}");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{event}: {output:?}");
    }
}
