//! Wakes the sender when a file appears in the spool or the settings change: inotify where there is one, else a look
//! every [`FALLBACK`].

use std::io;
use std::path::Path;
use std::time::Duration;

/// How often to look where the system cannot wake us.
pub(super) const FALLBACK: Duration = Duration::from_millis(250);

#[cfg(target_os = "linux")]
mod imp {
    use std::os::fd::OwnedFd;

    use rustix::fs::inotify::{CreateFlags, WatchFlags};
    use tokio::io::unix::AsyncFd;

    use super::{Path, io};

    /// Watches folders.
    #[derive(Debug)]
    pub(in super::super) struct Watch {
        inotify: Option<AsyncFd<OwnedFd>>,
    }

    impl Watch {
        /// Starts to watch; a system that is out of watches is looked at regularly instead.
        pub(in super::super) fn new(folders: &[&Path]) -> Self {
            Self { inotify: start(folders).ok() }
        }

        /// Returns after something changed, or after a while where that cannot be told.
        pub(in super::super) async fn changed(&self) {
            let Some(inotify) = &self.inotify else {
                return tokio::time::sleep(super::FALLBACK).await;
            };
            let Ok(mut ready) = inotify.readable().await else {
                return tokio::time::sleep(super::FALLBACK).await;
            };
            // What changed is seen by listing; here the notes are only taken away.
            let mut notes = [0u8; 4096];
            while rustix::io::read(inotify.get_ref(), &mut notes).is_ok_and(|read| read > 0) {}
            ready.clear_ready();
        }
    }

    fn start(folders: &[&Path]) -> io::Result<AsyncFd<OwnedFd>> {
        let inotify = rustix::fs::inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let flags = WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF;
        let mut watched = folders.iter().map(|folder| rustix::fs::inotify::add_watch(&inotify, *folder, flags));
        // The first folder is the spool and must be watched; the settings' folder may not be there.
        if let Some(spool) = watched.next() {
            spool?;
        }
        for settings in watched {
            let _ = settings;
        }
        crate::sys::wakeable(inotify)
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use super::Path;

    /// Looks every while; kqueue is not used yet.
    #[derive(Debug)]
    pub(in super::super) struct Watch;

    impl Watch {
        pub(in super::super) fn new(_folders: &[&Path]) -> Self {
            Self
        }

        pub(in super::super) async fn changed(&self) {
            tokio::time::sleep(super::FALLBACK).await;
        }
    }
}

pub(super) use imp::Watch;
