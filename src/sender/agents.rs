//! Which agents live: a pidfd per agent tells its end without polling, and cannot be fooled by a process id that is
//! used again. Never touches the agent, its files or its locks.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags};
use tokio::io::unix::AsyncFd;

use crate::event::Agent;
use crate::hosts::HOSTS;
use crate::sys;

/// Longest chain of shells between a hook and its agent.
const MOST_SHELLS: usize = 8;

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
    /// Looks an agent up once; `captured_ns` is the CLOCK_BOOTTIME of one of its events in this boot.
    pub(super) fn observe(&mut self, agent: &Agent, captured_ns: u64) {
        self.seen.entry(agent.clone()).or_insert_with(|| look(agent, captured_ns));
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

/// Finds the process, walks up over shells, and takes a pidfd of it.
fn look(agent: &Agent, captured_ns: u64) -> Sight {
    if agent.namespace != sys::pid_namespace() || agent.namespace == 0 {
        return Sight::Unobservable;
    }
    // What cannot be told to have been an agent gets the benefit of the doubt of idleness.
    let lost = if agent.marked { Sight::Gone } else { Sight::Unobservable };
    let mut pid = agent.pid;
    for _ in 0..MOST_SHELLS {
        // The pidfd first: what is read afterwards is about the same process, or there is none any more.
        let pidfd = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
        let (Some(pidfd), Some(process)) = (pidfd, sys::process(pid)) else {
            return lost;
        };
        // A process that started after the event has inherited the number of one that is gone.
        if process.started_ns > captured_ns {
            return lost;
        }
        if process.is_shell() && process.parent > 1 {
            pid = process.parent;
            continue;
        }
        let known = HOSTS.iter().any(|host| host.is_agent(&process.name));
        if !(known || agent.marked) || process.pid <= 1 {
            return Sight::Unobservable;
        }
        return sys::wakeable(pidfd).map_or(Sight::Unobservable, Sight::Live);
    }
    Sight::Unobservable
}
