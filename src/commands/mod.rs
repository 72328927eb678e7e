//! One thin file per subcommand.

pub mod demo;
pub mod flush;
pub mod hook;
pub mod install;
pub mod send;
pub mod show;

use std::path::{Path, PathBuf};

/// Every profile's name and folder below a state folder, in order.
fn profiles(root: &Path) -> Vec<(String, PathBuf)> {
    let Ok(folders) = std::fs::read_dir(root) else {
        return Vec::new();
    };
    let mut profiles: Vec<_> = folders
        .filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_type().ok()?.is_dir().then(|| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        })
        .collect();
    profiles.sort();
    profiles
}
