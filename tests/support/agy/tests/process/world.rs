//! A throw-away home and workspace, hooks in shell, and short views of a report.

use std::fs;
use std::path::{Path, PathBuf};

use agy_stand_in::report::HookRecord;
use agy_stand_in::script::{Conversation, Script, Tool, Turn};
use agy_stand_in::{Agy, Event, Finished, Report};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

pub(crate) const ID: &str = "7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11";

pub(crate) struct World {
    root: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.path("home")).unwrap();
        fs::create_dir_all(world.path("project")).unwrap();
        world
    }

    /// With one global hook, called `probe`.
    pub(crate) fn with(handlers: &[(Event, &str)]) -> Self {
        let world = Self::new();
        world.global(&json!({"probe": hook(handlers)}));
        world
    }

    /// With one global hook that says nothing on every event.
    pub(crate) fn silent() -> Self {
        Self::with(&Event::ALL.map(|event| (event, "cat > /dev/null")))
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn global(&self, hooks: &Value) {
        self.write("home/.gemini/config/hooks.json", &hooks.to_string());
    }

    pub(crate) fn workspace(&self, hooks: &Value) {
        self.write("project/.agents/hooks.json", &hooks.to_string());
    }

    /// The program; hooks find a file to write to in `$LOG`.
    pub(crate) fn agy(&self) -> Agy {
        let agy = Agy::new(env!("CARGO_BIN_EXE_agy"), &self.path("home"), &self.path("project"));
        agy.env("LOG", self.path("log"))
    }

    pub(crate) fn run(&self, script: &Script) -> Finished {
        self.agy().run(script).unwrap()
    }

    /// The lines hooks have written.
    pub(crate) fn log(&self) -> Vec<String> {
        lines(&self.path("log"))
    }
}

pub(crate) fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The value of a named hook: each event with its command, in the shape the event wants.
pub(crate) fn hook(handlers: &[(Event, &str)]) -> Value {
    hook_with_timeout(handlers, 30)
}

pub(crate) fn hook_with_timeout(handlers: &[(Event, &str)], timeout: u64) -> Value {
    let mut members = Map::new();
    for (event, command) in handlers {
        let handler = json!({"type": "command", "command": command, "timeout": timeout});
        let entry = if event.is_grouped() { json!({"matcher": "*", "hooks": [handler]}) } else { handler };
        let list = members.entry(event.name()).or_insert_with(|| json!([]));
        list.as_array_mut().unwrap().push(entry);
    }
    Value::Object(members)
}

pub(crate) fn conversation() -> Conversation {
    Conversation::new().id(ID)
}

/// One prompt, one tool, one answer.
pub(crate) fn one_tool() -> Script {
    Script::of(conversation().turn(Turn::prompt("say hello").tool(Tool::run_command("echo hello", ".")).answer()))
}

/// One prompt, one answer.
pub(crate) fn one_answer() -> Script {
    Script::of(conversation().turn(Turn::prompt("hi").answer()))
}

pub(crate) fn payload(hook: &HookRecord) -> Value {
    serde_json::from_str(hook.payload.get()).unwrap()
}

/// Each event with the numbers it carries, as `PreInvocation 0/1`, `PreToolUse 2`, `Stop 0 idle`.
pub(crate) fn numbers(report: &Report) -> Vec<String> {
    report.hooks.iter().map(number).collect()
}

fn number(hook: &HookRecord) -> String {
    let payload = payload(hook);
    match hook.event {
        Event::SessionStart => "SessionStart".to_owned(),
        Event::PreInvocation | Event::PostInvocation => {
            format!("{} {}/{}", hook.event, payload["invocationNum"], payload["initialNumSteps"])
        }
        Event::PreToolUse => format!("{} {}", hook.event, payload["stepIdx"]),
        Event::PostToolUse if payload.get("toolCall") == Some(&Value::Null) => {
            format!("{} {} no tool", hook.event, payload["stepIdx"])
        }
        Event::PostToolUse => format!("{} {}", hook.event, payload["stepIdx"]),
        Event::Stop => {
            let idle = if payload["fullyIdle"] == true { "idle" } else { "busy" };
            format!("{} {} {idle}", hook.event, payload["executionNum"])
        }
    }
}
