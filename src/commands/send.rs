//! `send --profile P`: internal; what hooks start in the background.

use anyhow::Context;

/// Runs the sender of a profile.
///
/// # Errors
/// When its folder or store cannot be used; the sender's log has the same line.
pub fn run(profile: &str) -> anyhow::Result<()> {
    crate::sender::send(profile).with_context(|| format!("cannot send for profile {profile}"))
}
