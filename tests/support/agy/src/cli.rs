//! The command line: what was typed, and the exit code.
//!
//! Resolves nothing; that is `run`. Exit codes: 0 played, 1 a hook's reply aborted a turn, 2 wrong use, 128 + n signal n.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Parser, ValueEnum};
use uuid::Uuid;

use crate::behaviour::{EmptyDecision, Mode, Product, TimeoutOutcome, WorkspaceHooks};
use crate::run::run;
use crate::version::Version;

/// Plays a conversation and fires hooks as agy does.
#[derive(Debug, Parser)]
#[command(name = "agy", disable_version_flag = true)]
#[command(group = ArgGroup::new("what").required(true).args(["script", "play", "print", "version"]))]
pub(crate) struct Arguments {
    /// The folder in which agy is started [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Another open folder
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// The global hooks file [default: $HOME/.gemini/config/hooks.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) home_config: Option<PathBuf>,
    /// The script to play; - reads it from stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// The recording to play, one {"event", "payload"} a line; - reads it from stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) play: Option<PathBuf>,
    /// Milliseconds before each event of a recording, besides its own
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) delay_ms: u64,
    /// The id of the (first) conversation; a recording is rewritten to it
    #[arg(long, value_name = "UUID")]
    pub(crate) conversation: Option<Uuid>,
    /// The agy version
    #[arg(long, value_name = "VERSION", env = "AGY_STAND_IN_PROFILE")]
    pub(crate) profile_version: Option<Version>,
    /// The product whose paths payloads carry
    #[arg(long)]
    pub(crate) product: Option<Product>,
    /// Whether somebody answers questions
    #[arg(long)]
    pub(crate) mode: Option<Mode>,
    /// What {"decision":""} does before a tool
    #[arg(long)]
    pub(crate) empty_decision: Option<EmptyDecision>,
    /// What a hook's timeout does
    #[arg(long)]
    pub(crate) on_timeout: Option<TimeoutOutcome>,
    /// Which workspace hooks.json files are read
    #[arg(long)]
    pub(crate) workspace_hooks: Option<WorkspaceHooks>,
    /// Keep a hook's stdin open until it ends
    #[arg(long)]
    pub(crate) keep_stdin_open: bool,
    /// Where the report goes [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Answer a prompt with one tool call, or the slash command /hooks
    #[arg(short, long, value_name = "PROMPT")]
    pub(crate) print: Option<String>,
    /// The form in which --print answers
    #[arg(long, default_value = "json")]
    pub(crate) output_format: OutputFormat,
    /// Print the agy version that is played
    #[arg(long)]
    pub(crate) version: bool,
}

/// How `--print` answers. The text form of `/hooks` is not known, so it is not played.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    Json,
}

/// Reads the command line, plays, and tells the exit code.
#[must_use]
pub fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("agy: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn exactly_one_thing_is_asked_for() {
        assert!(Arguments::try_parse_from(["agy"]).is_err());
        assert!(Arguments::try_parse_from(["agy", "--script", "a", "--play", "b"]).is_err());
        assert!(Arguments::try_parse_from(["agy", "--script", "-", "--conversation", "not-a-uuid"]).is_err());
        assert!(Arguments::try_parse_from(["agy", "-p", "/hooks", "--output-format", "json"]).is_ok());
    }
}
