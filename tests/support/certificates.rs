//! Certificates made for one test: an authority, and what it vouches for.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// An authority with a folder for its files.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

/// A certificate and its key, as PEM.
pub(crate) struct Issued {
    certificate: String,
    key: String,
}

impl Authority {
    /// Makes a new authority.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "authority of a test");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer, folder: tempfile::tempdir().unwrap() }
    }

    /// The file to name in OTEL_EXPORTER_OTLP_CERTIFICATE.
    pub(crate) fn file(&self) -> PathBuf {
        self.write("authority.pem", &self.issuer.pem())
    }

    /// Writes a file beside the others.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Vouches for hosts; `years` of validity from 2020 on.
    pub(crate) fn issue(&self, hosts: &[&str], years: i32) -> Issued {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020 + years, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// Writes certificate and key of a client: the files to name in the settings.
    pub(crate) fn client_files(&self) -> (PathBuf, PathBuf) {
        let issued = self.issue(&["client"], 80);
        (self.write("client.pem", &issued.certificate), self.write("client.key", &issued.key))
    }

    /// Writes certificate and key of a server on this machine.
    pub(crate) fn server_files(&self) -> (PathBuf, PathBuf) {
        let issued = self.issue(&["localhost"], 80);
        (self.write("server.pem", &issued.certificate), self.write("server.key", &issued.key))
    }

    /// Server settings that want a certificate of this authority from clients.
    pub(crate) fn mutual(&self, issued: &Issued) -> Arc<rustls::ServerConfig> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        let builder = builder().with_client_cert_verifier(verifier.build().unwrap());
        Arc::new(builder.with_single_cert(issued.chain(), issued.key()).unwrap())
    }
}

impl Issued {
    /// Server settings, for HTTP/1.1 and HTTP/2.
    pub(crate) fn server(&self) -> Arc<rustls::ServerConfig> {
        let mut config = builder().with_no_client_auth().with_single_cert(self.chain(), self.key()).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }

    fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()]
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap()
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn builder() -> rustls::ConfigBuilder<rustls::ServerConfig, rustls::WantsVerifier> {
    rustls::ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap()
}
