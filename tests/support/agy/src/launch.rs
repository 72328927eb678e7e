//! Starts the built program from a Rust test: home, workspace, script in; report out.
//!
//! It does not build the program: the test says where it is. The script goes through stdin, so nothing is left on disk.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use crate::play::recording::Recording;
use crate::report::{Report, ReportError};
use crate::script::Script;

/// The program, about to be started.
#[derive(Debug)]
pub struct Agy(Command);

/// A run that came to its end.
#[derive(Debug)]
pub struct Finished {
    /// How the program ended.
    pub status: ExitStatus,
    /// What happened.
    pub report: Report,
    /// The program's own stderr.
    pub stderr: String,
}

/// A run that could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program could not be started or waited for.
    #[error("cannot run the stand-in: {0}; build the package agy-stand-in and name its binary")]
    Io(#[from] io::Error),
    /// Its report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl Agy {
    /// The program at this path, with a home folder and a workspace of its own.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>, home: &Path, workspace: &Path) -> Self {
        let mut command = Command::new(program);
        command.env("HOME", home).arg("--workspace").arg(workspace).current_dir(workspace);
        Self(command)
    }

    /// Sets a variable in its environment, which hooks inherit.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.0.env(key, value);
        self
    }

    /// Adds an argument of the command line.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.0.arg(argument);
        self
    }

    /// Adds arguments of the command line.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.0.args(arguments);
        self
    }

    /// Anything else about the process that `Command` can do.
    pub fn command(&mut self) -> &mut Command {
        &mut self.0
    }

    /// Plays a script to its end.
    ///
    /// # Errors
    /// [`LaunchError`] if the program cannot be run or its report cannot be read. A program that was killed is no error.
    pub fn run(self, script: &Script) -> Result<Finished, LaunchError> {
        self.finish("--script", script.to_json())
    }

    /// Plays a recording to its end.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn play(self, recording: &Recording) -> Result<Finished, LaunchError> {
        self.finish("--play", recording.to_ndjson())
    }

    /// Starts playing a script and returns at once; the report goes to that file, and its own stderr nowhere.
    ///
    /// # Errors
    /// As `Command::spawn`.
    pub fn spawn(mut self, script: &Script, report: &Path) -> io::Result<Child> {
        self.0.arg("--script").arg("-").arg("--report").arg(report).stdout(Stdio::null()).stderr(Stdio::null());
        self.start(script.to_json())
    }

    fn finish(mut self, flag: &str, input: String) -> Result<Finished, LaunchError> {
        self.0.arg(flag).arg("-").stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = self.start(input)?.wait_with_output()?;
        let report = Report::parse(&String::from_utf8_lossy(&output.stdout))?;
        Ok(Finished { status: output.status, report, stderr: String::from_utf8_lossy(&output.stderr).into_owned() })
    }

    fn start(&mut self, input: String) -> io::Result<Child> {
        let mut child = self.0.stdin(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // On a thread, so that a long script cannot block on a program that ends early; its exit code says why.
            thread::spawn(move || _ = stdin.write_all(input.as_bytes()));
        }
        Ok(child)
    }
}
