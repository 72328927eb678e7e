//! The one list of settings: name, kind, default, meaning, and what else the code must know about each.
//! Data only; `docs/settings.md` is made from it and a test compares them. Decided in `docs/adr/0010-settings-precedence.md`.

use std::fmt::Write as _;

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// 1/true/yes/on or 0/false/no/off.
    Flag,
    /// A number, possibly with a fraction.
    Seconds,
    /// A whole number.
    Milliseconds,
    /// A whole number.
    Number,
    /// An absolute path; a leading `~/` is the home directory.
    Path,
    /// `http://…` or `https://…`.
    Url,
    /// `name=value` pairs, separated by commas, percent-encoded.
    Pairs,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words, separated by commas.
    Words(&'static [&'static str]),
    /// Absolute paths, separated by `:` or `,`.
    Paths,
}

/// The part of the page that a setting stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The Future AGI destination.
    FutureAgi,
    /// The OTLP destination.
    Otlp,
    /// What is written into traces.
    Trace,
    /// What is kept and where.
    Hook,
    /// Proxies.
    Proxy,
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The name, in files and environment.
    pub name: &'static str,
    /// What a value looks like.
    pub kind: Kind,
    /// What holds when it is not set; empty for nothing.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Where it is described.
    pub group: Group,
    /// Whether it selects a profile when it stands in the process environment.
    pub profile: bool,
    /// Whether its value is never shown, and hashed with a key.
    pub secret: bool,
}

/// The row of a name.
#[must_use]
pub(super) fn known(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// The known name that is written most alike, if one is near.
#[must_use]
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    SETTINGS
        .iter()
        .map(|setting| (strsim::damerau_levenshtein(name, setting.name), setting.name))
        .min()
        .filter(|(distance, _)| *distance <= 4)
        .map(|(_, known)| known)
}

const fn row(group: Group, name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Setting {
    Setting { name, kind, default, meaning, group, profile: false, secret: false }
}

impl Setting {
    const fn selects_profile(mut self) -> Self {
        self.profile = true;
        self
    }

    const fn is_secret(mut self) -> Self {
        self.secret = true;
        self
    }
}

const PROTOCOLS: Kind = Kind::Word(&["http/protobuf", "http/json", "grpc"]);
const COMPRESSIONS: Kind = Kind::Word(&["none", "gzip"]);
const AS_GENERIC: &str = "the same for traces only; goes before the one above";

/// Every setting there is.
pub const SETTINGS: &[Setting] = &[
    row(Group::FutureAgi, "FI_API_KEY", Kind::Text, "", "sent as `X-Api-Key`").selects_profile().is_secret(),
    row(Group::FutureAgi, "FI_SECRET_KEY", Kind::Text, "", "sent as `X-Secret-Key`").selects_profile().is_secret(),
    row(
        Group::FutureAgi,
        "FI_BASE_URL",
        Kind::Url,
        "",
        "the collector's origin; spans go to `$FI_BASE_URL/tracer/v1/traces`, or to the URL itself if it already ends \
         in `/v1/traces`. There is no cloud default",
    )
    .selects_profile(),
    row(
        Group::Otlp,
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        Kind::Url,
        "",
        "base URL; HTTP adds `/v1/traces`, gRPC takes host and port (and needs no scheme)",
    )
    .selects_profile(),
    row(
        Group::Otlp,
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        Kind::Url,
        "",
        "full URL, used as it is; goes before the one above",
    )
    .selects_profile(),
    row(
        Group::Otlp,
        "OTEL_EXPORTER_OTLP_HEADERS",
        Kind::Pairs,
        "",
        "request headers; a malformed pair stops the export",
    )
    .selects_profile()
    .is_secret(),
    row(
        Group::Otlp,
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        Kind::Pairs,
        "",
        "replaces the one above, is not merged with it",
    )
    .selects_profile()
    .is_secret(),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_PROTOCOL", PROTOCOLS, "http/protobuf", "transport and encoding")
        .selects_profile(),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", PROTOCOLS, "", AS_GENERIC).selects_profile(),
    row(
        Group::Otlp,
        "OTEL_EXPORTER_OTLP_TIMEOUT",
        Kind::Milliseconds,
        "10000",
        "time limit of a request; `FI_HOOK_TIMEOUT` goes before it; 0 means the longest there is, 5 minutes",
    ),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", Kind::Milliseconds, "", AS_GENERIC),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_COMPRESSION", COMPRESSIONS, "none", "of request bodies").selects_profile(),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", COMPRESSIONS, "", AS_GENERIC).selects_profile(),
    row(
        Group::Otlp,
        "OTEL_EXPORTER_OTLP_CERTIFICATE",
        Kind::Path,
        "",
        "PEM file with the only authorities to trust, instead of the system's and Mozilla's; also for Future AGI",
    )
    .selects_profile(),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", Kind::Path, "", AS_GENERIC).selects_profile(),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_CLIENT_KEY", Kind::Path, "", "PEM file, for mutual TLS; also for Future AGI")
        .selects_profile(),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", Kind::Path, "", AS_GENERIC).selects_profile(),
    row(
        Group::Otlp,
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
        Kind::Path,
        "",
        "PEM file, for mutual TLS; also for Future AGI",
    )
    .selects_profile(),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", Kind::Path, "", AS_GENERIC).selects_profile(),
    row(
        Group::Otlp,
        "OTEL_EXPORTER_OTLP_INSECURE",
        Kind::Flag,
        "0",
        "a gRPC endpoint without a scheme means `http://`; never turns TLS off where the endpoint says `https://`",
    )
    .selects_profile(),
    row(Group::Otlp, "OTEL_EXPORTER_OTLP_TRACES_INSECURE", Kind::Flag, "", AS_GENERIC).selects_profile(),
    row(Group::Trace, "FI_PROJECT_NAME", Kind::Text, "antigravity-sessions", "resource attribute `project_name`")
        .selects_profile(),
    row(Group::Trace, "OTEL_SERVICE_NAME", Kind::Text, "antigravity-cli", "resource attribute `service.name`")
        .selects_profile(),
    row(
        Group::Trace,
        "OTEL_RESOURCE_ATTRIBUTES",
        Kind::Pairs,
        "",
        "more resource attributes; a malformed pair voids it",
    )
    .selects_profile(),
    row(Group::Trace, "FI_HOOK_USER_ID", Kind::Text, "", "attribute `user.id` of every span").selects_profile(),
    row(
        Group::Trace,
        "FI_HOOK_SESSION_SPAN",
        Kind::Word(&["update", "once", "first", "none"]),
        "update for Future AGI, else once",
        "when the session root is sent: again at each turn's end, at the session's end, with the first spans, never",
    )
    .selects_profile(),
    row(
        Group::Trace,
        "FI_HOOK_SPAN_NAMES",
        Kind::Word(&["friendly", "semconv"]),
        "friendly",
        "`Antigravity turn`, `Model call`, … or `invoke_agent antigravity`, `chat {model}`, …",
    )
    .selects_profile(),
    row(
        Group::Hook,
        "FI_HOOK_CAPTURE_CONTENT",
        Kind::Words(&["args", "errors", "prompts", "outputs", "results"]),
        "0",
        "content to capture, redacted and cut; `1` for all of it, `0` for none",
    ),
    row(
        Group::Hook,
        "FI_HOOK_DIGEST",
        Kind::Flag,
        "0",
        "keyed digests of arguments and errors, with or without their content",
    ),
    row(Group::Hook, "FI_HOOK_LOG_FILE", Kind::Path, "", "a line per event and per export; never content or keys"),
    row(
        Group::Hook,
        "FI_HOOK_TIMEOUT",
        Kind::Seconds,
        "10",
        "time limit of a request, connecting included, at most 300",
    ),
    row(Group::Hook, "FI_HOOK_DISABLED", Kind::Flag, "0", "switches everything off"),
    row(Group::Hook, "OTEL_SDK_DISABLED", Kind::Flag, "0", "the same, by the standard name"),
    row(
        Group::Hook,
        "FI_HOOK_SURFACES",
        Kind::Words(&["cli", "ide", "desktop"]),
        "cli,ide",
        "the products whose conversations are kept",
    ),
    row(
        Group::Hook,
        "FI_HOOK_EXCLUDE_PATHS",
        Kind::Paths,
        "",
        "conversations of a workspace in these folders are dropped",
    ),
    row(
        Group::Hook,
        "FI_HOOK_STATE_DIR",
        Kind::Path,
        "",
        "where queue and store lie, instead of the user's state folder",
    ),
    row(Group::Hook, "FI_HOOK_CONFIG", Kind::Path, "", "the settings file; counts only in the process environment")
        .selects_profile(),
    row(Group::Hook, "FI_HOOK_IDLE_SECONDS", Kind::Number, "10", "how long an idle sender lingers, at most 3600"),
    row(
        Group::Hook,
        "FI_HOOK_SESSION_IDLE_MINUTES",
        Kind::Number,
        "60",
        "after how long without an event a session ends whose agent cannot be watched, 1 to 10080",
    ),
    row(
        Group::Hook,
        "FI_HOOK_MAX_MB",
        Kind::Number,
        "256",
        "bound of the state folder, 1 to 1048576; the oldest goes first",
    ),
    row(Group::Hook, "FI_HOOK_MAX_DAYS", Kind::Number, "7", "bound of the age of queued spans, 1 to 3650"),
    row(
        Group::Proxy,
        "HTTPS_PROXY",
        Kind::Url,
        "",
        "proxy for `https://` destinations, as `http://user:password@host:port`",
    )
    .is_secret(),
    row(Group::Proxy, "HTTP_PROXY", Kind::Url, "", "proxy for `http://` destinations").is_secret(),
    row(Group::Proxy, "ALL_PROXY", Kind::Url, "", "proxy where the one of the scheme is not set").is_secret(),
    row(
        Group::Proxy,
        "NO_PROXY",
        Kind::Text,
        "",
        "hosts, domains, addresses and networks that are reached directly, separated by commas; `*` for all",
    ),
];

impl Kind {
    fn shown(self) -> String {
        let words = |all: &[&str]| all.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        match self {
            Self::Text => "text".into(),
            Self::Flag => "flag".into(),
            Self::Seconds => "seconds".into(),
            Self::Milliseconds => "milliseconds".into(),
            Self::Number => "number".into(),
            Self::Path => "path".into(),
            Self::Url => "URL".into(),
            Self::Pairs => "pairs".into(),
            Self::Paths => "paths".into(),
            Self::Word(all) => format!("one of {}", words(all)),
            Self::Words(all) => format!("some of {}", words(all)),
        }
    }
}

const PAGE_START: &str = include_str!("settings_page.md");

/// The text of `docs/settings.md`.
#[must_use]
pub fn settings_page() -> String {
    let mut page = PAGE_START.to_owned();
    for (group, title) in [
        (Group::FutureAgi, "Future AGI"),
        (Group::Otlp, "Any OTLP endpoint"),
        (Group::Trace, "What is written into traces"),
        (Group::Hook, "What is kept, and where"),
        (Group::Proxy, "Proxies (upper or lower case)"),
    ] {
        let _ = write!(page, "\n## {title}\n\n| setting | value | default | meaning |\n|---|---|---|---|\n");
        for setting in SETTINGS.iter().filter(|setting| setting.group == group) {
            let default = if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
            let mark = if setting.profile { " †" } else { "" };
            let (name, kind) = (setting.name, setting.kind.shown());
            let _ = writeln!(page, "| `{name}`{mark} | {kind} | {default} | {} |", setting.meaning);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_what_is_secret_is_so() {
        for (at, setting) in SETTINGS.iter().enumerate() {
            assert!(!SETTINGS[..at].iter().any(|other| other.name == setting.name), "{}", setting.name);
            let looks_secret = ["KEY", "HEADERS"].iter().any(|part| setting.name.ends_with(part))
                && !matches!(setting.kind, Kind::Path);
            assert!(setting.secret || !looks_secret, "{}", setting.name);
        }
    }

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        for (slip, meant) in [
            ("FI_HOOK_TIMOUT", Some("FI_HOOK_TIMEOUT")),
            ("FI_APIKEY", Some("FI_API_KEY")),
            ("FI_BASE_ULR", Some("FI_BASE_URL")),
            ("FI_HOOK_CAPTURE", None),
            ("FI_HIDE_EMBEDDING_VECTORS", None),
        ] {
            assert_eq!(nearest(slip), meant, "{slip}");
        }
    }
}
