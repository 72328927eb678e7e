//! The edge of the settings: reads the two files and the environment, one open each, and finds the places on disk.
//! May not decide what a value means. Decided in `docs/adr/0010-settings-precedence.md`.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use directories::{BaseDirs, ProjectDirs};

use super::file::{EnvFile, MAX_FILE_BYTES};
use super::{Settings, Sources, from_sender_environment};

const APP: &str = "fi-hook-to-otlp";

/// Where the administrator's file lies.
#[must_use]
pub fn managed_path() -> &'static Path {
    Path::new(if cfg!(target_os = "macos") {
        "/Library/Application Support/fi-hook-to-otlp/env"
    } else {
        "/etc/fi-hook-to-otlp/env"
    })
}

/// Where the user's settings file lies: FI_HOOK_CONFIG, else `$XDG_CONFIG_HOME` or `~/.config` on every system, since
/// the emitter that this one replaces reads it there. None without a home directory.
#[must_use]
pub fn file_path(environment: &[(String, String)]) -> Option<PathBuf> {
    let variable = |name: &str| {
        let pair = environment.iter().find(|(known, value)| known == name && !value.trim().is_empty());
        pair.map(|(_, value)| PathBuf::from(value.trim()))
    };
    if let Some(named) = variable("FI_HOOK_CONFIG") {
        return match named.strip_prefix("~") {
            Ok(rest) => Some(BaseDirs::new()?.home_dir().join(rest)),
            Err(_) => Some(named),
        };
    }
    let folder = variable("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute());
    Some(folder.or_else(|| Some(BaseDirs::new()?.home_dir().join(".config")))?.join(APP).join("env"))
}

/// The state folder: FI_HOOK_STATE_DIR, else `$XDG_STATE_HOME/fi-hook-to-otlp` (macOS: below
/// `~/Library/Application Support`), else, for a user without a home folder, below XDG_RUNTIME_DIR, which is that user's
/// alone. None without any of them.
#[must_use]
pub fn state_dir(settings: &Settings) -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder: &PathBuf| folder.is_absolute());
    settings
        .state_dir
        .clone()
        // Asked for here too, since `directories` knows no folder at all for a user without a home.
        .or_else(|| if cfg!(target_os = "macos") { None } else { Some(named("XDG_STATE_HOME")?.join(APP)) })
        .or_else(|| {
            let dirs = ProjectDirs::from("", "", APP)?;
            Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_owned())
        })
        .or_else(|| Some(named("XDG_RUNTIME_DIR")?.join(APP)))
}

/// The settings file of this process, whether it is there or not.
#[must_use]
pub fn settings_file() -> Option<PathBuf> {
    file_path(&environment())
}

/// Reads every source of this process.
#[must_use]
pub fn gather() -> Sources {
    let environment = environment();
    let file = file_path(&environment).and_then(|path| {
        let named = environment.iter().any(|(name, value)| name == "FI_HOOK_CONFIG" && !value.trim().is_empty());
        if path.is_absolute() {
            read_file(&path, named)
        } else {
            Some(EnvFile::unreadable(path, "FI_HOOK_CONFIG is no absolute path; ignored"))
        }
    });
    Sources { managed: read_managed(managed_path(), 0), environment, file }
}

/// The variables that settings can come from, lossily decoded, with the names they had in the hook process.
fn environment() -> Vec<(String, String)> {
    let wanted = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        let proxy = name.get(name.len().saturating_sub(6)..).is_some_and(|end| end.eq_ignore_ascii_case("_proxy"));
        let ours = ["FI_", "OTEL_", "XDG_"].iter().any(|prefix| name.starts_with(prefix));
        (ours || proxy || name == "HOME").then(|| (name, value.to_string_lossy().into_owned()))
    });
    from_sender_environment(wanted.collect())
}

/// Reads the user's file; None if there is none, unless the user named it.
fn read_file(path: &Path, named: bool) -> Option<EnvFile> {
    match open(path) {
        Ok((mut file, metadata)) => {
            let mut read = read(&mut file, metadata.len(), path);
            if readable_by_others(&metadata) && read.pairs.iter().any(|(name, _)| is_secret(name)) {
                read.problems.push("other users can read its keys: chmod 600 it".to_owned());
            }
            Some(read)
        }
        Err(error) if error.kind() == ErrorKind::NotFound && !named => None,
        Err(error) => Some(EnvFile::unreadable(path.to_owned(), format!("cannot be read: {error}"))),
    }
}

/// Reads the administrator's file. It counts only if it belongs to `owner` (0 but in tests) and nobody else can write
/// it; else it is there without its values, so that the problem is seen.
fn read_managed(path: &Path, owner: u32) -> Option<EnvFile> {
    match open(path) {
        Ok((mut file, metadata)) if written_only_by(&metadata, owner) => Some(read(&mut file, metadata.len(), path)),
        Ok(_) => {
            let why =
                "ignored, because it must belong to root and be writable by root alone: chown root it and chmod 644 it";
            Some(EnvFile::unreadable(path.to_owned(), why))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(EnvFile::unreadable(path.to_owned(), format!("cannot be read: {error}"))),
    }
}

/// Opens without waiting, because opening a FIFO would hold up the agent.
fn open(path: &Path) -> std::io::Result<(File, std::fs::Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(std::io::Error::other("it is larger than 64 KiB"));
    }
    Ok((file, metadata))
}

/// Reads a file of about `length` bytes.
fn read(file: &mut File, length: u64, path: &Path) -> EnvFile {
    // Else it is read in pieces of 32 bytes at first.
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(MAX_FILE_BYTES)).unwrap_or(0) + 1);
    match file.take(MAX_FILE_BYTES).read_to_end(&mut bytes) {
        Ok(_) => EnvFile::parse(path.to_owned(), &bytes),
        Err(error) => EnvFile::unreadable(path.to_owned(), format!("cannot be read: {error}")),
    }
}

fn is_secret(name: &str) -> bool {
    super::registry::known(name).is_some_and(|setting| setting.secret)
}

#[cfg(unix)]
fn readable_by_others(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & 0o077 != 0
}

#[cfg(unix)]
fn written_only_by(metadata: &std::fs::Metadata, owner: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == owner && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn readable_by_others(_: &std::fs::Metadata) -> bool {
    false
}

/// Without owners to look at, no file counts as an administrator's.
#[cfg(not(unix))]
fn written_only_by(_: &std::fs::Metadata, _: u32) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn written(mode: u32) -> (tempfile::TempDir, PathBuf, u32) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("env");
        std::fs::write(&path, "FI_API_KEY=hush\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let owner = std::fs::metadata(&path).unwrap().uid();
        (folder, path, owner)
    }

    #[test]
    fn a_managed_file_counts_only_if_nobody_else_can_write_it() {
        for (mode, other_owner, counts) in [
            (0o644, false, true),
            (0o600, false, true),
            (0o664, false, false),
            (0o646, false, false),
            (0o644, true, false),
        ] {
            let (_folder, path, owner) = written(mode);
            let file = read_managed(&path, if other_owner { owner + 1 } else { owner }).unwrap();
            assert_eq!(file.get("FI_API_KEY").is_some(), counts, "{mode:o}");
            assert_eq!(file.problems.is_empty(), counts, "{mode:o}");
        }
        assert_eq!(read_managed(Path::new("/nonexistent/env"), 0), None);
    }

    #[test]
    fn keys_that_others_can_read_are_a_problem() {
        for (mode, problems) in [(0o600, 0), (0o640, 1), (0o644, 1)] {
            let (_folder, path, _) = written(mode);
            let file = read_file(&path, false).unwrap();
            assert_eq!((file.get("FI_API_KEY"), file.problems.len()), (Some("hush"), problems), "{mode:o}");
        }
    }

    #[test]
    fn what_is_no_file_is_reported_and_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        for path in [&fifo, folder.path()] as [&Path; 2] {
            assert_eq!(read_file(path, false).unwrap().problems.len(), 1, "{}", path.display());
        }
        let missing = folder.path().join("missing");
        assert_eq!(read_file(&missing, false), None);
        assert_eq!(read_file(&missing, true).unwrap().problems.len(), 1);
    }

    #[test]
    fn where_the_file_lies() {
        let at = |pairs: &[(&str, &str)]| {
            file_path(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(at(&[("FI_HOOK_CONFIG", "/x/y"), ("XDG_CONFIG_HOME", "/c")]), Some("/x/y".into()));
        assert_eq!(at(&[("XDG_CONFIG_HOME", "/c")]), Some("/c/fi-hook-to-otlp/env".into()));
        let home = BaseDirs::new().unwrap().home_dir().join(".config/fi-hook-to-otlp/env");
        assert_eq!(at(&[("XDG_CONFIG_HOME", "relative"), ("FI_HOOK_CONFIG", "")]), Some(home));
    }
}
