//! Keeps the whole state folder within FI_HOOK_MAX_MB and FI_HOOK_MAX_DAYS, over all profiles: a collector that is down
//! for ever must not fill the disk. The oldest goes first, counted with a reason in the store it was in.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{SendError, ago};
use crate::config::Settings;
use crate::spool::dir::ProfileDir;
use crate::store::{FILE, Store};

/// Spans given up at a time.
const PORTION: u64 = 512;
/// Delivered spans are kept for `show` this long.
const KEEP_SETTLED: Duration = Duration::from_secs(7 * 24 * 3600);
/// Conversations are kept this long after their last event, so that a resume finds its root.
const KEEP_CONVERSATIONS: Duration = Duration::from_secs(400 * 24 * 3600);

/// Removes what is too old or too much at `now_ns` (CLOCK_REALTIME); returns how many waiting spans were given up.
pub(super) fn enforce(dir: &ProfileDir, store: &mut Store, settings: &Settings, now_ns: u64) -> Result<u64, SendError> {
    store.sweep(ago(now_ns, KEEP_SETTLED), ago(now_ns, KEEP_CONVERSATIONS))?;
    let mut gone = store.expire(ago(now_ns, settings.max_age), now_ns)?;
    let Some(root) = dir.path().parent() else {
        return Ok(gone);
    };
    if size(root) <= settings.max_bytes {
        return Ok(gone);
    }
    // First what is only kept for looking at.
    store.sweep(now_ns, ago(now_ns, KEEP_CONVERSATIONS))?;
    store.shrink()?;
    let mut others = idle_profiles(root, dir);
    for other in &mut others {
        other.store.sweep(now_ns, ago(now_ns, KEEP_CONVERSATIONS))?;
        other.store.shrink()?;
    }
    // To nine tenths, so that the next event does not start it all over.
    let goal = settings.max_bytes / 10 * 9;
    let mut before = u64::MAX;
    loop {
        let size = size(root);
        // No smaller than a portion ago: a reader holds the journal, and more would go for nothing.
        if size <= goal || size >= before {
            break;
        }
        before = size;
        let mut oldest: Option<(u64, &mut Store)> = None;
        for candidate in std::iter::once(&mut *store).chain(others.iter_mut().map(|other| &mut other.store)) {
            if let Some(since) = candidate.oldest_waiting_ns()?
                && oldest.as_ref().is_none_or(|(earliest, _)| since < *earliest)
            {
                oldest = Some((since, candidate));
            }
        }
        let Some((_, oldest)) = oldest else {
            break;
        };
        gone += oldest.drop_oldest(PORTION, now_ns)?;
        oldest.shrink()?;
    }
    Ok(gone)
}

/// A profile that no sender works on, and that none will while its lock is held here.
struct Idle {
    store: Store,
    _lock: std::os::fd::OwnedFd,
}

fn idle_profiles(root: &Path, own: &ProfileDir) -> Vec<Idle> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let idle = entries.flatten().filter(|entry| entry.path() != own.path() && entry.path().join(FILE).exists());
    idle.filter_map(|entry| {
        let dir = ProfileDir::open(root, entry.file_name().to_str()?).ok()?;
        let lock = dir.try_lock().ok()??;
        Some(Idle { store: Store::open(dir.path()).ok()?, _lock: lock })
    })
    .collect()
}

/// Bytes of all files below a folder.
fn size(root: &Path) -> u64 {
    let mut total = 0;
    let mut folders = vec![PathBuf::from(root)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => total += metadata.len(),
                Err(_) => {}
            }
        }
    }
    total
}
