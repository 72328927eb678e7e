//! The work of a hook process after its reply: read the payload, redact it, leave it in the spool, see that a sender
//! runs. No network, no waiting for anybody; whatever goes wrong here, the agent has had its answer.
//! Decided in `docs/adr/0001-reply-first-and-neutral.md`.

mod log;
mod stdin;

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsFd;
use std::path::PathBuf;

use crate::config::{self, Settings, Sources, sources};
use crate::event::{Agent, Capture};
use crate::hosts::{Host, Seen};
use crate::redact::{self, Allowed, DigestKey};
use crate::spool::dir::{ProfileDir, SpoolError, file_name};
use crate::spool::format::{Captured, Entry, Note, encode};
use crate::sys;

/// Set by agy for every hook (measured 1.2.7): proof that an agent is among our ancestors.
pub const MARK: &str = "ANTIGRAVITY_CONVERSATION_ID";
/// Longest chain of shells between the agent and us.
const MOST_SHELLS: usize = 8;
/// Most characters kept of an event name that is none of the host's.
const UNKNOWN_EVENT_CHARS: usize = 64;

/// Why a hook call left nothing in the spool.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is no place for a state folder.
    #[error("no state folder: set HOME, XDG_STATE_HOME or FI_HOOK_STATE_DIR")]
    NoStateFolder,
    /// The spool cannot be used.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// No sender could be started; the event is in the spool.
    #[error("cannot start the sender: {0}: the event waits for the next hook")]
    Sender(std::io::Error),
}

/// Reads the payload on stdin and hands it on. `event` is the word from the command line.
///
/// # Errors
/// When the event could not be left in the spool, or no sender could be started for it.
pub fn observe(host: &dyn Host, event: &str) -> Result<(), CaptureError> {
    let clocks = sys::clocks();
    sys::create_private_files();
    let mut scan = host.scan(event);
    // Before the payload is read, because they say what to keep of it.
    let gathered = sources::gather();
    let settings = config::resolve(&gathered);
    if let Some(scan) = &mut scan {
        scan.want(settings.wanted());
    }
    stdin::read(scan.as_deref_mut());
    if settings.disabled.is_some() {
        return Ok(());
    }
    let entry = match scan.map(crate::hosts::Scan::finish) {
        None => note("unknown_event", event, clocks),
        Some(Err(rejection)) => note(rejection.as_str(), event, clocks),
        Some(Ok(seen)) => match left_out(&seen, &settings) {
            Some(reason) => note(reason, event, clocks),
            None => Entry::Event(Box::new(Captured {
                capture: capture(host, clocks),
                origin: settings.origin.clone(),
                event: redact::event(seen.event, &allowed(&settings)),
            })),
        },
    };
    let handed_over = hand_over(&entry, clocks, &gathered, &settings);
    if let Some(path) = &settings.log_file {
        log::append(path, clocks.realtime_ns, event, &entry, handed_over.as_ref().err());
    }
    handed_over
}

/// What may go on of the content that was kept. The key of digests is made at first use.
fn allowed(settings: &Settings) -> Allowed {
    let key = || crate::spool::key::read_or_make(&sources::state_dir(settings)?).map(DigestKey::new);
    Allowed { content: settings.capture, digest_key: settings.digest.then(key).flatten() }
}

fn hand_over(entry: &Entry, clocks: sys::Clocks, gathered: &Sources, settings: &Settings) -> Result<(), CaptureError> {
    let place = Place::find(gathered, settings)?;
    place.deposit(entry, clocks)?;
    place.wake_sender()
}

/// Where the events of this environment go.
#[derive(Debug)]
pub struct Place {
    /// The state folder.
    pub root: PathBuf,
    /// The profile's name.
    pub profile: String,
    /// The profile's folder.
    pub dir: ProfileDir,
}

impl Place {
    /// Finds the profile of this environment, and makes its folder if need be.
    ///
    /// # Errors
    /// When there is no place for a state folder, or it is not ours alone.
    pub fn find(gathered: &Sources, settings: &Settings) -> Result<Self, CaptureError> {
        let root = sources::state_dir(settings).ok_or(CaptureError::NoStateFolder)?;
        let profile = config::profile(gathered, settings, || crate::spool::key::read_or_make(&root));
        let dir = ProfileDir::open(&root, &profile)?;
        Ok(Self { root, profile, dir })
    }

    /// Leaves one record in the spool.
    ///
    /// # Errors
    /// When the folder cannot be written or the disk is full.
    pub fn deposit(&self, entry: &Entry, clocks: sys::Clocks) -> Result<(), CaptureError> {
        let chance = sys::random().map_or(clocks.boottime_ns, u64::from_ne_bytes);
        let name = file_name(clocks.realtime_ns, std::process::id(), chance);
        Ok(self.dir.deposit(&name, &encode(entry))?)
    }

    /// Starts a sender if none runs. A busy lock means that somebody is the sender, or is about to be, and will see what
    /// was left in the spool before.
    ///
    /// # Errors
    /// When the lock cannot be tried or no process can be started.
    pub fn wake_sender(&self) -> Result<(), CaptureError> {
        let Some(lock) = self.dir.try_lock()? else {
            return Ok(());
        };
        let environment = config::sender_environment(std::env::vars_os());
        let root = std::path::absolute(&self.root).unwrap_or_else(|_| self.root.clone());
        let mut words: Vec<(&OsStr, &OsStr)> =
            environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        words.retain(|(name, _)| *name != "FI_HOOK_STATE_DIR");
        words.push((OsStr::new("FI_HOOK_STATE_DIR"), root.as_os_str()));
        let argv = ["fi-hook-to-otlp", "send", "--profile", &self.profile];
        sys::spawn_detached(lock.as_fd(), &argv, &words).map(|_| ()).map_err(CaptureError::Sender)
    }
}

fn note(reason: &str, event: &str, clocks: sys::Clocks) -> Entry {
    let event = redact::name(event, UNKNOWN_EVENT_CHARS);
    Entry::Note(Note { reason: reason.to_owned(), event, realtime_ns: clocks.realtime_ns })
}

/// Why a conversation is none of the user's business here; the paths are looked at in memory only.
fn left_out(seen: &Seen, settings: &Settings) -> Option<&'static str> {
    if seen.event.surface.is_some_and(|surface| !settings.surfaces.contains(&surface)) {
        return Some("surface_left_out");
    }
    seen.workspaces.iter().any(|workspace| settings.excludes(workspace)).then_some("path_excluded")
}

fn capture(host: &dyn Host, clocks: sys::Clocks) -> Capture {
    Capture {
        realtime_ns: clocks.realtime_ns,
        boottime_ns: clocks.boottime_ns,
        boot_id: sys::boot_id(),
        agent: agent(host),
        registration: registration(),
        traceparent: std::env::var("TRACEPARENT").ok().filter(|parent| parent.len() <= 256 && parent.is_ascii()),
    }
}

/// The agent's process: the first of our ancestors that is no shell.
///
/// Found here and not in the sender, since a shell between the agent and us is gone when we are: a wrapper script would
/// else look like an agent that ends after every hook.
fn agent(host: &dyn Host) -> Option<Agent> {
    let marked = std::env::var_os(MARK).is_some_and(|id| !id.is_empty());
    // At a terminal somebody tries us out by hand.
    if !marked && rustix::termios::isatty(rustix::stdio::stdin()) {
        return None;
    }
    let mut ancestor = sys::parent()?;
    for _ in 0..MOST_SHELLS {
        if !ancestor.is_shell() {
            break;
        }
        ancestor = sys::process(ancestor.parent)?;
    }
    let plausible = marked || host.is_agent(&ancestor.name);
    let sys::Process { pid, started_ns, namespace, .. } = ancestor;
    (pid > 1 && plausible).then_some(Agent { pid, started_ns, namespace, marked })
}

/// Tells apart two hooks.json files that both register us: agy runs a hook in the folder of its file. Compared within two
/// minutes only, so a hash that another release computes otherwise is good enough. SHA-256 asks the processor what it
/// can do, which costs more than the rest of the hook under a hypervisor.
fn registration() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::env::current_dir().unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
