//! Keeps the whole state folder within FI_HOOK_MAX_MB and FI_HOOK_MAX_DAYS, over all profiles: a collector that is down
//! for ever must not fill the disk. What was set aside goes first, then what was delivered, then the oldest that waits,
//! each counted with a reason in the store it was in.
//!
//! Takes no other profile's lock: its hooks would find it busy and start nobody. SQLite keeps two writers apart.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{SendError, ago};
use crate::config::Settings;
use crate::spool::dir::{ProfileDir, named_time};
use crate::store::Store;

/// Spans given up at a time.
const PORTION: u64 = 512;
/// Delivered spans are kept for `show` this long.
const KEEP_SETTLED: Duration = Duration::from_secs(7 * 24 * 3600);
/// Conversations are kept this long after their last event, so that a resume finds its root.
const KEEP_CONVERSATIONS: Duration = Duration::from_secs(400 * 24 * 3600);

/// Logs up to this size are not worth removing.
const SMALL_LOG: u64 = 256 << 10;

/// Whether the state folder is larger than it may be.
pub(super) fn exceeded(dir: &ProfileDir, settings: &Settings) -> bool {
    dir.path().parent().is_some_and(|root| size(root) > settings.max_bytes)
}

/// Removes what is too old or too much at `now_ns` (CLOCK_REALTIME); returns how many waiting spans were given up.
pub(super) fn enforce(dir: &ProfileDir, store: &mut Store, settings: &Settings, now_ns: u64) -> Result<u64, SendError> {
    let Some(root) = dir.path().parent() else {
        return Ok(0);
    };
    let mut others: Vec<Store> = profiles(root)
        .filter(|folder| folder != dir.path())
        .filter_map(|folder| Store::open_beside(&folder).ok().flatten())
        .collect();
    let mut gone = 0;
    for store in std::iter::once(&mut *store).chain(&mut others) {
        store.sweep(ago(now_ns, KEEP_SETTLED), ago(now_ns, KEEP_CONVERSATIONS))?;
        let expired = store.expire(ago(now_ns, settings.max_age), now_ns)?;
        if expired > 0 {
            // Another profile's sender does not know that there is something to clear; a reader leaves it to that one's end.
            store.clear_log()?;
        }
        gone += expired;
    }
    let mut aside = set_aside(root);
    let too_old = ago(now_ns, settings.max_age) / 1_000_000_000;
    aside.retain(|file| file.modified >= too_old || fs::remove_file(&file.path).is_err());
    if size(root) <= settings.max_bytes {
        return Ok(gone);
    }
    // To nine tenths, so that the next event does not start it all over.
    let goal = settings.max_bytes / 10 * 9;
    for file in aside {
        if size(root) <= goal {
            return Ok(gone);
        }
        let _ = fs::remove_file(file.path);
    }
    for store in std::iter::once(&mut *store).chain(&mut others) {
        store.sweep(now_ns, ago(now_ns, KEEP_CONVERSATIONS))?;
        store.shrink()?;
    }
    Ok(gone + drop_oldest(root, goal, store, &mut others, now_ns)?)
}

fn drop_oldest(root: &Path, goal: u64, store: &mut Store, others: &mut [Store], now_ns: u64) -> Result<u64, SendError> {
    let mut gone = 0;
    let mut before = u64::MAX;
    loop {
        let size = size(root);
        // No smaller than a portion ago: a reader holds the journal, and more would go for nothing.
        if size <= goal || size >= before {
            return Ok(gone);
        }
        before = size;
        let mut oldest: Option<(u64, &mut Store)> = None;
        for candidate in std::iter::once(&mut *store).chain(others.iter_mut()) {
            if let Some(since) = candidate.oldest_waiting_ns()?
                && oldest.as_ref().is_none_or(|(earliest, _)| since < *earliest)
            {
                oldest = Some((since, candidate));
            }
        }
        let Some((_, oldest)) = oldest else {
            return Ok(gone);
        };
        gone += oldest.drop_oldest(PORTION, now_ns)?;
        oldest.shrink()?;
    }
}

/// Removes the oldest events of a spool that no sender can fold, if the state folder is too large; returns how many.
pub(super) fn trim_spool(dir: &ProfileDir, settings: &Settings) -> usize {
    let Some(root) = dir.path().parent() else {
        return 0;
    };
    let (mut size, mut gone) = (size(root), 0);
    if size <= settings.max_bytes {
        return 0;
    }
    let mut files = files(&dir.inbox());
    files.sort_by(|a, b| a.path.cmp(&b.path));
    for file in files {
        let ours = file.path.file_name().and_then(|name| named_time(name.to_str()?)).is_some();
        if size > settings.max_bytes / 10 * 9 && ours && fs::remove_file(&file.path).is_ok() {
            size = size.saturating_sub(file.bytes);
            gone += 1;
        }
    }
    gone
}

struct File {
    path: PathBuf,
    /// On the disk, which for small files is more than their length.
    bytes: u64,
    /// Seconds since 1970.
    modified: u64,
}

fn profiles(root: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

/// What is only kept for somebody to look at: damaged stores, garbage from the spool, logs. The oldest first.
fn set_aside(root: &Path) -> Vec<File> {
    let mut found = Vec::new();
    for profile in profiles(root) {
        found.extend(files(&profile.join("spool/garbage")));
        found.extend(files(&profile).into_iter().filter(|file| {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("damaged-") || (name.starts_with("sender.log") && file.bytes > SMALL_LOG)
        }));
    }
    found.sort_by_key(|file| file.modified);
    found
}

fn files(folder: &Path) -> Vec<File> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok().filter(|metadata| !metadata.is_dir())?;
        let modified = u64::try_from(metadata.mtime()).unwrap_or(0);
        Some(File { path: entry.path(), bytes: metadata.blocks() * 512, modified })
    });
    files.collect()
}

/// Bytes on the disk of all files below a folder.
fn size(root: &Path) -> u64 {
    let mut total = 0;
    let mut folders = vec![PathBuf::from(root)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => total += metadata.blocks() * 512,
                Err(_) => {}
            }
        }
    }
    total
}
