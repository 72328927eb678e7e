//! The sender's lock in a test's hand: while it is held, hooks leave their events and start nobody.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::sandbox::eventually;

/// Holds the lock until it is dropped.
pub(crate) struct HeldLock(fs::File);

impl HeldLock {
    /// Takes the lock of the profile in that folder, which is made if need be; waits while `meanwhile` is done.
    pub(crate) fn take_while(profile: &Path, mut meanwhile: impl FnMut()) -> Self {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(profile).unwrap();
        fs::set_permissions(profile.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
        let mut options = fs::OpenOptions::new();
        let lock =
            options.write(true).create(true).truncate(false).mode(0o600).open(profile.join("sender.lock")).unwrap();
        eventually("the lock is free", || {
            meanwhile();
            flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()
        });
        Self(lock)
    }

    /// Takes the lock as soon as it is free.
    pub(crate) fn take(profile: &Path) -> Self {
        Self::take_while(profile, || {})
    }
}

impl Drop for HeldLock {
    /// Unlocks by name. To close it is not enough: a process that another test is just starting has a copy of the
    /// descriptor until it is that other program, and the next hook would find the lock busy.
    fn drop(&mut self) {
        flock(&self.0, FlockOperation::Unlock).unwrap();
    }
}
