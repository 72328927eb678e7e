//! Other processes, as `/proc` shows them.

use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};

/// One line of `/proc/<pid>/stat`, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id in our PID namespace.
    pub pid: u32,
    /// Name as the kernel keeps it: at most 15 bytes.
    pub name: String,
    /// Parent's process id; 0 when it lies outside our PID namespace.
    pub parent: u32,
    /// Device of the `/proc` it was read from: every PID namespace has one of its own, so the number means the same
    /// process only where this is the same. (The namespace's inode costs ten times as much to ask for.)
    pub namespace: u64,
    /// CLOCK_BOOTTIME of its start, in nanoseconds, rounded down to a clock tick (10 ms).
    pub started_ns: u64,
}

impl Process {
    /// Whether this is a shell, which agents run hooks through.
    #[must_use]
    pub fn is_shell(&self) -> bool {
        matches!(
            self.name.as_str(),
            "sh" | "dash" | "bash" | "ash" | "zsh" | "ksh" | "mksh" | "fish" | "busybox" | "yash" | "nu"
        )
    }
}

/// Reads about one process; None when there is none, or the system has no `/proc`.
#[must_use]
pub fn process(pid: u32) -> Option<Process> {
    let mut text = [0u8; 512];
    let file = rustix::fs::open(format!("/proc/{pid}/stat"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let read = rustix::io::read(file.as_fd(), &mut text).ok()?;
    let namespace = rustix::fs::fstat(file.as_fd()).ok()?.st_dev;
    parse_stat(text.get(..read)?, namespace)
}

/// The process that started this one.
#[must_use]
pub fn parent() -> Option<Process> {
    let pid = rustix::process::getppid()?;
    process(u32::try_from(pid.as_raw_nonzero().get()).ok()?)
}

fn parse_stat(text: &[u8], namespace: u64) -> Option<Process> {
    // The name may hold blanks and parentheses, so it ends at the last one.
    let text = String::from_utf8_lossy(text);
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    // Field 22 of the line, proc(5).
    let ticks: u64 = fields.nth(17)?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let started_ns = ticks.checked_mul(1_000_000_000)? / per_second;
    Some(Process { pid: pid.parse().ok()?, name: name.to_owned(), parent, namespace, started_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_blanks_and_parentheses() {
        let line = b"4711 (a) (b) S 12 4711 4711 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 250 1000 10\n";
        let parsed = parse_stat(line, 5).unwrap();
        assert_eq!((parsed.pid, parsed.name.as_str(), parsed.parent), (4711, "a) (b", 12));
        assert_eq!(parsed.started_ns, 250 * 1_000_000_000 / rustix::param::clock_ticks_per_second());
    }

    #[test]
    fn this_test_process_has_a_parent_and_a_start_before_now() {
        let this = process(std::process::id()).unwrap();
        assert_eq!(parent().unwrap().pid, this.parent);
        assert!(this.started_ns > 0 && this.started_ns <= crate::sys::clocks().boottime_ns);
        assert!(this.namespace > 0 && parent().unwrap().namespace == this.namespace);
    }

    #[test]
    fn a_process_that_is_not_there_is_none() {
        assert_eq!(process(u32::MAX), None);
        assert_eq!(parse_stat(b"garbage", 5), None);
    }
}
