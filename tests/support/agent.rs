//! The agy stand-in, started on a sandbox whose hooks.json registers the program under test.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use agy_stand_in::Agy;
use serde_json::{Value, json};

use super::sandbox::{PROGRAM, Sandbox};

/// Builds the stand-in once; it is a package of its own, so that nobody installs it with the program.
pub(crate) fn agy_program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let built = escargot::CargoBuild::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .package("agy-stand-in")
            .bin("agy")
            .current_target()
            .run()
            .expect("the stand-in builds");
        built.path().to_owned()
    };
    BUILT.get_or_init(build).clone()
}

/// The member that registers the program for every event, in agy's two shapes, guarded as the installer does it.
pub(crate) fn registration() -> Value {
    let handler = |event: &str| json!({"type": "command", "command": format!("\"{PROGRAM}\" hook antigravity {event} 2>/dev/null || :"), "timeout": 10});
    let flat = |event: &str| json!([handler(event)]);
    let group = |event: &str| json!([{"matcher": "*", "hooks": [handler(event)]}]);
    json!({
        "SessionStart": flat("SessionStart"),
        "PreInvocation": flat("PreInvocation"),
        "PreToolUse": group("PreToolUse"),
        "PostToolUse": group("PostToolUse"),
        "PostInvocation": flat("PostInvocation"),
        "Stop": flat("Stop"),
    })
}

impl Sandbox {
    /// Registers the program in the workspace's hooks.json.
    pub(crate) fn register(&self) {
        let folder = self.work().join(".agents");
        fs::create_dir_all(&folder).unwrap();
        let hooks = json!({"fi-hook-to-otlp": registration()});
        fs::write(folder.join("hooks.json"), serde_json::to_vec_pretty(&hooks).unwrap()).unwrap();
    }

    /// The stand-in on this sandbox, in a clean environment.
    pub(crate) fn agy(&self) -> Agy {
        let mut agy = Agy::new(agy_program(), &self.home(), &self.work());
        let command = agy.command();
        command.env_clear().env("HOME", self.home()).env("PATH", "/usr/bin:/bin");
        agy
    }
}
