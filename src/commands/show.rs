//! `show`: prints a stored conversation as a tree, from all profiles.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, bail};

use crate::config::{self, sources};
use crate::store::{ConversationRow, Store};
use crate::tree::{self, Style};

const NOTHING: &str = "nothing recorded yet: see README.md, \"Nothing arrives\"";

/// Prints one conversation, the newest one by default, or the list of all.
///
/// # Errors
/// When there is no state folder, no such conversation, or a store cannot be read.
pub fn run(conversation: Option<&str>, list: bool) -> anyhow::Result<()> {
    let settings = config::resolve(&sources::gather());
    let options = settings.options();
    let mut found = Vec::new();
    let root =
        sources::state_dir(&settings).context("no state folder: set HOME, XDG_STATE_HOME or FI_HOOK_STATE_DIR")?;
    for (profile, folder) in super::profiles(&root) {
        let store = Store::open_read_only(&folder).with_context(|| format!("cannot read profile {profile}"))?;
        if let Some(store) = store {
            for row in store.conversations_like(conversation.unwrap_or_default())? {
                found.push((profile.clone(), store.spans(&row.id)?, row));
            }
        }
    }
    found.sort_by_key(|(_, _, row)| std::cmp::Reverse(row.last_event_ns));
    let mut out = std::io::stdout().lock();
    if list && found.is_empty() {
        bail!(NOTHING);
    }
    if list {
        for (profile, spans, row) in &found {
            writeln!(out, "{}", summary(profile, spans.len(), row))?;
        }
        return Ok(());
    }
    match (found.first(), conversation) {
        (Some((_, spans, row)), _) => {
            let waiting = spans.iter().filter(|span| span.outcome.is_none()).count();
            let mut all: Vec<_> = spans.iter().map(|span| span.span.clone()).collect();
            all.extend(row.state.preview(&options));
            write!(out, "{}", tree::render(&row.resource, &all, Style::BRIEF))?;
            if waiting > 0 {
                let why = match settings.destination.route() {
                    Some(_) => "wait to be delivered",
                    None => "are in the local store only, since no destination is set",
                };
                writeln!(out, "{waiting} of {} spans {why}", spans.len())?;
            }
            Ok(())
        }
        (None, Some(id)) => bail!("no conversation {id}: see `fi-hook-to-otlp show --list`"),
        (None, None) => bail!(NOTHING),
    }
}

fn summary(profile: &str, spans: usize, row: &ConversationRow) -> String {
    let last = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(row.last_event_ns));
    let state = if row.state.is_open() { "open" } else { "ended" };
    format!("{}  {last}  {spans} spans  {state}  profile {profile}", row.id)
}
