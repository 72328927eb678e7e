//! Runs one hook command as agy does: `sh -c`, in the folder of its hooks.json, payload on stdin, stdout read to its end.
//!
//! Go waits for the three pipes, not only for the process: a hook whose child keeps one of its outputs open holds agy up.
//! Knows nothing of events and replies.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// After the kill, how long the pipes may take to end; a grandchild in a session of its own can hold them for ever.
const GRACE: Duration = Duration::from_millis(500);

/// One hook to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook<'a> {
    /// The text for `sh -c`; the shell expands `~`.
    pub(crate) command: &'a str,
    /// Where it runs.
    pub(crate) folder: &'a Path,
    /// The value of `ANTIGRAVITY_CONVERSATION_ID`, if it is set.
    pub(crate) conversation: Option<&'a str>,
    /// What it reads.
    pub(crate) payload: &'a [u8],
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// Whether its stdin stays open until it ends.
    pub(crate) keep_stdin_open: bool,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookRun {
    /// The shell's process id; 0 if it could not be started.
    pub(crate) pid: u32,
    /// The exit code.
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// What it wrote to stdout.
    pub(crate) stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub(crate) stderr: Vec<u8>,
    /// From the start to the end of stdout; absent if it never ended.
    pub(crate) stdout_end: Option<Duration>,
    /// From the start to the end of the process.
    pub(crate) exited: Option<Duration>,
    /// From the start until agy went on.
    pub(crate) wall: Duration,
    /// Whether its time was up.
    pub(crate) timed_out: bool,
    /// Whether it left before it had read all of its stdin.
    pub(crate) stdin_unread: bool,
}

/// The process groups of the hooks that run, and whether new ones may start.
#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<GroupState>);

#[derive(Debug, Default)]
struct GroupState {
    closed: bool,
    running: BTreeSet<i32>,
}

impl Groups {
    fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets no new hook start and sends the running ones this signal, if any.
    pub(crate) fn close(&self, signal: Option<Signal>) {
        let mut state = self.lock();
        state.closed = true;
        if let Some(signal) = signal {
            for group in &state.running {
                kill_group(*group, signal);
            }
        }
    }

    /// Starts a hook in a process group of its own; `None` if no more may start. The lock spans the start, so that
    /// nothing starts after [`Self::close`] has returned.
    fn start(&self, hook: &Hook<'_>) -> io::Result<Option<Child>> {
        let mut state = self.lock();
        if state.closed {
            return Ok(None);
        }
        let mut command = Command::new("sh");
        command.arg("-c").arg(hook.command).current_dir(hook.folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_remove("ANTIGRAVITY_CONVERSATION_ID");
        if let Some(id) = hook.conversation {
            command.env("ANTIGRAVITY_CONVERSATION_ID", id);
        }
        let child = command.spawn()?;
        state.running.insert(child.id().cast_signed());
        Ok(Some(child))
    }
}

fn kill_group(group: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(group) {
        // The group may be gone already; nothing depends on it.
        _ = kill_process_group(pid, signal);
    }
}

/// What the threads around a hook tell, with the time at which it happened.
type Told = (Instant, News);

enum News {
    StdoutEnded,
    StderrEnded,
    /// All of it was taken, or it was closed before.
    StdinEnded {
        unread: bool,
    },
    Exited(io::Result<ExitStatus>),
}

/// Runs a hook to its end or its timeout; `None` if no more hooks may start.
pub(crate) fn run(hook: &Hook<'_>, groups: &Groups) -> Option<HookRun> {
    let start = Instant::now();
    let child = match groups.start(hook) {
        Ok(child) => child?,
        Err(error) => {
            let stderr = format!("cannot start sh in {}: {error}", hook.folder.display()).into_bytes();
            return Some(HookRun { stderr, exit_code: Some(127), wall: start.elapsed(), ..HookRun::default() });
        }
    };
    let pid = child.id();
    let mut watch = Watch::over(child, hook);
    let mut run = HookRun { pid, ..HookRun::default() };
    if !watch.until(start + hook.timeout, start, &mut run) {
        run.timed_out = true;
        kill_group(pid.cast_signed(), Signal::KILL);
        watch.until(Instant::now() + GRACE, start, &mut run);
    }
    run.wall = start.elapsed();
    run.stdout = take(&watch.stdout);
    run.stderr = take(&watch.stderr);
    groups.lock().running.remove(&pid.cast_signed());
    Some(run)
}

/// The threads around one hook.
struct Watch {
    told: Receiver<Told>,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_ended: bool,
    stdin_ended: bool,
    /// Dropping it lets go of a stdin that was kept open.
    _stdin_holder: Sender<()>,
}

impl Watch {
    fn over(mut child: Child, hook: &Hook<'_>) -> Self {
        let (tell, told) = mpsc::channel();
        let (holder, held) = mpsc::channel::<()>();
        let stdout = collect(child.stdout.take(), tell.clone(), || News::StdoutEnded);
        let stderr = collect(child.stderr.take(), tell.clone(), || News::StderrEnded);
        if let Some(mut stdin) = child.stdin.take() {
            let (payload, keep_open, tell) = (hook.payload.to_vec(), hook.keep_stdin_open, tell.clone());
            thread::spawn(move || {
                let unread = stdin.write_all(&payload).is_err();
                _ = tell.send((Instant::now(), News::StdinEnded { unread }));
                if keep_open {
                    // Ends with an error when the holder is dropped.
                    _ = held.recv();
                }
            });
        }
        thread::spawn(move || {
            let status = child.wait();
            _ = tell.send((Instant::now(), News::Exited(status)));
        });
        Self { told, stdout, stderr, stderr_ended: false, stdin_ended: false, _stdin_holder: holder }
    }

    /// Listens until all has ended, or the deadline; says whether all has ended.
    fn until(&mut self, deadline: Instant, start: Instant, run: &mut HookRun) -> bool {
        loop {
            if run.stdout_end.is_some() && run.exited.is_some() && self.stderr_ended && self.stdin_ended {
                return true;
            }
            match self.told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((at, News::StdoutEnded)) => run.stdout_end = Some(at - start),
                Ok((_, News::StderrEnded)) => self.stderr_ended = true,
                Ok((_, News::StdinEnded { unread })) => {
                    self.stdin_ended = true;
                    run.stdin_unread = unread;
                }
                Ok((at, News::Exited(status))) => {
                    run.exited = Some(at - start);
                    run.exit_code = status.as_ref().ok().and_then(ExitStatus::code);
                    run.signal = status.ok().and_then(|status| status.signal());
                }
                Err(_) => return false,
            }
        }
    }
}

fn collect<R: Read + Send + 'static>(pipe: Option<R>, tell: Sender<Told>, ended: fn() -> News) -> Arc<Mutex<Vec<u8>>> {
    let collected = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&collected);
    thread::spawn(move || {
        let mut chunk = [0; 8192];
        if let Some(mut pipe) = pipe {
            // An interrupted read is the only error worth another try.
            loop {
                match pipe.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(length) => into.lock().unwrap_or_else(PoisonError::into_inner).extend(chunk.iter().take(length)),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
        _ = tell.send((Instant::now(), ended()));
    });
    collected
}

fn take(collected: &Mutex<Vec<u8>>) -> Vec<u8> {
    std::mem::take(&mut *collected.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hook_starts_once_the_groups_are_closed() {
        let hook = Hook {
            command: "echo started",
            folder: Path::new("."),
            conversation: None,
            payload: b"",
            timeout: Duration::from_secs(30),
            keep_stdin_open: false,
        };
        let groups = Groups::default();
        assert_eq!(run(&hook, &groups).unwrap().stdout, b"started\n");
        groups.close(None);
        assert!(run(&hook, &groups).is_none());
    }

    #[test]
    fn a_folder_that_is_gone_is_a_failed_hook() {
        let hook = Hook {
            command: "true",
            folder: Path::new("no/such/folder"),
            conversation: None,
            payload: b"",
            timeout: Duration::from_secs(30),
            keep_stdin_open: false,
        };
        assert_eq!(run(&hook, &Groups::default()).unwrap().exit_code, Some(127));
    }
}
