//! Reads the payload, however it comes: in pieces, far too long, never ending, not at all.
//!
//! Ends at the payload's closing brace or at the end of the input, then takes what is there already, so that the agent
//! never writes into a closed pipe. Gives up after [`QUIET`] without a byte and [`TOTAL`] in all.

use std::time::{Duration, Instant};

use crate::hosts::{Progress, Scan};
use crate::sys;

/// Longest wait for the next byte.
const QUIET: Duration = Duration::from_secs(1);
/// Longest stay here in all; agy's own limit for our hooks is 10 s.
const TOTAL: Duration = Duration::from_secs(5);
/// Bytes read at a time. A buffer of what a pipe holds (64 KiB) costs sixteen page faults, whether on the stack, which is
/// probed page by page, or on the heap, where it takes two system calls: 5 % of a hook that reads 600 bytes.
const PIECE: usize = 8 * 1024;

/// Feeds `scan` with standard input; without one the input is only taken away.
pub(super) fn read(mut scan: Option<&mut (dyn Scan + 'static)>) {
    let input = rustix::stdio::stdin();
    let begun = Instant::now();
    let mut piece = [std::mem::MaybeUninit::uninit(); PIECE];
    let mut progress = if scan.is_some() { Progress::More } else { Progress::Invalid };
    loop {
        let left = TOTAL.saturating_sub(begun.elapsed());
        let limit = if progress == Progress::Complete { Duration::ZERO } else { QUIET.min(left) };
        if left.is_zero() || !sys::wait_readable(input, limit).unwrap_or(false) {
            return;
        }
        let bytes = match rustix::io::read(input, &mut piece) {
            Ok(([], _)) => return,
            Ok((bytes, _)) => bytes,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
            Err(_) => return,
        };
        if progress == Progress::More
            && let Some(scan) = scan.as_deref_mut()
        {
            progress = scan.feed(bytes);
        }
    }
}
