//! Which agents live: a pidfd per agent tells its end without polling, and cannot be fooled by a process id that is
//! used again. Never touches the agent, its files or its locks.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags};
use tokio::io::unix::AsyncFd;

use crate::event::Agent;
use crate::sys;

/// What is known about one agent.
#[derive(Debug)]
enum Sight {
    /// It lives, and its end will be seen.
    Live(AsyncFd<OwnedFd>),
    /// It has ended.
    Gone,
    /// Its end cannot be seen: its sessions end by idleness.
    Unobservable,
}

/// The agents of open sessions.
#[derive(Debug, Default)]
pub(super) struct Agents {
    seen: HashMap<Agent, Sight>,
}

impl Agents {
    /// Looks an agent up once; `captured_ns` is the CLOCK_BOOTTIME of one of its events, None if that was in another boot.
    pub(super) fn observe(&mut self, agent: &Agent, captured_ns: Option<u64>) {
        self.seen.entry(agent.clone()).or_insert_with(|| captured_ns.map_or(Sight::Gone, |at| look(agent, at)));
    }

    /// Forgets agents that no open session mentions.
    pub(super) fn keep_only(&mut self, wanted: impl Fn(&Agent) -> bool) {
        self.seen.retain(|agent, _| wanted(agent));
    }

    pub(super) fn is_live(&self, agent: &Agent) -> bool {
        matches!(self.seen.get(agent), Some(Sight::Live(_)))
    }

    pub(super) fn any_live(&self) -> bool {
        self.seen.values().any(|sight| matches!(sight, Sight::Live(_)))
    }

    /// Agents that have ended.
    pub(super) fn gone(&self) -> Vec<Agent> {
        let gone = self.seen.iter().filter(|(_, sight)| matches!(sight, Sight::Gone));
        gone.map(|(agent, _)| agent.clone()).collect()
    }

    /// Returns when one of the live agents has ended; never while there is none.
    pub(super) async fn exited(&mut self) {
        let ended = std::future::poll_fn(|context| {
            for (agent, sight) in &self.seen {
                if let Sight::Live(pidfd) = sight
                    && pidfd.poll_read_ready(context).is_ready()
                {
                    return std::task::Poll::Ready(agent.clone());
                }
            }
            std::task::Poll::Pending
        })
        .await;
        self.seen.insert(ended, Sight::Gone);
    }
}

/// Takes a pidfd of the process, if it is the one that ran the hook.
fn look(agent: &Agent, captured_ns: u64) -> Sight {
    let own = sys::process(std::process::id()).map(|own| own.namespace);
    if own != Some(agent.namespace) {
        return Sight::Unobservable;
    }
    // The pidfd first: what is read afterwards is about the same process, or there is none any more.
    let pidfd = i32::try_from(agent.pid)
        .ok()
        .and_then(Pid::from_raw)
        .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
    match (pidfd, sys::process(agent.pid)) {
        // A process that started after the event has inherited the number of one that is gone.
        (Some(pidfd), Some(process)) if process.started_ns <= captured_ns => {
            sys::wakeable(pidfd).map_or(Sight::Unobservable, Sight::Live)
        }
        _ => Sight::Gone,
    }
}
