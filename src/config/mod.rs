//! What the user asked for: [`resolve`] turns the text of files and environment into [`Settings`], without fail.
//! Pure but for `sources`, the one edge file that reads them; runs inside the hook, so it may not be slow, expand
//! variables or touch the network. Decided in `docs/adr/0010-settings-precedence.md`.

mod destination;
mod explain;
mod file;
mod lookup;
mod otel_env;
mod profile;
mod registry;
mod resolve;
pub mod sources;
mod values;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::conversation::{Options, SessionSpan, SpanNames};
pub use crate::event::Wanted;
use crate::event::{Origin, Surface};
pub use crate::export::endpoint::Protocol;

pub use explain::{Row, State, explain};
pub use file::EnvFile;
pub use otel_env::{AMBIENT_PREFIX, from_sender_environment, sender_environment};
pub use profile::{DEFAULT_PROFILE, profile};
pub use registry::{Kind, SETTINGS, Setting, settings_page};
pub use resolve::resolve;

/// Everything that settings are read from, as text.
#[derive(Clone, Default)]
pub struct Sources {
    /// The administrator's file; the edge leaves it out unless root alone can write it.
    pub managed: Option<EnvFile>,
    /// The process environment, lossily decoded; names that nobody reads may be left out.
    pub environment: Vec<(String, String)>,
    /// The user's settings file.
    pub file: Option<EnvFile>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Sources")
            .field("managed", &self.managed)
            .field("environment", &names)
            .field("file", &self.file)
            .finish()
    }
}

/// A value that `Debug` and messages never show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the request that needs it and nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Where a value came from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The administrator's file.
    Managed,
    /// FI_* and proxies of the process environment.
    Environment,
    /// The user's settings file.
    File,
    /// OTEL_* of the process environment.
    Ambient,
}

impl Source {
    /// The words used in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed file",
            Self::Environment => "environment",
            Self::File => "settings file",
            Self::Ambient => "ambient environment",
        }
    }
}

/// A setting that could not be used as it stands; never holds a value, since values may be keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting, or the file and line.
    pub name: String,
    /// Where it stands.
    pub source: Source,
    /// What is wrong, and what to change.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name, self.source.as_str(), self.text)
    }
}

/// Request body compression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compression {
    /// As it is.
    #[default]
    None,
    /// gzip.
    Gzip,
}

/// Files for TLS, all PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// The only authorities to trust; None: the system's and Mozilla's.
    pub certificate: Option<PathBuf>,
    /// Private key for mutual TLS.
    pub client_key: Option<PathBuf>,
    /// Certificate chain for mutual TLS.
    pub client_certificate: Option<PathBuf>,
}

/// Proxy settings as written; a proxy's URL may hold a password.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// HTTP_PROXY: for `http://` destinations.
    pub http: Option<Secret>,
    /// HTTPS_PROXY: for `https://` destinations.
    pub https: Option<Secret>,
    /// ALL_PROXY: where the one above is not set.
    pub all: Option<Secret>,
    /// NO_PROXY: hosts, domains and networks that are reached directly.
    pub no: Option<String>,
}

/// How to reach a destination.
#[derive(Clone, PartialEq, Eq)]
pub struct Route {
    /// The URL that is posted to; for gRPC scheme, host and port. A query may hold a key: show it with [`Route::shown`].
    pub url: String,
    /// For a whole request, connecting included.
    pub timeout: Duration,
    /// Files for TLS.
    pub tls: Tls,
    /// Proxies.
    pub proxies: Proxies,
}

impl Route {
    /// The URL without its query, for messages.
    #[must_use]
    pub fn shown(&self) -> &str {
        crate::export::endpoint::without_query(&self.url)
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("url", &self.shown())
            .field("timeout", &self.timeout)
            .field("tls", &self.tls)
            .field("proxies", &self.proxies)
            .finish()
    }
}

/// Where spans go: one place, never two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere: spans stay in the local store.
    None {
        /// Why, in plain words.
        reason: String,
    },
    /// A Future AGI collector: always HTTP/protobuf, uncompressed.
    FutureAgi {
        /// Ends in `/v1/traces`.
        route: Route,
        /// X-Api-Key.
        api_key: Secret,
        /// X-Secret-Key.
        secret_key: Secret,
    },
    /// Any OTLP endpoint.
    Otlp {
        /// The final URL.
        route: Route,
        /// Transport and encoding.
        protocol: Protocol,
        /// Names are lower case; a later one of the same name replaces an earlier one.
        headers: Vec<(String, Secret)>,
        /// Compression of the request body.
        compression: Compression,
    },
    /// Future AGI is configured in part.
    Incomplete {
        /// The names of the settings that are missing.
        missing: Vec<&'static str>,
    },
    /// A destination is named, but cannot be used.
    Invalid {
        /// What is wrong, and what to change; no values.
        reason: String,
    },
}

impl Destination {
    /// How to reach it, if there is anything to reach.
    #[must_use]
    pub const fn route(&self) -> Option<&Route> {
        match self {
            Self::FutureAgi { route, .. } | Self::Otlp { route, .. } => Some(route),
            Self::None { .. } | Self::Incomplete { .. } | Self::Invalid { .. } => None,
        }
    }

    /// Whether request bodies are compressed.
    #[must_use]
    pub const fn is_compressed(&self) -> bool {
        matches!(self, Self::Otlp { compression: Compression::Gzip, .. })
    }

    /// The same destination with uncompressed bodies, for a receiver that cannot unpack gzip.
    #[must_use]
    pub fn without_compression(mut self) -> Self {
        if let Self::Otlp { compression, .. } = &mut self {
            *compression = Compression::None;
        }
        self
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None { reason } => write!(f, "none: {reason}"),
            Self::FutureAgi { route, .. } => write!(f, "Future AGI at {}", route.shown()),
            Self::Otlp { route, protocol, .. } => write!(f, "OTLP ({}) at {}", protocol.as_str(), route.shown()),
            Self::Incomplete { missing } => write!(f, "Future AGI, incomplete: set {}", missing.join(", ")),
            Self::Invalid { reason } => write!(f, "unusable: {reason}"),
        }
    }
}

/// The settings in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where spans go.
    pub destination: Destination,
    /// What belongs to the data and is frozen per conversation.
    pub origin: Origin,
    /// The setting that switches everything off, if one does.
    pub disabled: Option<&'static str>,
    /// The products whose conversations are kept.
    pub surfaces: Vec<Surface>,
    /// Absolute folders; conversations of a workspace in one of them are dropped.
    pub exclude_paths: Vec<String>,
    /// FI_HOOK_SESSION_SPAN as set; see [`Settings::session_span`].
    pub session_span_set: Option<SessionSpan>,
    /// How spans are named.
    pub span_names: SpanNames,
    /// Which content the user wants captured.
    pub capture: Wanted,
    /// Keyed digests of arguments and errors.
    pub digest: bool,
    /// The log with a line per event and export; absolute.
    pub log_file: Option<PathBuf>,
    /// For one export request.
    pub timeout: Duration,
    /// FI_HOOK_STATE_DIR; None means the place that [`sources::state_dir`] finds.
    pub state_dir: Option<PathBuf>,
    /// How long an idle sender lingers.
    pub idle: Duration,
    /// After how long without an event a session of an unobserved agent ends.
    pub session_idle: Duration,
    /// Bound of the whole state folder.
    pub max_bytes: u64,
    /// Bound of the age of queued spans.
    pub max_age: Duration,
    /// What could not be used.
    pub problems: Vec<Problem>,
}

impl Settings {
    /// When the session root is sent: as set, else `update` for Future AGI and `once` elsewhere.
    #[must_use]
    pub const fn session_span(&self) -> SessionSpan {
        match (self.session_span_set, &self.destination) {
            (Some(set), _) => set,
            (None, Destination::FutureAgi { .. } | Destination::Incomplete { .. }) => SessionSpan::Update,
            (None, _) => SessionSpan::Once,
        }
    }

    /// What the reducer is told.
    #[must_use]
    pub const fn options(&self) -> Options {
        Options { session_span: self.session_span(), span_names: self.span_names, session_idle: self.session_idle }
    }

    /// What a hook has to keep of a payload: what is captured, and what is digested.
    #[must_use]
    pub const fn wanted(&self) -> Wanted {
        let Wanted { args, errors, .. } = self.capture;
        Wanted { args: args || self.digest, errors: errors || self.digest, ..self.capture }
    }

    /// Whether a workspace path lies in an excluded folder. Compares whole components; `\` counts as `/`.
    #[must_use]
    pub fn excludes(&self, path: &str) -> bool {
        fn parts(path: &str) -> impl Iterator<Item = &str> {
            path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".")
        }
        self.exclude_paths.iter().any(|folder| {
            let mut inside = parts(path);
            parts(folder).all(|part| inside.next() == Some(part))
        })
    }
}
