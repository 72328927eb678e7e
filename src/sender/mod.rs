//! The detached sender: the one process of a profile that reads the spool, folds events, writes the store and talks to
//! the destination. Started by a hook, woken by files and process ends, gone when there is nothing left to wait for.
//! Decided in `docs/adr/0023-life-of-the-sender.md`.

mod agents;
mod backoff;
mod bounds;
mod ingest;
mod life;
mod log;
#[cfg(test)]
mod properties;
mod run;
mod stamp;
mod suspects;
mod watch;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{self, sources};
use crate::spool::dir::{ProfileDir, SpoolError};
use crate::store::StoreError;

/// Between two tries to work while the store is locked or the disk is full.
const REFUSED_PAUSE: Duration = Duration::from_secs(3);
/// How long that goes on; then the next hook has to start another sender.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// Why a sender ends early.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no place for a state folder.
    #[error("no state folder: set HOME, XDG_STATE_HOME or FI_HOOK_STATE_DIR")]
    NoStateFolder,
    /// The profile's folder cannot be used.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system refuses what a sender needs.
    #[error("{what}: {error}")]
    Io {
        /// What was asked for.
        what: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
}

impl SendError {
    /// Whether waiting may help: somebody else has the store locked, the disk is full.
    fn may_pass(&self) -> bool {
        matches!(self, Self::Store(error) if error.may_pass())
    }
}

/// The sender's lock: either the descriptor a hook handed over as standard input, or one taken here.
#[derive(Debug)]
enum Lock {
    Inherited,
    Taken(OwnedFd),
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Inherited => rustix::stdio::stdin(),
            Self::Taken(lock) => lock.as_fd(),
        }
    }
}

impl Lock {
    /// Takes over the lock on standard input, or a free one; None when somebody else is the sender.
    fn acquire(dir: &ProfileDir) -> Result<Option<Self>, SpoolError> {
        let inherited = rustix::stdio::stdin();
        if dir.is_current_lock(inherited)
            && rustix::fs::flock(inherited, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            return Ok(Some(Self::Inherited));
        }
        dir.make()?;
        Ok(dir.try_lock()?.map(Self::Taken))
    }

    fn release(&self) {
        let _ = rustix::fs::flock(self.as_fd(), FlockOperation::Unlock);
    }
}

/// Is the sender of `profile` until there is nothing left to do; returns at once if another process is.
///
/// # Errors
/// When folder, store or system refuse; what is in the spool stays there.
pub fn send(profile: &str) -> Result<(), SendError> {
    // Whatever the settings say later, no file of ours is for others.
    crate::sys::create_private_files();
    crate::sys::survive_size_limits();
    let settings = config::resolve(&sources::gather());
    let root: PathBuf = sources::state_dir(&settings).ok_or(SendError::NoStateFolder)?;
    let dir = ProfileDir::open(&root, profile)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| SendError::Io { what: "cannot start", error })?;
    let sent = runtime.block_on(keep_sending(&dir));
    // A name that is just being looked up must not keep the process.
    runtime.shutdown_background();
    sent
}

async fn keep_sending(dir: &ProfileDir) -> Result<(), SendError> {
    let mut terminate =
        signal(SignalKind::terminate()).map_err(|error| SendError::Io { what: "cannot wait for signals", error })?;
    let mut refused_since: Option<Instant> = None;
    loop {
        let Some(lock) = Lock::acquire(dir)? else {
            return Ok(());
        };
        let begun = Instant::now();
        let ended = run::run(dir, &lock, &mut terminate).await;
        let mut again = false;
        if let Err(error) = &ended {
            let log = log::SenderLog::new(dir.path());
            log.line(format_args!("end error={:?}", error.to_string()));
            let gone = bounds::trim_spool(dir, &config::resolve(&sources::gather()));
            if gone > 0 {
                log.line(format_args!("bounds events={gone} given up"));
            }
            if error.may_pass() {
                // One that had worked for a while has new patience.
                let since = refused_since.filter(|_| begun.elapsed() < REFUSED_FOR / 10).unwrap_or(begun);
                refused_since = Some(since);
                // With the lock in hand, so that nobody else tries meanwhile.
                let told_to_stop = tokio::time::timeout(REFUSED_PAUSE, terminate.recv()).await.is_ok();
                again = !told_to_stop && since.elapsed() < REFUSED_FOR;
            }
        }
        lock.release();
        match ended {
            Err(_) if again => {}
            Err(error) => return Err(error),
            Ok(run::End::Stop) => return Ok(()),
            // A hook that found the lock busy just before it was free relies on this second look.
            Ok(run::End::Idle(left)) if ingest::has_new(dir, &left) => {}
            Ok(run::End::Idle(_)) => return Ok(()),
        }
    }
}

/// The moment `time` before `now_ns`.
fn ago(now_ns: u64, time: Duration) -> u64 {
    now_ns.saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
