//! A private view of disk and network for one test: namespaces that go with it. Needs root, and says so.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::sandbox::{PROGRAM, Sandbox, feed};

/// Namespaces, kept by a shell that waits in them.
pub(crate) struct Confined<'a> {
    sandbox: &'a Sandbox,
    kinds: &'a [&'a str],
    keeper: Child,
}

impl<'a> Confined<'a> {
    /// Makes a mount namespace; `script` is run in it first, with the sandbox's HOME as `$0`.
    pub(crate) fn new(sandbox: &'a Sandbox, script: &str) -> Self {
        Self::with(sandbox, &["-m"], script)
    }

    /// Makes namespaces of these kinds, by unshare's options.
    pub(crate) fn with(sandbox: &'a Sandbox, kinds: &'a [&'a str], script: &str) -> Self {
        let script = format!("set -e; {script}\necho ready; read wait");
        let mut keeper = Command::new("unshare")
            .args(kinds)
            .args(["sh", "-c", &script])
            .arg(sandbox.home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "ready", "this test makes namespaces and mounts of its own: run it as root");
        Self { sandbox, kinds, keeper }
    }

    /// Runs a shell command in it, which must succeed.
    #[track_caller]
    pub(crate) fn shell(&self, script: &str) {
        let status = self.enter(&["sh", "-c", script]).arg(self.sandbox.home()).status().unwrap();
        assert!(status.success(), "{script}");
    }

    /// The program in it, in the sandbox's clean environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.enter(&[PROGRAM]);
        command.args(arguments);
        self.sandbox.dress(&mut command);
        command
    }

    /// Runs one hook to its end.
    pub(crate) fn hook(&self, event: &str, payload: &str) -> Output {
        feed(self.command(&["hook", "antigravity", event]).spawn().unwrap(), payload.as_bytes())
    }

    /// A path as it is seen from outside.
    pub(crate) fn outside(&self, path: &Path) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.keeper.id(), path.display()))
    }

    /// Another program in it.
    pub(crate) fn enter(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(self.kinds)
            .args(["-t", &self.keeper.id().to_string()])
            .arg(format!("--wd={}", self.sandbox.work().display()))
            .args(words);
        command
    }
}

impl Drop for Confined<'_> {
    fn drop(&mut self) {
        let _ = self.keeper.stdin.take().map(|mut stdin| stdin.write_all(b"\n"));
        let _ = self.keeper.wait();
    }
}
