//! What all conversations of the process share, and the firing of one event.
//!
//! The handlers of one event run one after the other and hold up whoever fired it (official). Handlers of different
//! conversations, or of parallel tools, may overlap.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Signal as Sent, getpid, kill_process};
use serde_json::value::RawValue;

use super::seat::Seat;
use crate::behaviour::Behaviour;
use crate::command::{Groups, Hook, HookRun, run};
use crate::event::Event;
use crate::hooks::{Action, Loaded, Source};
use crate::reply::{Effect, HookEnd, interpret};
use crate::report::{HookRecord, Record, Writer};
use crate::script::Signal;

/// What all conversations share.
pub(crate) struct Stage {
    pub(crate) behaviour: Behaviour,
    pub(crate) home: String,
    pub(crate) workspace_paths: Vec<String>,
    pub(crate) loaded: Loaded,
    pub(crate) report: Writer,
    pub(crate) groups: Groups,
    pub(crate) aborted: Flag,
    /// Set when a signal ends the program; whoever listens for signals also ends it.
    pub(crate) interrupted: AtomicBool,
}

/// Why a turn goes no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Esc.
    Escaped,
    /// "No, deny".
    UserDenied,
    /// A question in a headless run.
    SoftDenied,
    /// A hook's reply around a model call.
    Aborted(String),
    /// The program ends.
    Halted,
}

/// One event to fire.
pub(crate) struct Firing<'a> {
    pub(crate) event: Event,
    pub(crate) conversation: &'a str,
    pub(crate) payload: &'a str,
    /// The tool that matchers see.
    pub(crate) tool: Option<&'a str>,
    /// Whether matchers are ignored, as those of `PostToolUse` before 1.1.9.
    pub(crate) any_matcher: bool,
}

/// A flag that can be waited for.
#[derive(Debug, Default)]
pub(crate) struct Flag {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Flag {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn raise(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_raised(&self) -> bool {
        *self.lock()
    }
}

impl Stage {
    /// Lets time pass; ends early when the program does.
    pub(crate) fn pause(&self, ms: u64) -> Result<(), Cut> {
        let waited =
            self.aborted.changed.wait_timeout_while(self.aborted.lock(), Duration::from_millis(ms), |raised| !*raised);
        let raised = *waited.unwrap_or_else(PoisonError::into_inner).0;
        if raised { Err(Cut::Halted) } else { Ok(()) }
    }

    /// Ends the program after this: no more hooks, exit code 1.
    pub(crate) fn abort(&self) {
        self.groups.close(None);
        self.aborted.raise();
    }

    /// Ends the program by a signal: no more hooks, a last line, and this exit code.
    pub(crate) fn interrupt(&self, signal: i32, pass_on: Option<Sent>) -> ! {
        self.interrupted.store(true, Ordering::SeqCst);
        self.groups.close(pass_on);
        self.report.finish(128 + signal, Some(signal));
        std::process::exit(128 + signal)
    }

    /// After a signal nothing follows: the program is about to end, and must not end in another way before.
    pub(crate) fn park_if_interrupted(&self) {
        if self.interrupted.load(Ordering::SeqCst) {
            park();
        }
    }

    /// Runs the handlers of one event, when it is the conversation's turn.
    pub(crate) fn fire(&self, seat: &Seat, firing: &Firing<'_>) -> Result<Effect, Cut> {
        let effect = seat.on_turn(|| self.run_handlers(firing))?;
        match effect.abort {
            Some(reason) => Err(Cut::Aborted(reason)),
            None => Ok(effect),
        }
    }

    fn run_handlers(&self, firing: &Firing<'_>) -> Result<Effect, Cut> {
        let mut effect = Effect::default();
        if self.aborted.is_raised() {
            return Err(Cut::Halted);
        }
        for (source, action) in self.loaded.actions(firing.event, firing.tool, firing.any_matcher) {
            effect.add(self.run_handler(firing, source, action)?);
            // An aborted invocation asks no further hook; a denied tool does (both inferred).
            if effect.abort.is_some() {
                break;
            }
        }
        Ok(effect)
    }

    fn run_handler(&self, firing: &Firing<'_>, source: &Source, action: &Action) -> Result<Effect, Cut> {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let hook = Hook {
            command: &action.handler.command,
            folder: &source.folder,
            conversation: self.behaviour.conversation_env.then_some(firing.conversation),
            payload: firing.payload.as_bytes(),
            timeout: action.handler.timeout,
            keep_stdin_open: self.behaviour.keep_stdin_open,
        };
        let run = run(&hook, &self.groups);
        // A hook that died of the signal must not count as one that failed.
        self.park_if_interrupted();
        let run = run.ok_or(Cut::Halted)?;
        let end = HookEnd { exit_code: run.exit_code, stdout: &run.stdout, timed_out: run.timed_out };
        let effect = interpret(firing.event, end, &self.behaviour);
        self.report.record(&Record::Hook(Box::new(record(firing, source, action, started, run, &effect))));
        Ok(effect)
    }

    /// Sends the program a signal and goes no further.
    pub(crate) fn kill(signal: Signal) -> ! {
        let sent = match signal {
            Signal::Kill => Sent::KILL,
            Signal::Term => Sent::TERM,
            Signal::Int => Sent::INT,
        };
        // Cannot fail for the own process; if it did, the park below would show as a hang.
        _ = kill_process(getpid(), sent);
        park()
    }
}

fn park() -> ! {
    loop {
        thread::park();
    }
}

fn record(
    firing: &Firing<'_>,
    source: &Source,
    action: &Action,
    started: Duration,
    run: HookRun,
    effect: &Effect,
) -> HookRecord {
    let ms = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let name = &source.hook.name;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    HookRecord {
        event: firing.event,
        conversation: firing.conversation.to_owned(),
        name: name.clone(),
        id: format!("jsonhook__{name}_{}_{}_{}", firing.event, action.group, action.place),
        file: source.path.clone(),
        command: action.handler.command.clone(),
        payload: RawValue::from_string(firing.payload.to_owned()).unwrap_or_default(),
        pid: run.pid,
        started_unix_ns: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
        exit_code: run.exit_code,
        signal: run.signal,
        stdout_hex: std::str::from_utf8(&run.stdout).is_err().then(|| hex(&run.stdout)),
        stdout: String::from_utf8_lossy(&run.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&run.stderr).into_owned(),
        stdout_ms: run.stdout_end.map(ms),
        exit_ms: run.exited.map(ms),
        wall_ms: ms(run.wall),
        timed_out: run.timed_out,
        stdin_unread: run.stdin_unread,
        effect: effect.describe(),
        fault: effect.fault.clone(),
    }
}
