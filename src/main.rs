//! The program: `hook` is taken before any argument parser, the rest is `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.split_first() {
        Some((command, rest)) if command == "hook" => {
            fi_hook_to_otlp::commands::hook::run(rest);
            ExitCode::SUCCESS
        }
        _ => fi_hook_to_otlp::cli::run(),
    }
}
