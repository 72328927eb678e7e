//! Finds account names in paths to home folders: `/home/x`, `/Users/x`, `C:\Users\x`, as WSL, Git Bash and addresses write them.
//! May not take a path of the web for one: what stands before it must begin a path.

use super::bytes::{before, byte, part, run, stands};
use super::steps::look;

/// What folders of homes are called, with what parts them left out.
const HOMES: &[&str] = &["home", "users"];
/// What may stand before one that does not begin the path.
const PARENTS: &[&str] =
    &["/var", "/usr", "/export", "/data", "/host", "/host_mnt", "/rootfs", "/mnt", "/private", "/net", "/file"];
/// Names that are nobody's. The first two are folders of homes again.
const NOBODY: &[&str] = &["home", "users", "shared", "public", "default", "linuxbrew", "all"];

/// The name of an account in the path whose separator is at `at`.
pub(super) fn account(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let separator = byte(bytes, at);
    let next = byte(bytes, at + 1);
    if before(bytes, at) == separator || !(next == separator || matches!(next, b'h' | b'H' | b'u' | b'U')) {
        return None;
    }
    let folder = run(bytes, at, |byte| byte == separator);
    let home = HOMES.iter().find(|home| stands(bytes, folder, home))?;
    if separator == b'/'
        && !(part(bytes, folder, folder + 4) == b"home"
            || stands(bytes, folder, "users") && is_upper_or_drive(bytes, at, folder))
    {
        return None;
    }
    let after = folder + home.len();
    let start = run(bytes, after, |byte| matches!(byte, b'/' | b'\\'));
    if start == after || start > after + 8 || !begins(bytes, at, separator) {
        return None;
    }
    let end = name_end(bytes, start, separator == b'\\' || drive(bytes, at));
    let name = part(bytes, start, end);
    let nobody = NOBODY.iter().any(|nobody| name.eq_ignore_ascii_case(nobody.as_bytes()));
    (!name.is_empty() && !nobody && name.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()))
        .then_some((start, end))
}

/// `/Users` is macOS, `/users` is a page; after a drive it is either way Windows.
fn is_upper_or_drive(bytes: &[u8], at: usize, folder: usize) -> bool {
    byte(bytes, folder) == b'U' || drive(bytes, at)
}

/// Whether `C:` or `/c` stands there.
fn drive(bytes: &[u8], at: usize) -> bool {
    match at.checked_sub(2).and_then(|start| bytes.get(start..at)) {
        Some([letter, b':']) => letter.is_ascii_alphabetic(),
        Some([b'/', letter]) => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Whether a path can begin at `at`, or be reached from its root.
fn begins(bytes: &[u8], at: usize, separator: u8) -> bool {
    let last = before(bytes, at);
    look(4);
    if separator == b'\\' {
        return true;
    }
    // What was a name that does not end there.
    if part(bytes, at.saturating_sub(6), at) == b"<user>" {
        return false;
    }
    if !(last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-' | b'.' | b'}' | b')' | b'*' | b'~' | b'@'))
        || drive(bytes, at)
    {
        return true;
    }
    let head = part(bytes, at.saturating_sub(12), at);
    PARENTS.iter().any(|parent| {
        let root = head.len().checked_sub(parent.len());
        root.is_some_and(|root| stands(head, root, parent) && !before(head, root).is_ascii_alphanumeric())
    })
}

/// Where the name ends. On Windows it may have blanks, if a separator follows.
fn name_end(bytes: &[u8], start: usize, windows: bool) -> usize {
    let ends = |byte: u8| {
        byte.is_ascii_control()
            || matches!(
                byte,
                b'/' | b'\\'
                    | b':'
                    | b'*'
                    | b'?'
                    | b'"'
                    | b'\''
                    | b'`'
                    | b'<'
                    | b'>'
                    | b'|'
                    | b';'
                    | b','
                    | b'('
                    | b')'
                    | b'['
                    | b']'
                    | b'{'
                    | b'}'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'='
                    | b'#'
                    | b'!'
            )
    };
    if windows {
        let end = run(part(bytes, 0, start + 48), start, |byte| !ends(byte));
        if matches!(byte(bytes, end), b'/' | b'\\') {
            return end;
        }
    }
    let end = run(bytes, start, |byte| !ends(byte) && byte != b' ');
    // A full stop after it is the sentence's.
    if before(bytes, end) == b'.' && end > start + 1 { end - 1 } else { end }
}
