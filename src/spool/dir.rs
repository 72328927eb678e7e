//! The files of one profile: the spool, the sender's lock, the store and the log lie in `<state folder>/<profile>/`.
//! Every folder is 0700, every file 0600; a folder that is a link, of someone else or writable by others is refused.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// Why a state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The folder is not ours alone.
    #[error(
        "{0} is a link, belongs to someone else or is writable by others: remove it, or name another folder in FI_HOOK_STATE_DIR"
    )]
    NotOurs(PathBuf),
    /// The file system cannot lock files, so that nobody can be the one sender.
    #[error("the file system of {0} has no locks: name a folder on a local disk in FI_HOOK_STATE_DIR")]
    NoLocks(PathBuf),
    /// A file could not be made, written or renamed.
    #[error("{path}: {error}: make the folder writable, or name another one in FI_HOOK_STATE_DIR")]
    Io {
        /// What was touched.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// The folder of one profile, opened once so that what was checked is what is used.
#[derive(Debug)]
pub struct ProfileDir {
    root: OwnedFd,
    path: PathBuf,
    profile: String,
}

impl ProfileDir {
    /// Opens the profile's folder below the state folder `root`; makes both if they are not there.
    ///
    /// # Errors
    /// When the state folder cannot be made or is not ours alone.
    pub fn open(root: &Path, profile: &str) -> Result<Self, SpoolError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match rustix::fs::open(root, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                make_folders(root).map_err(|error| SpoolError::Io { path: root.to_owned(), error })?;
                rustix::fs::open(root, flags, Mode::empty())
            }
            other => other,
        };
        let root_fd = match opened {
            Ok(folder) => folder,
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(SpoolError::NotOurs(root.to_owned())),
            Err(error) => return Err(SpoolError::Io { path: root.to_owned(), error: error.into() }),
        };
        let dir = Self { root: root_fd, path: root.join(profile), profile: profile.to_owned() };
        let stat = rustix::fs::fstat(&dir.root).map_err(|error| dir.failed(root, error))?;
        let others_may_write = Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH);
        if stat.st_uid != rustix::process::geteuid().as_raw() || others_may_write {
            return Err(SpoolError::NotOurs(root.to_owned()));
        }
        Ok(dir)
    }

    /// The folder's place.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where new spool files appear.
    #[must_use]
    pub fn inbox(&self) -> PathBuf {
        self.path.join("spool/new")
    }

    /// Writes one record so that it appears whole or not at all. Not synced to the disk: a power cut may lose what the
    /// kernel has not written yet, a killed process may not.
    ///
    /// # Errors
    /// When the folder cannot be written or the disk is full; nothing is left behind then.
    pub fn deposit(&self, name: &str, record: &[u8]) -> Result<(), SpoolError> {
        let beside = self.inner(&format!("spool/tmp/{name}"));
        let place = self.inner(&format!("spool/new/{name}"));
        let file = match self.create(&beside) {
            Err(Errno::NOENT) => {
                self.make()?;
                self.create(&beside)
            }
            other => other,
        }
        .map_err(|error| self.failed(Path::new("spool/tmp"), error))?;
        let renamed = || rustix::fs::renameat(&self.root, &beside, &self.root, &place);
        let written = write_all(&file, record).and_then(|()| match renamed() {
            // Somebody has removed the folder.
            Err(Errno::NOENT) if self.make().is_ok() => renamed(),
            other => other,
        });
        if let Err(error) = written {
            // The file is of no use to anyone; if it cannot be removed either, the sender sweeps it later.
            let _ = rustix::fs::unlinkat(&self.root, &beside, AtFlags::empty());
            return Err(self.failed(Path::new("spool/new"), error));
        }
        Ok(())
    }

    /// Takes the sender's lock if it is free. The descriptor holds it; its duplicates share it.
    ///
    /// # Errors
    /// When the lock file cannot be opened, or the file system has no locks.
    pub fn try_lock(&self) -> Result<Option<OwnedFd>, SpoolError> {
        let name = Path::new("sender.lock");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(&self.root, self.inner("sender.lock"), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| self.failed(name, error))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(lock)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            // What NFS without its lock service, FUSE and some network file systems say.
            Err(Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => {
                Err(SpoolError::NoLocks(self.path.clone()))
            }
            Err(error) => Err(self.failed(name, error)),
        }
    }

    /// Whether `lock` is still the file that other processes would lock. Not so when the folder was removed meanwhile.
    pub fn is_current_lock(&self, lock: impl AsFd) -> bool {
        let path = self.path.join("sender.lock");
        match (rustix::fs::fstat(lock), rustix::fs::lstat(&path)) {
            (Ok(held), Ok(seen)) => held.st_ino == seen.st_ino && held.st_dev == seen.st_dev,
            _ => false,
        }
    }

    /// Makes the profile's folders.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn make(&self) -> Result<(), SpoolError> {
        // `tmp` last: a hook that can write there, because another one was killed or is just here, can rename, too.
        for folder in ["", "spool", "spool/new", "spool/tmp"] {
            match rustix::fs::mkdirat(&self.root, self.inner(folder), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(self.failed(Path::new(folder), error)),
            }
        }
        Ok(())
    }

    fn create(&self, name: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.root, name, flags, Mode::RUSR | Mode::WUSR)
    }

    fn inner(&self, name: &str) -> PathBuf {
        Path::new(&self.profile).join(name)
    }

    fn failed(&self, name: &Path, error: Errno) -> SpoolError {
        SpoolError::Io { path: self.path.join(name), error: error.into() }
    }
}

fn make_folders(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A spool file's name: sorts by capture time, is unique by process and chance, says nothing of the payload.
#[must_use]
pub fn file_name(realtime_ns: u64, pid: u32, chance: u64) -> String {
    format!("{realtime_ns:016x}-{pid:x}-{chance:016x}")
}

/// The capture time in a spool file's name; None for a name that is none of ours.
#[must_use]
pub fn named_time(name: &str) -> Option<u64> {
    let (time, rest) = name.split_once('-')?;
    (time.len() == 16 && rest.contains('-')).then(|| u64::from_str_radix(time, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn records_appear_whole_in_private_folders() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("a/b");
        let dir = ProfileDir::open(&root, "default").unwrap();
        let name = file_name(1, 2, 3);
        dir.deposit(&name, b"record").unwrap();
        let file = dir.inbox().join(&name);
        assert_eq!(std::fs::read(&file).unwrap(), b"record");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o177, 0);
        for folder in [&root, dir.path(), &dir.inbox()] {
            assert_eq!(std::fs::metadata(folder).unwrap().mode() & 0o077, 0, "{}", folder.display());
        }
        assert!(dir.deposit(&name, b"again").is_ok(), "a rename replaces; names are unique by chance");
        std::fs::remove_dir_all(dir.inbox()).unwrap();
        dir.deposit(&name, b"once more").unwrap();
        assert_eq!(named_time(&name), Some(1));
        assert_eq!(named_time("README"), None);
    }

    #[test]
    fn a_state_folder_that_is_not_ours_alone_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let open = base.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o770)).unwrap();
        let link = base.path().join("link");
        std::os::unix::fs::symlink(base.path(), &link).unwrap();
        let file = base.path().join("file");
        std::fs::write(&file, "").unwrap();
        for bad in [&open, &link, &file] {
            let refused = ProfileDir::open(bad, "default");
            assert!(matches!(refused, Err(SpoolError::NotOurs(_))), "{}: {refused:?}", bad.display());
        }
    }

    #[test]
    fn the_lock_is_exclusive_shared_by_duplicates_and_tied_to_its_file() {
        let base = tempfile::tempdir().unwrap();
        let dir = ProfileDir::open(base.path(), "p").unwrap();
        dir.make().unwrap();
        let held = dir.try_lock().unwrap().unwrap();
        assert!(dir.try_lock().unwrap().is_none());
        let copy = held.try_clone().unwrap();
        drop(held);
        assert!(dir.try_lock().unwrap().is_none());
        assert!(dir.is_current_lock(&copy));
        std::fs::remove_file(dir.path().join("sender.lock")).unwrap();
        assert!(!dir.is_current_lock(&copy));
        drop(copy);
        assert!(dir.try_lock().unwrap().is_some());
    }
}
