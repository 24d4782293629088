//! TLS of the public listener: certificates that are read again when their files change.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, WebPkiClientVerifier},
};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

use crate::renewed::{FileBytes, Renewed, Source, read_file};

/// The protocol that a client offers, and gets, for HTTP/2 (RFC 9113 section 3.2).
pub(crate) const HTTP_2: &[u8] = b"h2";
/// The longest file that is read, in bytes. Chains have some KiB.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The files of a TLS server, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and the chain to one that clients trust.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The certificates of the authorities that sign clients' certificates, if clients must have one.
    pub client_ca: Option<PathBuf>,
}

/// Why files cannot serve TLS.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum TlsError {
    #[error("cannot read {}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// A file without a certificate.
    #[error("{} holds no certificate in PEM ({reason}): it begins with -----BEGIN CERTIFICATE-----", path.display())]
    Certificate { path: PathBuf, reason: String },
    /// A file without a private key.
    #[error("{} holds no private key in PEM ({reason}): it begins with -----BEGIN PRIVATE KEY----- and has no password", path.display())]
    Key { path: PathBuf, reason: String },
    #[error("the key in {} does not go with the certificate in {}: {source}", key.display(), cert.display())]
    Pair { key: PathBuf, cert: PathBuf, source: rustls::Error },
}

/// The TLS of a listener.
pub struct Tls(Renewed<TlsFiles>);

impl Tls {
    /// Reads the files. Fails with [`TlsError::File`] if one cannot be read or has more than 1 MiB. Fails with
    /// [`TlsError::Certificate`] or [`TlsError::Key`] if one has no valid certificate or key in PEM. Fails with
    /// [`TlsError::Pair`] if the key does not belong to the certificate.
    pub fn open(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self(Renewed::open(files)?)))
    }

    /// Reads the files again. If the new files are invalid, the current ones stay in use, and the log says why. Open connections
    /// are not changed.
    pub fn take_up(&self) {
        self.0.take_up("TLS certificates");
    }

    /// Returns the acceptor for the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.0.current().into()
    }
}

impl Source for TlsFiles {
    type Value = ServerConfig;
    type Error = TlsError;

    /// Returns the bytes of the certificate, of the key, and of the authorities of clients' certificates, if there are any.
    fn read(&self) -> Result<Vec<FileBytes>, TlsError> {
        [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()]
            .into_iter()
            .flatten()
            .map(|path: &PathBuf| {
                read_file(path, MAX_FILE_BYTES)
                    .map_err(|reason| TlsError::File { path: path.clone(), reason })
            })
            .collect()
    }

    fn parse(&self, files: &[FileBytes], _: Option<&ServerConfig>) -> Result<ServerConfig, TlsError> {
        let chain = certificates(&files[0], &self.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&files[1])
            .map_err(|error| TlsError::Key { path: self.key.clone(), reason: error.to_string() })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("the provider has the suites of TLS 1.2 and 1.3");
        let builder = match (files.get(2), &self.client_ca) {
            (Some(pem), Some(path)) => {
                let invalid = |reason: String| TlsError::Certificate { path: path.clone(), reason };
                let mut roots = RootCertStore::empty();
                for certificate in certificates(pem, path)? {
                    roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| invalid(error.to_string()))?)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|source| TlsError::Pair {
            key: self.key.clone(),
            cert: self.cert.clone(),
            source,
        })?;
        // A resumed session would reveal that two connections belong to one client.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Returns the certificates in a file. Fails with [`TlsError::Certificate`] if there is none.
fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let invalid = |reason: &str| TlsError::Certificate { path: path.to_owned(), reason: reason.into() };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| invalid(&error.to_string()))?;
    if all.is_empty() { Err(invalid("it has none")) } else { Ok(all) }
}
