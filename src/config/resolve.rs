//! From sources to settings. Pure and total: what cannot be used is a problem, never an error, because the hook must go on.
//! Decided in `docs/adr/0010-settings-precedence.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::destination;
use super::lookup::Reader;
use super::values;
use super::{SessionSpan, Settings, Sources, SpanNames};
use crate::event::{Origin, Surface, Wanted};

const FLAG: &str = "1 or 0";
const PATH: &str = "an absolute path (`~/` may stand for the home directory; variables are not expanded)";
const DAY: Duration = Duration::from_hours(24);

/// Reads the settings in force.
#[must_use]
pub fn resolve(sources: &Sources) -> Settings {
    let home = home(sources);
    let mut reader = Reader::new(sources);
    let timeout = reader.read(&["FI_HOOK_TIMEOUT"], "seconds, above 0 and at most 300", values::seconds);
    let destination = destination::resolve(&mut reader, timeout, home);
    let mut number = |name, expected: &str, range: std::ops::RangeInclusive<u64>| {
        reader.read(&[name], expected, |text| values::number(text, range.clone()))
    };
    let idle = number("FI_HOOK_IDLE_SECONDS", "whole seconds, 0 to 3600", 0..=3600).unwrap_or(10);
    let session_idle = number("FI_HOOK_SESSION_IDLE_MINUTES", "whole minutes, 1 to 10080", 1..=10_080).unwrap_or(60);
    let max_mb = number("FI_HOOK_MAX_MB", "a whole number, 1 to 1048576", 1..=1_048_576).unwrap_or(256);
    let max_days = number("FI_HOOK_MAX_DAYS", "whole days, 1 to 3650", 1..=3650).unwrap_or(7);
    let path = |text: &str| values::path(text, home);
    Settings {
        timeout: destination.route().map_or_else(|| timeout.unwrap_or(destination::TIMEOUT), |route| route.timeout),
        destination,
        origin: origin(&mut reader),
        disabled: disabled(&mut reader),
        surfaces: reader
            .read(&["FI_HOOK_SURFACES"], "some of cli, ide, desktop, separated by commas", values::surfaces)
            .unwrap_or_else(|| vec![Surface::Cli, Surface::Ide]),
        exclude_paths: reader
            .read(&["FI_HOOK_EXCLUDE_PATHS"], "absolute paths, separated by `:` or `,`", |text| {
                values::paths(text, home)
            })
            .unwrap_or_default(),
        session_span_set: reader.read(&["FI_HOOK_SESSION_SPAN"], "update, once, first or none", SessionSpan::parse),
        span_names: reader
            .read(&["FI_HOOK_SPAN_NAMES"], "friendly or semconv", SpanNames::parse)
            .unwrap_or(SpanNames::Friendly),
        capture: capture(&mut reader),
        digest: reader.read(&["FI_HOOK_DIGEST"], FLAG, values::flag).unwrap_or(false),
        log_file: reader.read(&["FI_HOOK_LOG_FILE"], PATH, path),
        state_dir: reader.read(&["FI_HOOK_STATE_DIR"], PATH, path),
        idle: Duration::from_secs(idle),
        session_idle: Duration::from_mins(session_idle),
        max_bytes: max_mb << 20,
        max_age: DAY * u32::try_from(max_days).unwrap_or(u32::MAX),
        problems: reader.problems,
    }
}

fn home(sources: &Sources) -> Option<&str> {
    sources.environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value.as_str())
}

fn disabled(reader: &mut Reader<'_>) -> Option<&'static str> {
    ["FI_HOOK_DISABLED", "OTEL_SDK_DISABLED"]
        .into_iter()
        .find(|name| reader.read(&[name], FLAG, values::flag).unwrap_or(false))
}

/// A word that is not known is left out, since the others are clear; more than was asked for is never captured.
fn capture(reader: &mut Reader<'_>) -> Wanted {
    const NAME: &str = "FI_HOOK_CAPTURE_CONTENT";
    let Some(found) = reader.lookup.find(&[NAME]) else { return Wanted::default() };
    let (wanted, unknown) = values::wanted(found.value);
    if !unknown.is_empty() {
        let places = unknown.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let text = format!("expected 1, 0, or some of args, errors, prompts, outputs, results; ignored: word {places}");
        reader.problem(NAME, found.source, text);
    }
    wanted
}

/// `service.name` and `project_name` may also stand in OTEL_RESOURCE_ATTRIBUTES; the settings of their own go first.
fn origin(reader: &mut Reader<'_>) -> Origin {
    let pairs = reader.read(
        &["OTEL_RESOURCE_ATTRIBUTES"],
        "name=value,name=value, with `,` and `=` in values percent-encoded",
        values::attributes,
    );
    let mut resource: BTreeMap<String, String> = pairs.unwrap_or_default().into_iter().collect();
    let mut named = |setting, attribute: &str, default: &str| {
        let attribute = resource.remove(attribute).filter(|value| !value.is_empty());
        reader.text(setting).map(str::to_owned).or(attribute).unwrap_or_else(|| default.to_owned())
    };
    Origin {
        service_name: named("OTEL_SERVICE_NAME", "service.name", "antigravity-cli"),
        project_name: named("FI_PROJECT_NAME", "project_name", "antigravity-sessions"),
        resource,
        user_id: reader.text("FI_HOOK_USER_ID").map(str::to_owned),
    }
}
