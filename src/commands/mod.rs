//! One thin file per subcommand.

pub mod demo;
pub mod hook;
pub mod install;
pub mod send;
pub mod show;
