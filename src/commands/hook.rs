//! `hook <host> <Event>`: answers the agent, then observes. Taken before any argument parser: a usage error would exit
//! with 2, which agents read as a veto. Always exits 0.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::panic::catch_unwind;

use crate::capture;
use crate::hosts;

/// Runs the hook with the words after `hook`; words it does not know are passed over, so that an older binary survives
/// a newer hooks.json.
pub fn run(arguments: &[OsString]) {
    let mut words = arguments.iter().map(OsString::as_os_str);
    let host = words.next().and_then(OsStr::to_str).and_then(hosts::find);
    let event = words.next().map(OsStr::to_string_lossy).unwrap_or_default();
    let reply_option = words.skip_while(|word| *word != "--reply").nth(1).and_then(OsStr::to_str);
    let Some(host) = host else {
        return complain(&"usage: fi-hook-to-otlp hook antigravity <Event>");
    };
    crate::sys::survive_size_limits();
    answer(host.reply(&event, reply_option));
    // The reply is out; a bug from here on must not reach the agent as an exit code.
    match catch_unwind(|| capture::observe(host, &event)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => complain(&error),
        Err(_) => complain(&"bug: the event was not recorded"),
    }
}

/// Writes the reply, whatever the state of the descriptor: without a reader there is nobody to answer.
fn answer(mut reply: &[u8]) {
    while !reply.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), reply) {
            Ok(written) if written > 0 => reply = reply.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

/// One line on stderr; unlike `eprintln!` it does not panic when nobody can read it.
fn complain(what: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "fi-hook-to-otlp: {what}");
}
