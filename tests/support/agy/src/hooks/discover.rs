//! Finds the hooks.json files and says which named hooks survive side by side.
//!
//! Reference section 1.4. Reads files, and only these; writes nothing. A file that cannot be read counts as void.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::{Action, HookFile, NamedHook};
use crate::behaviour::WorkspaceHooks;
use crate::event::Event;

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places {
    /// `$HOME/.gemini/config`; its `plugins` folder counts too.
    pub config: PathBuf,
    /// The global file, if it is not `hooks.json` in `config`.
    pub global: Option<PathBuf>,
    /// The folder in which agy was started.
    pub workspace: PathBuf,
    /// The `--add-dir` folders.
    pub added: Vec<PathBuf>,
    /// Whether the workspace is an open one, i.e. in `workspacePaths`.
    pub workspace_is_open: bool,
    /// Which workspace files are read.
    pub rule: WorkspaceHooks,
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// The user's own.
    Global,
    /// A plugin's.
    Plugin,
    /// A workspace's.
    Workspace,
}

/// What came of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileState {
    /// It counts.
    Loaded,
    /// It exists and counts for nothing; the notes say why.
    Void,
    /// It is not there.
    Absent,
}

/// One place that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadedFile {
    /// The file.
    pub path: PathBuf,
    /// Its kind.
    pub scope: Scope,
    /// What came of it.
    pub state: FileState,
    /// The names of its hooks that survive, disabled ones too.
    pub hooks: Vec<String>,
    /// What was dropped, or why it is void.
    pub notes: Vec<String>,
}

/// A surviving named hook and where it stands.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its file.
    pub path: PathBuf,
    /// The folder of the file: where its commands run.
    pub folder: PathBuf,
    /// The kind of the file.
    pub scope: Scope,
    /// The hook.
    pub hook: NamedHook,
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Every place looked at, in order.
    pub files: Vec<LoadedFile>,
    /// Every surviving hook, in the order in which it runs.
    pub sources: Vec<Source>,
}

impl Loaded {
    /// Looks at all places.
    #[must_use]
    pub fn from(places: &Places) -> Self {
        let mut loaded = Self::default();
        // Names of plugin hooks are their own: a plugin and the user's file run side by side (measured 1.2.7).
        let mut taken = BTreeSet::new();
        let global = places.global.clone().unwrap_or_else(|| places.config.join("hooks.json"));
        loaded.add(global, Scope::Global, &mut taken);
        for folder in sorted_folders(&places.config.join("plugins")) {
            loaded.add(folder.join("hooks.json"), Scope::Plugin, &mut BTreeSet::new());
        }
        for folder in workspace_folders(places) {
            loaded.add(folder.join(".agents").join("hooks.json"), Scope::Workspace, &mut taken);
        }
        loaded
    }

    /// The handlers that an event runs, in order. `tool` is what matchers see; `any` lets every matcher match.
    pub fn actions(&self, event: Event, tool: Option<&str>, any: bool) -> impl Iterator<Item = (&Source, &Action)> {
        self.sources
            .iter()
            .filter(|source| source.hook.enabled)
            .flat_map(|source| source.hook.actions.iter().map(move |action| (source, action)))
            .filter(move |(_, action)| action.event == event && (any || action.matcher.matches(tool)))
    }

    /// The number of files that count.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.files.iter().filter(|file| file.state == FileState::Loaded).count()
    }

    /// A name that is already taken drops the later hook, whole (measured 1.2.7 for global before workspace).
    fn add(&mut self, path: PathBuf, scope: Scope, taken: &mut BTreeSet<String>) {
        let mut entry = LoadedFile { path, scope, state: FileState::Absent, hooks: Vec::new(), notes: Vec::new() };
        let parsed = match fs::read_to_string(&entry.path) {
            Ok(text) => HookFile::parse(&text).map_err(|void| void.to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.files.push(entry);
                return;
            }
            Err(error) => Err(format!("cannot be read: {error}")),
        };
        match parsed {
            Err(reason) => {
                entry.state = FileState::Void;
                entry.notes.push(reason);
            }
            Ok(file) => {
                entry.state = FileState::Loaded;
                entry.notes = file.notes;
                for hook in file.hooks {
                    if !taken.insert(hook.name.clone()) {
                        entry
                            .notes
                            .push(format!("{:?} is dropped: an earlier file has a hook of that name", hook.name));
                        continue;
                    }
                    entry.hooks.push(hook.name.clone());
                    let folder = entry.path.parent().unwrap_or(Path::new(".")).to_path_buf();
                    self.sources.push(Source { path: entry.path.clone(), folder, scope, hook });
                }
            }
        }
        self.files.push(entry);
    }
}

/// The folders whose `.agents/hooks.json` is read: the workspace upwards, then the added ones. The order is inferred.
fn workspace_folders(places: &Places) -> Vec<PathBuf> {
    let mut folders = match places.rule {
        WorkspaceHooks::Never => return Vec::new(),
        WorkspaceHooks::OpenOnly if places.workspace_is_open => vec![places.workspace.clone()],
        WorkspaceHooks::OpenOnly => Vec::new(),
        WorkspaceHooks::UpToGitRoot => up_to_git_root(&places.workspace),
    };
    for folder in &places.added {
        if !folders.contains(folder) {
            folders.push(folder.clone());
        }
    }
    folders
}

/// The folder and its parents up to the one that holds `.git`; the folder alone outside of a repository.
fn up_to_git_root(folder: &Path) -> Vec<PathBuf> {
    let root = folder.ancestors().find(|parent| parent.join(".git").exists()).unwrap_or(folder);
    folder.ancestors().take_while(|parent| parent.starts_with(root)).map(Path::to_path_buf).collect()
}

fn sorted_folders(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort_unstable();
    folders
}

#[cfg(test)]
mod tests;
