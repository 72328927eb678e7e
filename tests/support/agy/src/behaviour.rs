//! What can be chosen about the agy that is played: version, product, mode, and the points on which sources disagree.
//!
//! Plain data. The defaults are the ones that harm a careless hook most, so that a test notices it.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::version::Version;

/// Which product's paths the payloads carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum Product {
    /// The command line, `~/.gemini/antigravity-cli`.
    #[default]
    Cli,
    /// The editor, `~/.gemini/antigravity-ide`.
    Ide,
    /// The 2.0 desktop app, `~/.gemini/antigravity`.
    Desktop,
}

impl Product {
    /// The product's folder under `~/.gemini` (bundled hooks.md).
    #[must_use]
    pub const fn app_data(self) -> &'static str {
        match self {
            Self::Cli => "antigravity-cli",
            Self::Ide => "antigravity-ide",
            Self::Desktop => "antigravity",
        }
    }
}

/// Whether somebody sits in front of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// `agy -p`: nobody can be asked, `workspacePaths` lists the `--add-dir` folders only (measured 1.1.x, 1.2.7).
    #[default]
    Headless,
    /// The terminal interface: a question gets the script's answer, `workspacePaths` starts with the workspace.
    Interactive,
}

/// What `{"decision":""}` from a `PreToolUse` hook does. Never measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum EmptyDecision {
    /// The tool is denied, as with `{}`: both decode to the same proto message (inferred).
    #[default]
    Deny,
    /// No opinion: one reading of changelog 1.0.16 ("safely handling empty decision strings").
    Neutral,
}

/// What a hook that ran into its timeout does. Sources disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum TimeoutOutcome {
    /// Like a failed hook: a tool is denied, an invocation aborted (1.0.5, 1.2.6).
    #[default]
    Deny,
    /// As if the hook were not there (1.1.7, 1.1.12).
    Open,
}

/// Which `.agents/hooks.json` files are read besides the global one. Sources disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum WorkspaceHooks {
    /// Of the workspace and its parents up to the folder that holds `.git`, and of each `--add-dir` folder (1.4.2).
    #[default]
    UpToGitRoot,
    /// Only of folders that `workspacePaths` lists (1.2.7).
    OpenOnly,
    /// None (1.1.7 to 1.1.12).
    Never,
}

/// The shape of a tool's `PostToolUse`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum PostShape {
    /// As captured for the version.
    #[default]
    ByVersion,
    /// The docs shape: `stepIdx` and `error` only.
    Thin,
    /// With `toolCall`.
    Full,
}

/// Everything that can be chosen about the agy that is played.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Behaviour {
    /// The version whose payloads and rules are played.
    pub profile: Version,
    /// The product whose paths the payloads carry.
    pub product: Product,
    /// Whether questions can be answered.
    pub mode: Mode,
    /// What `{"decision":""}` does.
    pub empty_decision: EmptyDecision,
    /// What a timeout does.
    pub on_timeout: TimeoutOutcome,
    /// Which workspace files are read.
    pub workspace_hooks: WorkspaceHooks,
    /// The shape of `PostToolUse`.
    pub post_tool_use: PostShape,
    /// Whether a hook's stdin stays open until the hook ends (reported for Windows).
    pub keep_stdin_open: bool,
    /// Whether hooks get `ANTIGRAVITY_CONVERSATION_ID` (1.2.7, 1.4.7).
    pub conversation_env: bool,
    /// Whether the proto fields nobody saw filled on the wire are filled: `executionId`, `agentName`, `parentConversationId`,
    /// `modelOutput`, `modelThinking`, `result` (descriptor of 1.2.5 and 1.2.6).
    pub unproven_fields: bool,
    /// How often a Stop hook may continue one turn; agy caps it since 1.1.9, by a number that is not published.
    pub max_continues: u32,
    /// Whether `invocationNum` restarts at 0 after a forced continuation. Not known.
    pub continue_restarts_invocations: bool,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            profile: Version::LATEST_MEASURED,
            product: Product::default(),
            mode: Mode::default(),
            empty_decision: EmptyDecision::default(),
            on_timeout: TimeoutOutcome::default(),
            workspace_hooks: WorkspaceHooks::default(),
            post_tool_use: PostShape::default(),
            keep_stdin_open: false,
            conversation_env: true,
            unproven_fields: false,
            max_continues: 8,
            continue_restarts_invocations: true,
        }
    }
}
