//! Puts files in their places so that at no moment a half one is there, and looks at programs. The only part of the
//! installer that touches the disk; it decides nothing. Decided in `docs/adr/0030-install-leaves-files-alone.md`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use crate::sys;

/// Longest chain of links to follow, as the kernel does.
const MOST_LINKS: usize = 40;

/// Why a file could not be read, written or removed; nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The system refused.
    #[error("cannot {what} {path}: {error}")]
    Io {
        /// To do what.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Somebody wrote the file since it was looked at.
    #[error("{0} has just been written by somebody else: run this again")]
    Changed(PathBuf),
}

/// Why a program cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Nothing is there.
    #[error("there is no {0}")]
    Missing(PathBuf),
    /// It is a folder, or nobody may run it.
    #[error("{0} is not an executable file")]
    NotExecutable(PathBuf),
    /// A package manager or cargo puts another one in its place, or takes it away.
    #[error("{0} is replaced or removed by the next upgrade or build")]
    Fleeting(PathBuf),
    /// It does not start, as a program for another machine does not.
    #[error("{path} does not run: {error}")]
    NotRunning {
        /// The program.
        path: PathBuf,
        /// What happened.
        error: String,
    },
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ApplyError {
    move |error| ApplyError::Io { what, path: path.to_owned(), error }
}

/// The file itself, behind all links, whether it is there or not.
///
/// # Errors
/// When a link cannot be read or links go in a circle.
pub fn target(path: &Path) -> Result<PathBuf, ApplyError> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let link = fs::read_link(&path).map_err(failed("read the link", &path))?;
                path = path.parent().unwrap_or(Path::new("/")).join(link);
            }
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(failed("look at", &path)(error)),
        }
    }
    Err(failed("follow", &path)(io::Error::other("too many links")))
}

/// Reads a file; None if there is none.
///
/// # Errors
/// When it is there and cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, ApplyError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// Makes a file that is not there yet, with its folder.
///
/// # Errors
/// When it cannot be written, or has appeared meanwhile; that one is left alone then.
pub fn create(path: &Path, bytes: &[u8]) -> Result<(), ApplyError> {
    let beside = write_beside(path, bytes, 0o666)?;
    // A link is made only if the name is free, which a rename does not offer everywhere.
    let linked = fs::hard_link(&beside, path);
    let done = match linked {
        Ok(()) => fs::remove_file(&beside).map_err(failed("remove", &beside)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(ApplyError::Changed(path.to_owned())),
        // File systems without hard links.
        Err(_) if !path.exists() => fs::rename(&beside, path).map_err(failed("write", path)),
        Err(_) => Err(ApplyError::Changed(path.to_owned())),
    };
    finish(done, &beside, path)
}

/// Puts a file in its place, whether one is there or not; a file that is there keeps its mode and owner.
///
/// # Errors
/// When it cannot be written; an older file stays as it was.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), ApplyError> {
    let beside = write_beside(path, bytes, mode)?;
    let dressed = match fs::metadata(path) {
        Ok(old) => {
            // Only root can give files away; for others the owner is the same, or cannot be kept.
            let _ = std::os::unix::fs::chown(&beside, Some(old.uid()), Some(old.gid()));
            fs::set_permissions(&beside, old.permissions())
        }
        Err(_) => Ok(()),
    };
    let done = dressed.and_then(|()| fs::rename(&beside, path)).map_err(failed("write", path));
    finish(done, &beside, path)
}

/// Removes a file of ours.
///
/// # Errors
/// When it cannot be removed.
pub fn remove(path: &Path) -> Result<(), ApplyError> {
    fs::remove_file(path).map_err(failed("remove", path))?;
    sync_folder(path)
}

/// Writes a file of an unlikely name in the folder of `path`, down to the disk.
fn write_beside(path: &Path, bytes: &[u8], mode: u32) -> Result<PathBuf, ApplyError> {
    use std::os::unix::fs::OpenOptionsExt;
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
    let chance = sys::random().map_or_else(|| u64::from(std::process::id()), u64::from_ne_bytes);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.{chance:016x}"));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(failed("write into", folder));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map(|()| beside)
}

fn finish(done: Result<(), ApplyError>, beside: &Path, path: &Path) -> Result<(), ApplyError> {
    if done.is_err() {
        let _ = fs::remove_file(beside);
    }
    done.and_then(|()| sync_folder(path))
}

/// After a power cut the folder must know the file, too.
fn sync_folder(path: &Path) -> Result<(), ApplyError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("write", folder))
}

/// Whether a program can be registered: it is there to stay, and says that it is this one.
///
/// # Errors
/// Says what is wrong with it.
pub fn check_program(path: &Path) -> Result<(), ProgramError> {
    let Ok(metadata) = fs::metadata(path) else {
        return Err(ProgramError::Missing(path.to_owned()));
    };
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(ProgramError::NotExecutable(path.to_owned()));
    }
    if is_fleeting(path) {
        return Err(ProgramError::Fleeting(path.to_owned()));
    }
    let not_running = |error: String| ProgramError::NotRunning { path: path.to_owned(), error };
    let output = Command::new(path).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| not_running(error.to_string()))?;
    if output.status.success() && output.stdout.starts_with(b"fi-hook-to-otlp ") {
        return Ok(());
    }
    Err(not_running(format!("`--version` does not answer as fi-hook-to-otlp does ({})", output.status)))
}

/// Places that the next upgrade or build takes away: Homebrew's and Nix's versioned folders, cargo's target folder.
fn is_fleeting(path: &Path) -> bool {
    let names: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let has = |run: &[&str]| names.windows(run.len()).any(|window| window == run);
    names.starts_with(&["nix", "store"])
        || has(&["Cellar"])
        || names.contains(&"target") && (names.contains(&"debug") || names.contains(&"release"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_new_file_is_made_with_its_folder_and_never_over_another() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a b/c/hooks.json");
        create(&path, b"one").unwrap();
        assert!(matches!(create(&path, b"two"), Err(ApplyError::Changed(_))));
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(names(path.parent().unwrap()), ["hooks.json"]);
        remove(&path).unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }

    #[test]
    fn a_replaced_file_keeps_its_mode() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("program");
        replace(&path, b"one", 0o755).unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode() & 0o100, 0o100);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).unwrap();
        replace(&path, b"two", 0o755).unwrap();
        assert_eq!((fs::read(&path).unwrap().as_slice(), mode()), (b"two".as_slice(), 0o711));
        assert_eq!(names(base.path()), ["program"]);
    }

    #[test]
    fn links_are_followed_to_a_file_that_may_not_be_there() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        symlink("b", at("a")).unwrap();
        symlink(at("real/file"), at("b")).unwrap();
        symlink("circle", at("circle")).unwrap();
        assert_eq!(target(&at("a")).unwrap(), at("real/file"));
        assert_eq!(target(&at("none")).unwrap(), at("none"));
        assert!(target(&at("circle")).unwrap_err().to_string().contains("too many links"));
    }

    #[test]
    fn places_that_do_not_last() {
        for (path, fleeting) in [
            ("/opt/homebrew/Cellar/fi-hook-to-otlp/0.1.0/bin/x", true),
            ("/nix/store/abc-x/bin/x", true),
            ("/src/target/x86_64-unknown-linux-musl/release/x", true),
            ("/src/target/debug/x", true),
            ("/opt/homebrew/bin/x", false),
            ("/srv/release/x", false),
            ("/home/me/.local/bin/x", false),
        ] {
            assert_eq!(is_fleeting(Path::new(path)), fleeting, "{path}");
        }
    }
}
