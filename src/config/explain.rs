//! Which setting came from where, for `status` and `doctor`; not run in the hook. Pure; never shows a secret.
//! Decided in `docs/adr/0010-settings-precedence.md`.

use super::lookup::{FUTURE_AGI, Lookup};
use super::registry::SETTINGS;
use super::{Destination, Settings, Source, Sources};

/// A setting that stands somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub source: Source,
    /// Its value; None for keys, headers and proxies.
    pub value: Option<String>,
    /// What becomes of it.
    pub state: State,
}

/// What becomes of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is in force.
    Used,
    /// A stronger source sets the same name.
    Shadowed,
    /// It is ambient, and a file or FI_* names a destination.
    Ambient,
    /// It belongs to a destination that another one goes before.
    OtherDestination,
}

/// Every known setting that is set, with what becomes of it; names in the order of the registry, strongest source first.
#[must_use]
pub fn explain(sources: &Sources, settings: &Settings) -> Vec<Row> {
    let lookup = Lookup::new(sources);
    let mut rows = Vec::new();
    for setting in SETTINGS {
        let winner = lookup.find(&[setting.name]).map(|found| found.source);
        for source in [Source::Managed, Source::Environment, Source::File, Source::Ambient] {
            let Some(value) = lookup.at(source, setting.name) else { continue };
            let state = if source == Source::Ambient && !lookup.ambient {
                State::Ambient
            } else if winner != Some(source) {
                State::Shadowed
            } else if is_of_another_destination(setting.name, settings) {
                State::OtherDestination
            } else {
                State::Used
            };
            let shown = || crate::export::endpoint::without_query(value).to_owned();
            rows.push(Row { name: setting.name, source, value: (!setting.secret).then(shown), state });
        }
    }
    rows
}

fn is_of_another_destination(name: &str, settings: &Settings) -> bool {
    match settings.destination {
        Destination::FutureAgi { .. } | Destination::Incomplete { .. } => {
            name.contains("_OTLP_") && !name.contains("CERTIFICATE") && !name.contains("CLIENT_KEY")
        }
        Destination::Otlp { .. } => FUTURE_AGI.contains(&name),
        Destination::None { .. } | Destination::Invalid { .. } => false,
    }
}
