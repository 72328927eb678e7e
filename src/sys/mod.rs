//! What only the operating system can tell or do: clocks, processes, a detached child. The only place with unsafe code.
//! Linux is complete; elsewhere agents are not observable, so sessions end by idleness there.

mod detach;
mod process;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::time::{ClockId, clock_gettime};
use tokio::io::unix::AsyncFd;

pub use detach::spawn_detached;
pub use process::{Process, parent, process};

/// The two clocks at one moment, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Since 1970; may be set by the user or by NTP.
    pub realtime_ns: u64,
    /// Since boot, suspend included (macOS: CLOCK_MONOTONIC); never goes back.
    pub boottime_ns: u64,
}

/// Reads both clocks.
#[must_use]
pub fn clocks() -> Clocks {
    #[cfg(target_os = "linux")]
    const STEADY: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const STEADY: ClockId = ClockId::Monotonic;
    Clocks {
        realtime_ns: nanoseconds(clock_gettime(ClockId::Realtime)),
        boottime_ns: nanoseconds(clock_gettime(STEADY)),
    }
}

fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Names the current boot; empty where the system does not tell.
#[must_use]
pub fn boot_id() -> String {
    let mut text = [0u8; 64];
    let read = rustix::fs::open(
        "/proc/sys/kernel/random/boot_id",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
        Mode::empty(),
    )
    .and_then(|file| rustix::io::read(&file, &mut text))
    .unwrap_or(0);
    text.get(..read).map(|text| String::from_utf8_lossy(text).trim().to_owned()).unwrap_or_default()
}

/// Random bytes from the kernel; None only where it has none to give yet.
#[must_use]
pub fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0u8; N];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).ok()?;
    }
    Some(bytes)
}

/// Makes every file and folder this process creates readable by its owner only, whatever the umask was.
pub fn create_private_files() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Makes a write beyond the limit of a file's size an error instead of the end of this process.
#[expect(unsafe_code, reason = "no crate here sets a signal's disposition")]
pub fn survive_size_limits() {
    // SAFETY: a plain system call; no handler is set. A sender inherits it.
    let _ = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Lets tokio wait for a descriptor of our own.
///
/// # Errors
/// When the system cannot wait for this kind of descriptor, or no runtime is there.
#[expect(unsafe_code, reason = "the safe constructor is deprecated for types that may lend out a foreign descriptor")]
pub fn wakeable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is open as long as it lives and always gives the same descriptor.
    unsafe { AsyncFd::register(descriptor) }.map_err(|error| error.into_parts().1)
}

/// Waits until `input` can be read without blocking, or is at its end. False when the time is over first.
///
/// # Errors
/// What `poll` answers.
pub fn wait_readable(input: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let limit =
        Timespec { tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: limit.subsec_nanos().into() };
    let input = input.as_fd();
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut polled, Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
