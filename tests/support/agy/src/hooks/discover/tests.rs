//! Which files count, and which of two hooks of one name.

use tempfile::TempDir;

use super::*;

/// A home with a global file and a workspace inside a repository.
struct Tree {
    root: TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(tree.path("repo/.git")).unwrap();
        fs::create_dir_all(tree.path("repo/sub/deep")).unwrap();
        tree
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A file with one Stop hook per (name, command).
    fn hooks(&self, below: &str, hooks: &[(&str, &str)]) {
        let members: Vec<_> = hooks
            .iter()
            .map(|(name, command)| format!(r#""{name}": {{"Stop": [{{"command": "{command}"}}]}}"#))
            .collect();
        self.write(below, &format!("{{{}}}", members.join(",")));
    }

    fn places(&self, workspace: &str) -> Places {
        Places {
            config: self.path("home/.gemini/config"),
            global: None,
            workspace: self.path(workspace),
            added: Vec::new(),
            workspace_is_open: false,
            rule: WorkspaceHooks::UpToGitRoot,
        }
    }
}

fn stop_commands(loaded: &Loaded) -> Vec<String> {
    loaded.actions(Event::Stop, None, false).map(|(_, action)| action.handler.command.clone()).collect()
}

#[test]
fn one_name_in_global_and_workspace_leaves_the_global_one_whole() {
    let tree = Tree::new();
    tree.hooks("home/.gemini/config/hooks.json", &[("same", "global")]);
    tree.write(
        "repo/.agents/hooks.json",
        r#"{"same": {"Stop": [{"command": "lost"}], "SessionStart": [{"command": "lost too"}]}}"#,
    );
    let loaded = Loaded::from(&tree.places("repo"));
    assert_eq!(stop_commands(&loaded), ["global"]);
    assert_eq!(loaded.actions(Event::SessionStart, None, false).count(), 0);
}

#[test]
fn a_disabled_global_hook_still_takes_the_name() {
    let tree = Tree::new();
    tree.write("home/.gemini/config/hooks.json", r#"{"same": {"enabled": false, "Stop": [{"command": "off"}]}}"#);
    tree.hooks("repo/.agents/hooks.json", &[("same", "lost")]);
    assert!(stop_commands(&Loaded::from(&tree.places("repo"))).is_empty());
}

#[test]
fn different_names_all_run_global_first() {
    let tree = Tree::new();
    tree.hooks("home/.gemini/config/hooks.json", &[("b", "global b"), ("a", "global a")]);
    tree.hooks("repo/.agents/hooks.json", &[("c", "workspace")]);
    assert_eq!(stop_commands(&Loaded::from(&tree.places("repo"))), ["global a", "global b", "workspace"]);
}

#[test]
fn a_plugin_keeps_a_name_the_user_has_too() {
    let tree = Tree::new();
    tree.hooks("home/.gemini/config/hooks.json", &[("same", "global")]);
    tree.hooks("home/.gemini/config/plugins/p/hooks.json", &[("same", "plugin")]);
    tree.hooks("home/.gemini/config/plugins/p/hooks/hooks.json", &[("deep", "ignored")]);
    let loaded = Loaded::from(&tree.places("repo"));
    assert_eq!(stop_commands(&loaded), ["global", "plugin"]);
    assert_eq!(loaded.sources[1].folder, tree.path("home/.gemini/config/plugins/p"));
}

#[test]
fn workspace_files_are_read_up_to_the_git_root_and_no_further() {
    let tree = Tree::new();
    tree.hooks("repo/sub/deep/.agents/hooks.json", &[("deep", "deep")]);
    tree.hooks("repo/.agents/hooks.json", &[("root", "root")]);
    tree.hooks(".agents/hooks.json", &[("outside", "outside")]);
    assert_eq!(stop_commands(&Loaded::from(&tree.places("repo/sub/deep"))), ["deep", "root"]);
    tree.write("alone/here/x", "");
    tree.hooks("alone/.agents/hooks.json", &[("parent", "parent")]);
    assert!(stop_commands(&Loaded::from(&tree.places("alone/here"))).is_empty(), "read a parent without a repository");
}

#[test]
fn the_rule_for_workspace_files_can_be_chosen() {
    let tree = Tree::new();
    tree.hooks("repo/sub/.agents/hooks.json", &[("sub", "sub")]);
    tree.hooks("other/.agents/hooks.json", &[("other", "other")]);
    let mut places = tree.places("repo/sub");
    places.added.push(tree.path("other"));
    assert_eq!(stop_commands(&Loaded::from(&places)), ["sub", "other"]);
    places.rule = WorkspaceHooks::OpenOnly;
    assert_eq!(stop_commands(&Loaded::from(&places)), ["other"]);
    places.workspace_is_open = true;
    assert_eq!(stop_commands(&Loaded::from(&places)), ["sub", "other"]);
    places.rule = WorkspaceHooks::Never;
    assert!(stop_commands(&Loaded::from(&places)).is_empty());
}

#[test]
fn a_void_file_costs_no_other_file() {
    let tree = Tree::new();
    tree.write("home/.gemini/config/hooks.json", r#"{"version": 1, "good": {"Stop": [{"command": "lost"}]}}"#);
    tree.hooks("repo/.agents/hooks.json", &[("good", "workspace")]);
    let loaded = Loaded::from(&tree.places("repo"));
    assert_eq!(stop_commands(&loaded), ["workspace"]);
    assert_eq!(loaded.files[0].state, FileState::Void);
    assert!(loaded.files[0].notes[0].contains("version"), "{:?}", loaded.files[0].notes);
    assert_eq!(loaded.file_count(), 1);
}

#[test]
fn the_global_file_can_be_named() {
    let tree = Tree::new();
    tree.hooks("elsewhere.json", &[("x", "named")]);
    let mut places = tree.places("repo");
    places.global = Some(tree.path("elsewhere.json"));
    assert_eq!(stop_commands(&Loaded::from(&places)), ["named"]);
}
