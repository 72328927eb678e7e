//! The detached sender: the one process of a profile that reads the spool, folds events, writes the store and talks to
//! the destination. Started by a hook, woken by files and process ends, gone when there is nothing left to wait for.
//! Decided in `docs/adr/0023-life-of-the-sender.md`.

mod agents;
mod backoff;
mod bounds;
mod ingest;
mod life;
mod log;
mod run;
mod suspects;
mod watch;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::FlockOperation;

use crate::config::{self, sources};
use crate::spool::dir::{ProfileDir, SpoolError};
use crate::store::StoreError;

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
    let settings = config::resolve(&sources::gather());
    let root: PathBuf = sources::state_dir(&settings).ok_or(SendError::NoStateFolder)?;
    let dir = ProfileDir::open(&root, profile)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| SendError::Io { what: "cannot start", error })?;
    loop {
        let Some(lock) = Lock::acquire(&dir)? else {
            return Ok(());
        };
        let ended = runtime.block_on(run::run(&dir, &lock));
        lock.release();
        if let Err(error) = &ended {
            log::SenderLog::new(dir.path()).line(format_args!("end error={:?}", error.to_string()));
        }
        // A hook that found the lock busy just before it was free relies on this second look.
        if ended? == run::End::Stop || ingest::is_empty(&dir) {
            return Ok(());
        }
    }
}

/// The moment `time` before `now_ns`.
fn ago(now_ns: u64, time: std::time::Duration) -> u64 {
    now_ns.saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
