//! The environment a detached sender gets: an allow-list, with ambient OTEL_* under a prefix of ours, because the OTLP
//! crates read `OTEL_EXPORTER_OTLP_HEADERS` and `_COMPRESSION` behind our back.
//! Pure; decided in `docs/adr/0013-sender-environment.md`.

use std::ffi::OsString;

/// Stands in front of the name of an OTEL_* variable in a sender's environment.
pub const AMBIENT_PREFIX: &str = "FI_HOOK_AMBIENT_";

const NAMES: [&str; 3] = ["HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"];
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// The variables that a sender gets, from those of the hook process.
///
/// PATH is left out, since a sender starts nothing but itself; TZ and LANG, since it writes UTC and English.
#[must_use]
pub fn sender_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    variables
        .into_iter()
        .filter_map(|(name, value)| {
            let text = name.to_str()?;
            if text.starts_with("OTEL_") {
                Some((OsString::from(format!("{AMBIENT_PREFIX}{text}")), value))
            } else if text.starts_with("FI_") || text.starts_with("XDG_") || NAMES.contains(&text) || is_proxy(text) {
                Some((name, value))
            } else {
                None
            }
        })
        .collect()
}

fn is_proxy(name: &str) -> bool {
    PROXIES.iter().any(|proxy| *proxy == name || proxy.to_ascii_lowercase() == name)
}

/// Gives OTEL_* variables their own names back; those that already have them go first.
#[must_use]
pub fn from_sender_environment(mut variables: Vec<(String, String)>) -> Vec<(String, String)> {
    for index in 0..variables.len() {
        let Some((name, _)) = variables.get(index) else { continue };
        let Some(own) = name.strip_prefix(AMBIENT_PREFIX).map(str::to_owned) else { continue };
        let taken = variables.iter().any(|(name, _)| *name == own);
        if let Some((name, _)) = variables.get_mut(index).filter(|_| !taken) {
            *name = own;
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_passes_and_otel_changes_its_name() {
        let given = [
            "HOME",
            "PATH",
            "LD_PRELOAD",
            "FI_API_KEY",
            "XDG_STATE_HOME",
            "https_proxy",
            "NO_PROXY",
            "Http_Proxy",
            "SSL_CERT_FILE",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "GEMINI_API_KEY",
            "TZ",
        ];
        let kept = sender_environment(given.iter().map(|name| (OsString::from(name), OsString::from("v"))));
        let names: Vec<_> = kept.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        let expected = [
            "HOME",
            "FI_API_KEY",
            "XDG_STATE_HOME",
            "https_proxy",
            "NO_PROXY",
            "SSL_CERT_FILE",
            "FI_HOOK_AMBIENT_OTEL_EXPORTER_OTLP_HEADERS",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_way_there_and_back_is_the_identity() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let original = vec![pair("OTEL_SERVICE_NAME", "a"), pair("FI_API_KEY", "b")];
        let there = sender_environment(original.iter().map(|(name, value)| (name.into(), value.into())));
        let there = there.into_iter().map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()));
        assert_eq!(from_sender_environment(there.collect()), original);
        let both = vec![pair("FI_HOOK_AMBIENT_OTEL_X", "old"), pair("OTEL_X", "new")];
        assert_eq!(from_sender_environment(both.clone()), both);
    }
}
