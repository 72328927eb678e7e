//! `demo`: a recorded conversation through the real hooks, sender and store, into the configured destination if there is
//! one; ends with `show`. Decided in `docs/adr/0032-demo-through-the-real-hooks.md`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::config::{self, Destination, Settings, sources};
use crate::demo::agent;
use crate::demo::outcome::{self, Arrival, Delivery};
use crate::demo::recording::{self, TOOLS, TURNS};
use crate::event::Surface;
use crate::ids;
use crate::sys;

/// How long the sender may take to fold what the hooks left; it holds events back for 50 ms.
const ARRIVAL: Duration = Duration::from_secs(3);
/// How long the destination may take.
const ANSWER: Duration = Duration::from_secs(4);

/// Plays the conversation and shows what became of it.
///
/// # Errors
/// When the settings leave it out, it does not reach the store, or the destination does not accept it soon.
pub fn run() -> anyhow::Result<()> {
    let gathered = sources::gather();
    let settings = config::resolve(&gathered);
    refuse_if_left_out(&settings)?;
    let root =
        sources::state_dir(&settings).context("no state folder: set HOME, XDG_STATE_HOME or FI_HOOK_STATE_DIR")?;
    let id = recording::fresh_id(sys::random().context("the system has no random bytes yet: try again")?);
    say(format_args!("conversation {id}: {TURNS} turns, {TOOLS} tools, one of which fails; takes about 3 seconds"))?;

    let agent = Command::new(std::env::current_exe().context("cannot find this program's own file")?)
        .args(["demo", "--as-agent-of", &id])
        .stdin(Stdio::null())
        .status()
        .context("cannot start the demo's agent")?;
    ensure!(agent.success(), "the conversation was not played to its end");

    let profile = config::profile(&gathered, &settings, || crate::spool::key::read_or_make(&root));
    let folder = root.join(profile);
    let arrival = outcome::arrival(&folder, &id, ARRIVAL)?;
    refuse_if_missing(arrival, &folder)?;
    let delivered = match settings.destination.route() {
        Some(_) => Some(outcome::delivery(&folder, &id, ANSWER, || sys::clocks().realtime_ns)?),
        None => None,
    };
    let verdict = judge(&settings.destination, delivered.as_ref(), &folder);
    if let Ok(words) = &verdict {
        say(format_args!("{words}"))?;
        say(format_args!("trace {}, see it again with: show {id}", ids::trace_id(&id)))?;
    }
    if arrival == Arrival::StillOpen {
        say(format_args!("the session stays open, since the end of a process cannot be seen here; it ends when idle"))?;
    }
    say(format_args!(""))?;
    super::show::run(Some(&id), false)?;
    verdict.map(drop)
}

/// Is the agent of a conversation: a process of its own, whose end is the end of the session.
///
/// # Errors
/// At the first hook that does not do as it must.
pub fn be_agent(conversation: &str) -> anyhow::Result<()> {
    let steps = recording::steps(conversation).context("no conversation id: this option is the demo's own")?;
    Ok(agent::play(&steps, conversation)?)
}

fn refuse_if_left_out(settings: &Settings) -> anyhow::Result<()> {
    if let Some(name) = settings.disabled {
        bail!("{name} switches every hook off: remove it from the settings, then try again");
    }
    ensure!(
        settings.surfaces.contains(&Surface::Cli),
        "FI_HOOK_SURFACES leaves out cli, which the demo's conversation is of: add it, then try again"
    );
    Ok(())
}

fn refuse_if_missing(arrival: Arrival, folder: &Path) -> anyhow::Result<()> {
    let what = match arrival {
        Arrival::Whole | Arrival::StillOpen => return Ok(()),
        Arrival::Nothing => "the events did not arrive in the store".to_owned(),
        Arrival::Turns(turns) => format!("only {turns} of {TURNS} turns arrived in the store"),
    };
    bail!("{what}: see the last lines of {}", folder.join("sender.log").display())
}

/// Where the spans went, in plain words; an error when the destination has not taken all of them.
fn judge(destination: &Destination, delivered: Option<&Delivery>, folder: &Path) -> anyhow::Result<String> {
    let Some(delivery) = delivered else {
        if let Destination::None { reason } = destination {
            return Ok(format!("stored in {}; {reason}", folder.display()));
        }
        bail!("the spans wait in the store; destination {destination}");
    };
    let Delivery { spans, accepted, waiting, last } = delivery;
    if accepted == spans {
        return Ok(format!("{spans} spans accepted by {destination}"));
    }
    let answer = match (&last.message, &last.reason) {
        _ if last.failures == 0 && *waiting > 0 => format!("no answer within {} seconds", ANSWER.as_secs()),
        (Some(message), _) => message.clone(),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "no answer yet".to_owned(),
    };
    if *waiting == 0 {
        bail!("{destination} did not take all of the {spans} spans: {answer}");
    }
    bail!("{destination} has accepted {accepted} of {spans} spans: {answer}; the rest stays queued and is tried again")
}

/// One line at once: what follows takes time, or is printed by somebody else.
fn say(line: std::fmt::Arguments<'_>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
