//! The name of a profile: `default`, or a hash of the settings in the process environment that say where and as what
//! spans are sent. Pure; the key of the keyed hash is the caller's. Decided in `docs/adr/0014-profiles.md`.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::lookup::{ENDPOINTS, FUTURE_AGI, Lookup};
use super::registry::SETTINGS;
use super::{Destination, Settings, Source, Sources};

/// The profile of those who set nothing in their environment.
pub const DEFAULT_PROFILE: &str = "default";

/// The profile of this process environment: [`DEFAULT_PROFILE`] or 32 hex digits.
///
/// `key` is asked for only when a key or header stands there. Without one such a value enters by its name only, so two
/// environments that differ in nothing but a key then share a profile.
#[must_use]
pub fn profile(sources: &Sources, settings: &Settings, key: impl FnOnce() -> Option<[u8; 32]>) -> String {
    let mut counting: Vec<_> = counting(sources, settings).collect();
    if counting.is_empty() {
        return DEFAULT_PROFILE.to_owned();
    }
    counting.sort_unstable();
    let key = if counting.iter().any(|(_, _, secret)| *secret) { key() } else { None };
    let mut hash = Sha256::new();
    for (name, value, secret) in counting {
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(name.as_bytes());
        match (secret, key) {
            (false, _) => add(value.as_bytes()),
            (true, Some(key)) => add(&keyed(key, value)),
            (true, None) => add(b""),
        }
    }
    hash.finalize().iter().take(16).fold(String::with_capacity(32), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

fn keyed(key: [u8; 32], value: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(&key).map(|mac| mac.chain_update(value));
    // HMAC takes keys of every length, so there is always a code.
    mac.map(|mac| mac.finalize().into_bytes().to_vec()).unwrap_or_default()
}

/// Name, value and whether it is secret of each setting that stands in the process environment, selects a profile, and
/// is in force: not overridden by the managed file, not ambient while ambient ones are ignored, and not of a
/// destination that another one goes before.
fn counting<'a>(
    sources: &'a Sources,
    settings: &Settings,
) -> impl Iterator<Item = (&'static str, &'a str, bool)> + use<'a> {
    let lookup = Lookup::new(sources);
    let future_agi = !matches!(settings.destination, Destination::Otlp { .. });
    let otlp = !matches!(settings.destination, Destination::FutureAgi { .. } | Destination::Incomplete { .. });
    SETTINGS.iter().filter(|setting| setting.profile).filter_map(move |setting| {
        let found = lookup.find(&[setting.name])?;
        let in_force = if FUTURE_AGI.contains(&setting.name) {
            future_agi
        } else {
            otlp || !(ENDPOINTS.contains(&setting.name) || setting.name.contains("_OTLP_"))
        };
        let here = matches!(found.source, Source::Environment | Source::Ambient);
        (here && in_force).then_some((setting.name, found.value, setting.secret))
    })
}
