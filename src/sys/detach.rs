//! Starts a child that outlives us and shares nothing with the agent: own session, no descriptor of ours but the lock,
//! working folder `/`, an environment of the caller's choice.
//!
//! A plain `fork` from this single-threaded process is the cheapest way that was measured (0.1 ms; `Command` with
//! `pre_exec` 0.3 ms), and the only one that does not wait for the child's exec.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

/// Starts this very program as `argv`, with `lock` as its standard input and `environment` as its only one.
///
/// Returns at once; the child reports nothing. If it cannot be started, the lock is free again when it ends.
///
/// # Errors
/// When there is no process to be had, or a word holds a zero byte.
pub fn spawn_detached(lock: BorrowedFd<'_>, argv: &[&str], environment: &[(&OsStr, &OsStr)]) -> io::Result<u32> {
    let argv: Vec<CString> = argv.iter().map(|word| CString::new(*word)).collect::<Result<_, _>>()?;
    let environment: Vec<CString> = environment
        .iter()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<_, _>>()?;
    // For systems without `/proc`; found before the fork, since it allocates.
    let path = std::env::current_exe().ok().and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    let argv = pointers(&argv);
    let environment = pointers(&environment);
    fork_and_exec(lock, path.as_deref(), &argv, &environment)
}

/// The form execve wants: ends with a null pointer. Valid as long as `words`.
fn pointers(words: &[CString]) -> Vec<*const libc::c_char> {
    words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect()
}

#[expect(unsafe_code, reason = "fork and exec have no safe form that does not wait for the child")]
fn fork_and_exec(
    lock: BorrowedFd<'_>,
    path: Option<&CStr>,
    argv: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> io::Result<u32> {
    // SAFETY: the hook process has one thread, so the child may use everything; it calls only async-signal-safe
    // functions all the same, and leaves by exec or _exit.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: every pointer comes from a live CString of the caller, and both lists end with a null pointer.
            unsafe { become_sender(lock.as_raw_fd(), path, argv, environment) }
        }
        pid => Ok(pid.unsigned_abs()),
    }
}

/// # Safety
/// In a child just forked; `argv` and `environment` end with a null pointer.
#[expect(unsafe_code, reason = "runs between fork and exec")]
unsafe fn become_sender(
    lock: libc::c_int,
    path: Option<&CStr>,
    argv: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> ! {
    // SAFETY: plain system calls on descriptors of this process.
    unsafe {
        libc::setsid();
        libc::dup2(lock, 0);
        // First, so that there is a descriptor to be had however few the limit leaves.
        close_from_3();
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        if null < 0 || libc::dup2(null, 1) < 0 || libc::dup2(null, 2) < 0 {
            // The agent waits for the end of its pipe. The runtime of what is started opens something in their place.
            libc::close(1);
            libc::close(2);
        }
        if null > 2 {
            libc::close(null);
        }
        libc::chdir(c"/".as_ptr());
        // An agent may block signals in the threads it starts hooks from; SIGTERM must reach the sender.
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        #[cfg(target_os = "linux")]
        libc::execve(c"/proc/self/exe".as_ptr(), argv.as_ptr(), environment.as_ptr());
        if let Some(path) = path {
            libc::execve(path.as_ptr(), argv.as_ptr(), environment.as_ptr());
        }
        libc::_exit(127)
    }
}

/// A descriptor the agent left open, kept by a sender, would make the agent wait for it (field report 24).
///
/// # Safety
/// In a child just forked.
#[expect(unsafe_code, reason = "no crate here offers close_range")]
unsafe fn close_from_3() {
    // SAFETY: nothing of this process uses a descriptor above 2 any more.
    unsafe {
        #[cfg(target_os = "linux")]
        if libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, 0 as libc::c_uint) == 0 {
            return;
        }
        let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536);
        for descriptor in 3..libc::c_int::try_from(most).unwrap_or(65_536) {
            libc::close(descriptor);
        }
    }
}
