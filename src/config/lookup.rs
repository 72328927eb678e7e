//! Finds the value of a setting in the sources, strongest first, and collects what could not be used.
//! Pure; the order is decided in `docs/adr/0010-settings-precedence.md`.

use super::registry;
use super::{AMBIENT_PREFIX, Problem, Source, Sources};

/// The settings that name a Future AGI destination.
pub(super) const FUTURE_AGI: [&str; 3] = ["FI_API_KEY", "FI_SECRET_KEY", "FI_BASE_URL"];
/// The settings that name an OTLP destination.
pub(super) const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// A value and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) value: &'a str,
    pub(super) source: Source,
}

/// Reads single settings from all sources.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a> {
    sources: &'a Sources,
    /// Whether OTEL_* of the process environment count.
    pub(super) ambient: bool,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(sources: &'a Sources) -> Self {
        let mut lookup = Self { sources, ambient: true };
        lookup.ambient = ![Source::Managed, Source::Environment, Source::File].into_iter().any(|source| {
            lookup.names_any(source, &FUTURE_AGI)
                || (source != Source::Environment && lookup.names_any(source, &ENDPOINTS))
        });
        lookup
    }

    /// Whether a source sets one of the names.
    pub(super) fn names_any(&self, source: Source, names: &[&str]) -> bool {
        names.iter().any(|name| self.at(source, name).is_some())
    }

    /// The value of a name in one source; empty means unset.
    pub(super) fn at(&self, source: Source, name: &str) -> Option<&'a str> {
        let found = match source {
            Source::Managed => self.sources.managed.as_ref()?.get(name),
            Source::File => self.sources.file.as_ref()?.get(name),
            Source::Environment if name.starts_with("OTEL_") => None,
            Source::Ambient if !name.starts_with("OTEL_") => None,
            Source::Environment | Source::Ambient => self.environment(name),
        };
        found.map(str::trim).filter(|value| !value.is_empty())
    }

    fn environment(&self, name: &str) -> Option<&'a str> {
        let value = |name: &str| {
            let pair = self.sources.environment.iter().find(|(known, value)| known == name && !value.is_empty());
            pair.map(|(_, value)| value.as_str())
        };
        value(name).or_else(|| if PROXIES.contains(&name) { value(&name.to_ascii_lowercase()) } else { None })
    }

    /// The strongest value of the first of these names that a source sets: a stronger source goes before a more
    /// specific name, else a user's `…_TRACES_ENDPOINT` would undo an administrator's `…_ENDPOINT`.
    pub(super) fn find(&self, names: &[&str]) -> Option<Found<'a>> {
        let proxy = names.iter().any(|name| PROXIES.contains(name));
        let order = if proxy {
            [Source::Managed, Source::File, Source::Environment, Source::Ambient]
        } else {
            [Source::Managed, Source::Environment, Source::File, Source::Ambient]
        };
        order
            .into_iter()
            .filter(|source| self.ambient || *source != Source::Ambient)
            .find_map(|source| names.iter().find_map(|name| Some(Found { value: self.at(source, name)?, source })))
    }
}

/// A [`Lookup`] that remembers what could not be used.
pub(super) struct Reader<'a> {
    pub(super) lookup: Lookup<'a>,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(sources: &'a Sources) -> Self {
        let mut reader = Self { lookup: Lookup::new(sources), problems: Vec::new() };
        for (source, file) in [(Source::Managed, &sources.managed), (Source::File, &sources.file)] {
            let Some(file) = file else { continue };
            for problem in &file.problems {
                reader.problem(&file.path.to_string_lossy(), source, problem.clone());
            }
            for (name, _) in &file.pairs {
                reader.check_name(name, source);
            }
        }
        for (name, _) in &sources.environment {
            if name.starts_with("FI_HOOK_") && !name.starts_with(AMBIENT_PREFIX) {
                reader.check_name(name, Source::Environment);
            }
        }
        reader
    }

    fn check_name(&mut self, name: &str, source: Source) {
        if name == "FI_HOOK_CONFIG" && source != Source::Environment {
            self.problem(name, source, "counts only in the process environment; ignored");
        } else if registry::known(name).is_none() && (name.starts_with("FI_") || name.starts_with("OTEL_")) {
            let meant = registry::nearest(name).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            self.problem(name, source, format!("is no setting of fi-hook-to-otlp; ignored{meant}"));
        }
    }

    pub(super) fn problem(&mut self, name: &str, source: Source, text: impl Into<String>) {
        self.problems.push(Problem { name: name.to_owned(), source, text: text.into() });
    }

    /// The text of a setting.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.lookup.find(&[name]).map(|found| found.value)
    }

    /// A setting read by `parse`; what it cannot read is reported and counts as unset.
    pub(super) fn read<T>(&mut self, names: &[&str], expected: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let found = self.lookup.find(names)?;
        let value = parse(found.value);
        if value.is_none() {
            let name = names.iter().find(|name| self.lookup.at(found.source, name).is_some()).copied();
            self.problem(name.unwrap_or_default(), found.source, format!("expected {expected}; ignored"));
        }
        value
    }
}
