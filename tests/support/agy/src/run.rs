//! From the command line to the end of the program: reads script and hooks files, listens for signals, plays.
//!
//! Decides nothing about hooks. A signal ends the program as Ctrl-C ends agy: no more hooks, a last line in the report.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use rustix::process::Signal as Sent;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::behaviour::{Behaviour, Mode};
use crate::cli::Arguments;
use crate::command::Groups;
use crate::hooks::{Loaded, Places, listing};
use crate::play::play;
use crate::play::recording::{self, Recording, RecordingError};
use crate::play::stage::{Flag, Stage};
use crate::report::{Record, Start, Writer};
use crate::script::{Conversation, Script, Signal, Tool, Turn};

/// Why nothing was played.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("HOME is not set; set it to the folder whose .gemini/config is meant")]
    NoHome,
    #[error("cannot read {path}: {source}; name a readable file, or - for stdin")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path} is not a script: {source}; its form is in the README of agy-stand-in")]
    Script { path: PathBuf, source: serde_json::Error },
    #[error("{path}: {source}")]
    Recording { path: PathBuf, source: RecordingError },
    #[error("cannot write the report {path}: {source}; name a file in a writable folder")]
    Report { path: PathBuf, source: io::Error },
    #[error("cannot use the folder {path}: {source}; name an existing one")]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot listen for signals: {0}; start it where signals can be caught")]
    Signals(io::Error),
    #[error("cannot answer {0:?}; of the slash commands only /hooks is known")]
    Prompt(String),
    #[error("cannot write to stdout: {0}; keep its reader open")]
    Stdout(io::Error),
}

/// What is to be played.
enum Play {
    Script(Script),
    Recording(Recording),
}

/// Does what the command line says; the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8, RunError> {
    let play = read_play(arguments)?;
    let behaviour = behaviour(arguments, play.as_ref());
    if arguments.version {
        return say(&behaviour.profile.to_string());
    }
    let home = std::env::var("HOME").ok().filter(|home| !home.is_empty()).ok_or(RunError::NoHome)?;
    let workspace = folder(arguments.workspace.as_deref().unwrap_or(Path::new(".")))?;
    let added = arguments.add_dir.iter().map(|path| folder(path)).collect::<Result<Vec<_>, _>>()?;
    let is_open = behaviour.mode == Mode::Interactive;
    let loaded = Loaded::from(&Places {
        config: Path::new(&home).join(".gemini/config"),
        global: arguments.home_config.clone(),
        workspace: workspace.clone(),
        added: added.clone(),
        workspace_is_open: is_open,
        rule: behaviour.workspace_hooks,
    });
    eprintln!("agy: loaded {} named hooks from {} hooks.json file(s)", loaded.sources.len(), loaded.file_count());
    let Some(play) = play else { return answer(arguments.print.as_deref().unwrap_or_default(), &loaded) };
    let open = is_open.then_some(workspace).into_iter().chain(added);
    let report = Writer::open(arguments.report.as_deref())
        .map_err(|source| RunError::Report { path: arguments.report.clone().unwrap_or_default(), source })?;
    let stage = Arc::new(Stage {
        behaviour,
        home,
        workspace_paths: open.map(|path| path.to_string_lossy().into_owned()).collect(),
        loaded,
        report,
        groups: Groups::default(),
        aborted: Flag::default(),
        interrupted: AtomicBool::new(false),
    });
    perform(&play, &stage)
}

fn perform(what: &Play, stage: &Arc<Stage>) -> Result<u8, RunError> {
    let start =
        Start { pid: std::process::id(), behaviour: stage.behaviour.clone(), files: stage.loaded.files.clone() };
    stage.report.record(&Record::Start(Box::new(start)));
    listen(stage)?;
    match what {
        Play::Script(script) => {
            if let Some(ms) = script.kill_after_ms {
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(ms));
                    Stage::kill(Signal::Kill)
                });
            }
            play(script, stage);
        }
        Play::Recording(recording) => recording::play(recording, stage),
    }
    stage.park_if_interrupted();
    let code = u8::from(stage.aborted.is_raised());
    stage.report.finish(i32::from(code), None);
    Ok(code)
}

/// SIGINT reaches the running hooks too, as Ctrl-C in a terminal does; SIGTERM leaves them to end by themselves.
fn listen(stage: &Arc<Stage>) -> Result<(), RunError> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(RunError::Signals)?;
    let stage = Arc::clone(stage);
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            stage.interrupt(signal, (signal == SIGINT).then_some(Sent::INT));
        }
    });
    Ok(())
}

fn read_play(arguments: &Arguments) -> Result<Option<Play>, RunError> {
    let id = arguments.conversation.map(|id| id.to_string());
    if let Some(path) = &arguments.script {
        let text = read(path)?;
        let mut script: Script =
            serde_json::from_str(&text).map_err(|source| RunError::Script { path: path.clone(), source })?;
        if let (Some(first), Some(id)) = (script.conversations.first_mut(), id) {
            first.id = Some(id);
        }
        return Ok(Some(Play::Script(script)));
    }
    if let Some(prompt) = arguments.print.as_deref().filter(|prompt| !prompt.starts_with('/')) {
        let tool = Tool::run_command("make test", ".");
        let mut conversation = Conversation::new().turn(Turn::prompt(prompt).tool(tool).answer());
        conversation.id = id;
        return Ok(Some(Play::Script(Script::of(conversation))));
    }
    let Some(path) = &arguments.play else { return Ok(None) };
    let mut recording =
        Recording::parse(&read(path)?).map_err(|source| RunError::Recording { path: path.clone(), source })?;
    for line in &mut recording.lines {
        line.delay_ms += arguments.delay_ms;
    }
    Ok(Some(Play::Recording(match id {
        Some(id) => recording.under_id(&id),
        None => recording,
    })))
}

/// The script's behaviour with what the command line says over it.
fn behaviour(arguments: &Arguments, play: Option<&Play>) -> Behaviour {
    let mut behaviour = match play {
        Some(Play::Script(script)) => script.behaviour.clone(),
        Some(Play::Recording(_)) | None => Behaviour::default(),
    };
    behaviour.profile = arguments.profile_version.unwrap_or(behaviour.profile);
    behaviour.product = arguments.product.unwrap_or(behaviour.product);
    behaviour.mode = arguments.mode.unwrap_or(behaviour.mode);
    behaviour.empty_decision = arguments.empty_decision.unwrap_or(behaviour.empty_decision);
    behaviour.on_timeout = arguments.on_timeout.unwrap_or(behaviour.on_timeout);
    behaviour.workspace_hooks = arguments.workspace_hooks.unwrap_or(behaviour.workspace_hooks);
    behaviour.keep_stdin_open |= arguments.keep_stdin_open;
    behaviour
}

fn answer(prompt: &str, loaded: &Loaded) -> Result<u8, RunError> {
    if prompt != "/hooks" {
        return Err(RunError::Prompt(prompt.to_owned()));
    }
    say(&listing(loaded).to_string())
}

fn say(text: &str) -> Result<u8, RunError> {
    writeln!(io::stdout(), "{text}").map_err(RunError::Stdout)?;
    Ok(0)
}

fn folder(path: &Path) -> Result<PathBuf, RunError> {
    path.canonicalize().map_err(|source| RunError::Folder { path: path.to_owned(), source })
}

fn read(path: &Path) -> Result<String, RunError> {
    let mut text = String::new();
    let outcome = match path.to_str() {
        Some("-") => io::stdin().read_to_string(&mut text).map(|_| ()),
        _ => std::fs::read_to_string(path).map(|read| text = read),
    };
    outcome.map(|()| text).map_err(|source| RunError::Unreadable { path: path.to_owned(), source })
}
