//! A private machine for the real binary: its own HOME, a clean environment, and no sender left behind.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fi_hook_to_otlp::store::{Store, StoredSpan};
use tempfile::TempDir;

use super::lock::HeldLock;

/// The program under test, as cargo built it.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_fi-hook-to-otlp");

/// The program that hooks and commands run: the build that `tests/e2e/run.sh` was given, else the one above.
pub(crate) fn program() -> String {
    std::env::var("E2E_BINARY").unwrap_or_else(|_| PROGRAM.to_owned())
}

/// Bound on anything that must happen at all; far above what it takes, so that only a hang reaches it.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// A HOME of its own. Ends its senders when it goes.
pub(crate) struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("fi hook ").tempdir().unwrap();
        for inner in ["home", "work"] {
            fs::create_dir(folder.path().join(inner)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// The folder that stands for the one of hooks.json.
    pub(crate) fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.home().join(".local/state/fi-hook-to-otlp")
    }

    /// Writes the settings file.
    pub(crate) fn settings(&self, lines: &str) {
        let folder = self.home().join(".config/fi-hook-to-otlp");
        fs::create_dir_all(&folder).unwrap();
        let beside = folder.join("env.new");
        fs::write(&beside, lines).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(beside, folder.join("env")).unwrap();
    }

    /// The program with arguments, in a clean environment.
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments);
        self.dress(&mut command);
        command
    }

    /// Gives a command the clean environment.
    pub(crate) fn dress(&self, command: &mut Command) {
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// Runs one hook to its end.
    pub(crate) fn hook(&self, event: &str, payload: &[u8]) -> Output {
        feed(self.command(&["hook", "antigravity", event]).spawn().unwrap(), payload)
    }

    /// Process ids of the senders that live here.
    pub(crate) fn senders(&self) -> Vec<u32> {
        let own = [b"FI_HOOK_STATE_DIR=".as_slice(), self.path().as_os_str().as_encoded_bytes()].concat();
        let processes =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse().ok());
        processes
            .filter(|pid: &u32| {
                let word = |name| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                word("cmdline").starts_with(b"fi-hook-to-otlp\0send\0")
                    && word("environ").split(|byte| *byte == 0).any(|variable| variable.starts_with(&own))
            })
            .collect()
    }

    /// Waits until no sender lives and none is about to: one that was only just forked does not look like a sender yet,
    /// but has the lock.
    pub(crate) fn senders_end(&self) {
        drop(HeldLock::take(&self.profile()));
        eventually("the sender ends", || self.senders().is_empty().then_some(()));
    }

    /// Kills the sender and waits until its lock is free: a dying process has no words in /proc any more while it still
    /// holds its files.
    pub(crate) fn kill_sender(&self) {
        // Again and again: one that was only just forked does not look like a sender yet.
        drop(HeldLock::take_while(&self.profile(), || self.senders().into_iter().for_each(kill)));
    }

    /// The only profile's folder.
    pub(crate) fn profile(&self) -> PathBuf {
        self.state().join("default")
    }

    /// Stored spans of a conversation, in whatever state of delivery.
    pub(crate) fn spans(&self, conversation: &str) -> Vec<StoredSpan> {
        match Store::open_read_only(&self.profile()) {
            Ok(Some(store)) => store.spans(conversation).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// How many tool spans all profiles have, in whatever state of delivery.
    pub(crate) fn stored_tools(&self) -> usize {
        let profiles = fs::read_dir(self.state()).unwrap().map(|profile| profile.unwrap().path());
        let stores = profiles.filter_map(|profile| Store::open_read_only(&profile).ok().flatten());
        let spans = stores.flat_map(|store| {
            let conversations = store.conversations().unwrap_or_default();
            conversations.iter().flat_map(|row| store.spans(&row.id).unwrap_or_default()).collect::<Vec<_>>()
        });
        spans.filter(|stored| stored.span.name.starts_with("tool_")).count()
    }

    /// A counter of the store; 0 if it was never counted.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        match Store::open_read_only(&self.profile()) {
            Ok(Some(store)) => store.counters().unwrap_or_default().get(name).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// Every regular file below the HOME, with its bytes.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.home()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    // A file may go between listing and reading: that is the sender at work.
                    _ => found.extend(fs::read(entry.path()).ok().map(|bytes| (entry.path(), bytes))),
                }
            }
        }
        found
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for pid in self.senders() {
            kill(pid);
        }
    }
}

/// Says so when it goes, also by a failure: threads that play until then would else keep a failed test for ever.
pub(crate) struct Until<'a>(pub(crate) &'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Kills a process at once.
pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may be gone already.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// Writes a payload and waits for the end. A hook that does not read is no failure here.
pub(crate) fn feed(mut child: Child, payload: &[u8]) -> Output {
    let mut stdin = child.stdin.take().unwrap();
    let payload = payload.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&payload);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// Waits until something holds; panics with `what` when it does not within [`HANG`].
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < HANG, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
