//! What a TLS connection trusts and shows: the system's authorities and Mozilla's, or the file the user names.
//! Reads files when an exporter is made, never later. Decided in `docs/adr/0015-export-transports.md`.

use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::BuildError;
use crate::config::Tls;

const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";
const CLIENT_CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE";
const CLIENT_KEY: &str = "OTEL_EXPORTER_OTLP_CLIENT_KEY";

/// Makes the TLS settings; `needed` is false where no connection will use them, which saves reading the authorities.
pub(super) fn config(tls: &Tls, needed: bool) -> Result<ClientConfig, BuildError> {
    let roots = match &tls.certificate {
        Some(path) if needed => own_roots(path)?,
        None if needed => usual_roots(),
        _ => RootCertStore::empty(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| BuildError::Setup(error.to_string()))?
        .with_root_certificates(roots);
    match (&tls.client_certificate, &tls.client_key) {
        (Some(chain), Some(key)) if needed => builder
            .with_client_auth_cert(certificates(CLIENT_CERTIFICATE, chain)?, private_key(key)?)
            .map_err(|error| unreadable(CLIENT_KEY, key, &format!("it does not go with the certificate: {error}"))),
        (Some(_), None) if needed => {
            Err(BuildError::Setup(format!("{CLIENT_CERTIFICATE} is set without {CLIENT_KEY}")))
        }
        (None, Some(_)) if needed => {
            Err(BuildError::Setup(format!("{CLIENT_KEY} is set without {CLIENT_CERTIFICATE}")))
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

/// The system's authorities, with Mozilla's beside them: a container often has none of its own.
fn usual_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots
}

/// Only the authorities of a file: who names one does not want others to be able to vouch.
fn own_roots(path: &Path) -> Result<RootCertStore, BuildError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(CERTIFICATE, path)? {
        roots.add(certificate).map_err(|error| unreadable(CERTIFICATE, path, &error.to_string()))?;
    }
    Ok(roots)
}

fn certificates(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, BuildError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if found.is_empty() => Err(unreadable(setting, path, "it holds no certificate in PEM form")),
        Ok(found) => Ok(found),
        Err(error) => Err(unreadable(setting, path, &pem_words(&error))),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, BuildError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => unreadable(CLIENT_KEY, path, "it holds no private key in PEM form"),
        error => unreadable(CLIENT_KEY, path, &pem_words(&error)),
    })
}

/// Only I/O errors are repeated, since the others may quote a line of the file.
fn pem_words(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        _ => "it is no PEM file".to_owned(),
    }
}

fn unreadable(setting: &'static str, path: &Path, why: &str) -> BuildError {
    BuildError::File { setting, path: path.display().to_string(), why: why.to_owned() }
}
