//! A random key of this state folder, for hashes that must not be guessable from outside: profile names made of API
//! keys, and digests of content.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::sys;

/// The key in the state folder `root`; made at first use. None when it can neither be read nor made.
#[must_use]
pub fn read_or_make(root: &Path) -> Option<[u8; 32]> {
    let path = root.join("hash.key");
    if let Some(key) = read(&path) {
        return Some(key);
    }
    fs::DirBuilder::new().recursive(true).create(root).ok()?;
    let beside = root.join(format!("hash.key.{}", std::process::id()));
    let key: [u8; 32] = sys::random()?;
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(&key));
    // A link is made only if the name is free: of two hooks that come first, one wins and both use its key.
    let _ = written.and_then(|()| fs::hard_link(&beside, &path));
    let _ = fs::remove_file(&beside);
    read(&path)
}

fn read(path: &Path) -> Option<[u8; 32]> {
    let mut key = [0u8; 32];
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).ok()?;
    file.read_exact(&mut key).ok()?;
    Some(key)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn all_comers_at_once_get_the_same_private_key() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("state");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| read_or_make(&root))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().any(Option::is_some));
        let made: Vec<_> = keys.iter().flatten().collect();
        assert!(made.iter().all(|key| *key == made[0]));
        assert_eq!(fs::metadata(root.join("hash.key")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    }
}
