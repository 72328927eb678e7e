//! Which one place spans go to, and how it is reached. Pure.
//! Future AGI goes before OTLP, a managed destination before any of another kind; never a default in the cloud.
//! Decided in `docs/adr/0011-one-destination.md`.

use std::time::Duration;

use super::lookup::{ENDPOINTS, FUTURE_AGI, Reader};
use super::{Compression, Destination, Proxies, Route, Secret, Source, Tls, values};
use crate::export::endpoint::{self, Given, Protocol};

/// The time limit of a request when nothing is set.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// The names of one OTLP setting, for traces first.
type Names = [&'static str; 2];
const PROTOCOL: Names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const INSECURE: Names = ["OTEL_EXPORTER_OTLP_TRACES_INSECURE", "OTEL_EXPORTER_OTLP_INSECURE"];
const TIMEOUT_MS: Names = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
const COMPRESSION: Names = ["OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION"];
const HEADERS: Names = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
const CERTIFICATE: Names = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"];
const CLIENT_KEY: Names = ["OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "OTEL_EXPORTER_OTLP_CLIENT_KEY"];
const CLIENT_CERTIFICATE: Names =
    ["OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"];

const NOTHING: &str = "no destination is set: spans stay in the local store; set FI_API_KEY, FI_SECRET_KEY and \
     FI_BASE_URL, or OTEL_EXPORTER_OTLP_ENDPOINT";

enum Choice {
    FutureAgi,
    Otlp,
    Incomplete(Vec<&'static str>),
    Nothing,
}

/// `timeout` is FI_HOOK_TIMEOUT, which holds for every destination.
pub(super) fn resolve(reader: &mut Reader<'_>, timeout: Option<Duration>, home: Option<&str>) -> Destination {
    match choose(reader) {
        Choice::FutureAgi => future_agi(reader, timeout.unwrap_or(TIMEOUT), home),
        Choice::Otlp => otlp(reader, timeout, home),
        Choice::Incomplete(missing) => Destination::Incomplete { missing },
        Choice::Nothing => Destination::None { reason: NOTHING.to_owned() },
    }
}

fn choose(reader: &mut Reader<'_>) -> Choice {
    let lookup = reader.lookup;
    let missing: Vec<_> = FUTURE_AGI.into_iter().filter(|name| lookup.find(&[name]).is_none()).collect();
    let managed_fi = lookup.names_any(Source::Managed, &FUTURE_AGI);
    if lookup.names_any(Source::Managed, &ENDPOINTS) && !managed_fi {
        return Choice::Otlp;
    }
    if missing.is_empty() {
        return Choice::FutureAgi;
    }
    let partly = missing.len() < FUTURE_AGI.len();
    if !managed_fi && lookup.names_any(Source::File, &ENDPOINTS) {
        if partly && lookup.names_any(Source::File, &FUTURE_AGI) {
            let text = format!(
                "Future AGI is incomplete, so the OTLP endpoint is used; to use Future AGI set {}",
                missing.join(", ")
            );
            reader.problem("OTEL_EXPORTER_OTLP_ENDPOINT", Source::File, text);
        }
        return Choice::Otlp;
    }
    if partly {
        return Choice::Incomplete(missing);
    }
    if lookup.find(&ENDPOINTS).is_some() { Choice::Otlp } else { Choice::Nothing }
}

fn future_agi(reader: &mut Reader<'_>, timeout: Duration, home: Option<&str>) -> Destination {
    let text = |name| reader.text(name).unwrap_or_default();
    let (api_key, secret_key, base) = (text("FI_API_KEY"), text("FI_SECRET_KEY"), text("FI_BASE_URL"));
    for (name, key) in [("FI_API_KEY", api_key), ("FI_SECRET_KEY", secret_key)] {
        if !key.is_ascii() || http::HeaderValue::from_str(key).is_err() {
            return Destination::Invalid { reason: format!("{name} has characters that no key has: copy it again") };
        }
    }
    match url(reader, "FI_BASE_URL", Given::FutureAgi(base), Protocol::HttpProtobuf, false) {
        Err(reason) => Destination::Invalid { reason },
        Ok(url) => Destination::FutureAgi {
            route: Route { url, timeout, tls: tls(reader, home), proxies: proxies(reader) },
            api_key: Secret::new(api_key),
            secret_key: Secret::new(secret_key),
        },
    }
}

fn otlp(reader: &mut Reader<'_>, timeout: Option<Duration>, home: Option<&str>) -> Destination {
    let protocol = reader.read(&PROTOCOL, "http/protobuf, http/json or grpc", Protocol::parse).unwrap_or_default();
    let insecure = reader.read(&INSECURE, "true or false", values::flag).unwrap_or(false);
    let timeout =
        timeout.or_else(|| reader.read(&TIMEOUT_MS, "whole milliseconds", values::milliseconds)).unwrap_or(TIMEOUT);
    let compression = reader.read(&COMPRESSION, "gzip or none", values::compression).unwrap_or(Compression::None);
    let Some(found) = reader.lookup.find(&ENDPOINTS) else {
        return Destination::None { reason: NOTHING.to_owned() };
    };
    let signal = reader.lookup.at(found.source, ENDPOINTS[0]).is_some();
    let (name, given) =
        if signal { (ENDPOINTS[0], Given::Signal(found.value)) } else { (ENDPOINTS[1], Given::Base(found.value)) };
    let url = match url(reader, name, given, protocol, insecure) {
        Ok(url) => url,
        Err(reason) => return Destination::Invalid { reason },
    };
    let headers = match headers(reader, found.source) {
        Ok(headers) => headers,
        Err(reason) => return Destination::Invalid { reason },
    };
    let route = Route { url, timeout, tls: tls(reader, home), proxies: proxies(reader) };
    Destination::Otlp { route, protocol, headers, compression }
}

/// Reports advice as problems; an error names the setting.
fn url(
    reader: &mut Reader<'_>,
    name: &str,
    given: Given<'_>,
    protocol: Protocol,
    insecure: bool,
) -> Result<String, String> {
    let endpoint = endpoint::resolve(given, protocol, insecure).map_err(|error| format!("{name}: {error}"))?;
    let source = reader.lookup.find(&[name]).map_or(Source::File, |found| found.source);
    for advice in endpoint.advice {
        reader.problem(name, source, advice);
    }
    Ok(endpoint.url)
}

/// Headers of a file are keys for what that file knows, so they never go to an ambient endpoint.
fn headers(reader: &mut Reader<'_>, endpoint: Source) -> Result<Vec<(String, Secret)>, String> {
    let Some(found) = reader.lookup.find(&HEADERS) else {
        return Ok(Vec::new());
    };
    let name = HEADERS.into_iter().find(|name| reader.lookup.at(found.source, name).is_some()).unwrap_or_default();
    if endpoint == Source::Ambient && found.source != Source::Ambient {
        reader.problem(
            name,
            found.source,
            "not sent, because the endpoint is an ambient one; name the endpoint in the file, too",
        );
        return Ok(Vec::new());
    }
    match values::headers(found.value) {
        Ok(headers) => Ok(headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect()),
        Err(why) => Err(format!("{name}: {why}")),
    }
}

fn tls(reader: &mut Reader<'_>, home: Option<&str>) -> Tls {
    let mut path =
        |names: Names| reader.read(&names, "an absolute path of a PEM file", |text| values::path(text, home));
    Tls { certificate: path(CERTIFICATE), client_key: path(CLIENT_KEY), client_certificate: path(CLIENT_CERTIFICATE) }
}

fn proxies(reader: &Reader<'_>) -> Proxies {
    Proxies {
        http: reader.text("HTTP_PROXY").map(Secret::new),
        https: reader.text("HTTPS_PROXY").map(Secret::new),
        all: reader.text("ALL_PROXY").map(Secret::new),
        no: reader.text("NO_PROXY").map(str::to_owned),
    }
}
