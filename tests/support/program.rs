//! Files that are run: written by a process of its own. A file that this one has open for writing may be open in a process
//! that another test is just starting, until it is that other program, and "text file busy" is all its runner gets.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a file that will be run; its mode is the caller's.
pub(crate) fn write_program(path: &Path, bytes: impl AsRef<[u8]>) {
    let mut writer = Command::new("sh");
    writer.args(["-c", r#"cat >"$0""#]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(bytes.as_ref()).unwrap();
    assert!(writer.wait().unwrap().success(), "cannot write {}", path.display());
}

/// Copies a file that will be run.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "cannot write {}", to.display());
}
