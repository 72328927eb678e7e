//! One thin file per subcommand.

pub mod hook;
pub mod send;
pub mod show;
