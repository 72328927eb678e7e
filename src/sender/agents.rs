//! Which agents live: a pidfd per agent tells its end without polling, and cannot be fooled by a process id that is
//! used again. Never touches the agent, its files or its locks.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags};
use tokio::io::unix::AsyncFd;

use crate::event::Agent;
use crate::sys;

/// What is known about one agent.
#[derive(Debug)]
enum Sight {
    /// It lives, and its end will be seen.
    Live(AsyncFd<OwnedFd>),
    /// It has ended, and this is when that was seen.
    Gone(Instant),
    /// Its end cannot be seen: its sessions end by idleness.
    Unobservable,
}

/// The agents of open sessions.
#[derive(Debug, Default)]
pub(super) struct Agents {
    seen: HashMap<Agent, Sight>,
}

impl Agents {
    /// Looks an agent up once; one of another boot has ended with that.
    pub(super) fn observe(&mut self, agent: &Agent, this_boot: bool) {
        self.seen.entry(agent.clone()).or_insert_with(|| if this_boot { look(agent) } else { gone_now() });
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

    /// Whether somebody has ended whose sessions are still open.
    pub(super) fn any_gone(&self) -> bool {
        self.seen.values().any(|sight| matches!(sight, Sight::Gone(_)))
    }

    /// Agents that had been seen to have ended for `time` or longer at `at`, and how long from then until that is so of the
    /// next one.
    pub(super) fn gone_for(&self, time: Duration, at: Instant) -> (Vec<Agent>, Option<Duration>) {
        let (mut gone, mut next) = (Vec::new(), None::<Duration>);
        for (agent, sight) in &self.seen {
            let Sight::Gone(since) = sight else { continue };
            match time.saturating_sub(at.saturating_duration_since(*since)) {
                Duration::ZERO => gone.push(agent.clone()),
                left => next = Some(next.map_or(left, |next| next.min(left))),
            }
        }
        (gone, next)
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
        self.seen.insert(ended, gone_now());
    }
}

fn gone_now() -> Sight {
    Sight::Gone(Instant::now())
}

/// Takes a pidfd of the process, if it is the one that ran the hook.
fn look(agent: &Agent) -> Sight {
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
        // One that started at another time has inherited the number of one that is gone.
        (Some(pidfd), Some(process)) if process.started_ns == agent.started_ns => {
            sys::wakeable(pidfd).map_or(Sight::Unobservable, Sight::Live)
        }
        _ => gone_now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_its_own_time_to_be_gone() {
        let agent = |pid| Agent { pid, started_ns: 1, namespace: 1, marked: true };
        let mut agents = Agents::default();
        assert_eq!(agents.gone_for(Duration::ZERO, Instant::now()), (Vec::new(), None));
        // Of another boot, so gone for certain.
        let looked = Instant::now();
        agents.observe(&agent(2), false);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(
            agents.gone_for(Duration::from_millis(20), looked).0,
            [],
            "a long step makes nobody gone for longer"
        );
        let (first, _) = agents.gone_for(Duration::from_millis(20), Instant::now());
        agents.observe(&agent(3), false);
        let (gone, next) = agents.gone_for(Duration::from_millis(20), Instant::now());
        assert_eq!((first, agents.any_gone()), (vec![agent(2)], true));
        // On a machine that stood still just now, both may be.
        assert!(gone.contains(&agent(2)) && (gone.len() == 2 || next.is_some_and(|left| !left.is_zero())));
        agents.keep_only(|agent| agent.pid == 3);
        assert_eq!(agents.gone_for(Duration::ZERO, Instant::now()).0, [agent(3)]);
    }

    #[tokio::test]
    async fn a_number_that_is_used_again_is_another_agent() {
        let own = sys::process(std::process::id()).unwrap();
        let agent = |started_ns| Agent { pid: own.pid, started_ns, namespace: own.namespace, marked: true };
        let (gone, live) = (agent(own.started_ns - 1), agent(own.started_ns));
        let mut agents = Agents::default();
        agents.observe(&gone, true);
        agents.observe(&live, true);
        assert!(agents.is_live(&live) && !agents.is_live(&gone));
        assert_eq!(agents.gone_for(Duration::ZERO, Instant::now()).0, [gone]);
    }
}
