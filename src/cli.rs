//! What was typed, nothing resolved; and the exit codes: 0 done, 1 expected failure, 2 usage, 70 bug.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands;
use crate::commands::install::{PreToolUse, Wish};

/// Turns each Antigravity CLI conversation into one OpenTelemetry trace.
#[derive(Debug, Parser)]
#[command(name = "fi-hook-to-otlp", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer a hook of an agent and record its event (what hooks.json runs).
    Hook {
        /// The agent.
        host: String,
        /// The event, as the agent names it.
        event: String,
        /// The reply to PreToolUse: `empty-decision` prints {"decision":""} instead of nothing.
        #[arg(long)]
        reply: Option<String>,
    },
    /// Deliver what hooks recorded (started by hooks, in the background).
    #[command(hide = true)]
    Send {
        /// The profile: `default`, or a hash of the settings in the environment.
        #[arg(long, default_value = "default")]
        profile: String,
    },
    /// Deliver now what is recorded, and say why if something is left.
    Flush {
        /// Seconds to wait for the destination.
        #[arg(long, default_value_t = 30)]
        timeout: u64,
    },
    /// Print a recorded conversation as a tree, the newest one by default.
    Show {
        /// The conversation's id, or the start of it.
        conversation: Option<String>,
        /// List all recorded conversations instead.
        #[arg(long)]
        list: bool,
    },
    /// Register in agy's hooks.json; a file that is there is left as it is.
    Install(Install),
    /// Take the registration back from a hooks.json that holds nothing else.
    Uninstall {
        /// The folder that agy is started in; the current one by default.
        folder: Option<PathBuf>,
        /// The file for all folders of this user: ~/.gemini/config/hooks.json.
        #[arg(long, conflicts_with = "folder")]
        global: bool,
    },
    /// Play a recorded conversation through the real hooks and show the trace.
    Demo {
        /// Internal: be the agent of this conversation.
        #[arg(long, hide = true)]
        as_agent_of: Option<String>,
    },
}

#[derive(Debug, Args)]
struct Install {
    /// The folder that agy is started in; the current one by default.
    folder: Option<PathBuf>,
    /// The file for all folders of this user: ~/.gemini/config/hooks.json.
    #[arg(long, conflicts_with = "folder")]
    global: bool,
    /// Copy this program into .agents/fi-hook-to-otlp and register it by its relative path.
    #[arg(long)]
    vendor: bool,
    /// The folder of the registered program, instead of ~/.local/bin.
    #[arg(long, conflicts_with = "vendor")]
    bin_dir: Option<PathBuf>,
    /// Leave PreToolUse out: tools have no start times then.
    #[arg(long)]
    no_pre_tool_use: bool,
    /// What PreToolUse answers.
    #[arg(long, conflicts_with = "no_pre_tool_use")]
    pre_tool_reply: Option<PreToolReply>,
    /// Print the hooks.json, do nothing else.
    #[arg(long)]
    print: bool,
    /// Say what would be done, do nothing.
    #[arg(long, conflicts_with = "print")]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PreToolReply {
    /// Nothing at all: measured neutral.
    Nothing,
    /// {"decision":""}: documented, never measured.
    EmptyDecision,
}

impl Install {
    fn wish(self) -> Wish {
        Wish {
            folder: self.folder,
            global: self.global,
            vendor: self.vendor,
            bin_dir: self.bin_dir,
            pre_tool_use: match self.pre_tool_reply {
                _ if self.no_pre_tool_use => PreToolUse::Unregistered,
                Some(PreToolReply::EmptyDecision) => PreToolUse::EmptyDecision,
                Some(PreToolReply::Nothing) | None => PreToolUse::NoReply,
            },
            print: self.print,
            dry_run: self.dry_run,
        }
    }
}

/// Runs what was typed.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let done = match cli.command {
        // `main` takes hooks before they get here; this arm is the usage text's.
        Command::Hook { host, event, reply } => {
            let mut words = vec![host.into(), event.into()];
            words.extend(reply.into_iter().flat_map(|reply| ["--reply".into(), reply.into()]));
            commands::hook::run(&words);
            Ok(())
        }
        Command::Send { profile } => commands::send::run(&profile),
        Command::Flush { timeout } => commands::flush::run(Duration::from_secs(timeout)),
        Command::Show { conversation, list } => commands::show::run(conversation.as_deref(), list),
        Command::Install(install) => commands::install::install(&install.wish()),
        Command::Uninstall { folder, global } => commands::install::uninstall(folder.as_deref(), global),
        Command::Demo { as_agent_of: Some(conversation) } => commands::demo::be_agent(&conversation),
        Command::Demo { as_agent_of: None } => commands::demo::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "fi-hook-to-otlp: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether somebody stopped reading, as `head` does: no failure of ours.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
