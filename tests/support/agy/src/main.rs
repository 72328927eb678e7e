//! The `agy` stand-in; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    agy_stand_in::cli::main()
}
