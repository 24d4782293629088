//! TLS of the public listener: certificates that are read again when their files change.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, WebPkiClientVerifier},
};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

/// The longest file that is read: chains have some KiB.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The files of a TLS server, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those that lead to one that clients trust.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The certificates of who may sign those of clients, if clients must have one.
    pub client_ca: Option<PathBuf>,
}

/// Why files make no TLS server.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file without a certificate.
    #[error("{} holds no certificate in PEM ({reason}): it begins with -----BEGIN CERTIFICATE-----", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        reason: String,
    },
    /// A file without a private key.
    #[error("{} holds no private key in PEM ({reason}): it begins with -----BEGIN PRIVATE KEY----- and has no password", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        reason: String,
    },
    /// A key and a certificate that have nothing to do with each other, or of a kind that is not known.
    #[error("the key in {} does not go with the certificate in {}: {source}", key.display(), cert.display())]
    Pair {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        cert: PathBuf,
        /// What the TLS library says.
        source: rustls::Error,
    },
}

/// The TLS of a listener.
pub struct Tls {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
    /// The hash of the files as they were last read, good or bad.
    read: Mutex<blake3::Hash>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let contents = Contents::read(&files)?;
        let config = contents.config(&files)?;
        Ok(Arc::new(Self {
            files,
            current: RwLock::new(Arc::new(config)),
            read: Mutex::new(contents.hash()),
        }))
    }

    /// Reads the files again. Connections that are open stay as they are. Whether anything changed.
    ///
    /// # Errors
    /// [`TlsError`]; what was read before then stays. The same files are refused once.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let contents = Contents::read(&self.files)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if *read == contents.hash() {
            return Ok(false);
        }
        *read = contents.hash();
        let config = Arc::new(contents.config(&self.files)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(true)
    }

    /// What accepts the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone().into()
    }

    /// Reads the files again, and says in the log what came of it.
    pub fn take_up(&self) {
        match self.reload() {
            Ok(true) => tracing::info!(cert = %self.files.cert.display(), "a new certificate is served"),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the certificate that was served is kept"),
        }
    }
}

/// What is in the files.
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let client_ca = files.client_ca.as_deref().map(read).transpose()?;
        Ok(Self { cert: read(&files.cert)?, key: read(&files.key)?, client_ca })
    }

    fn hash(&self) -> blake3::Hash {
        let files = [&self.cert[..], &self.key, self.client_ca.as_deref().unwrap_or(&[])];
        let hashes = files.map(|file| *blake3::hash(file).as_bytes());
        blake3::hash(hashes.as_flattened())
    }

    fn config(&self, files: &TlsFiles) -> Result<ServerConfig, TlsError> {
        let chain = certificates(&self.cert, &files.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| TlsError::Key { path: files.key.clone(), reason: error.to_string() })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("the provider has the suites of TLS 1.2 and 1.3");
        let builder = match (&self.client_ca, &files.client_ca) {
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
        let pair = |source| TlsError::Pair { key: files.key.clone(), cert: files.cert.clone(), source };
        let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
        // A session that is resumed would tell that two connections are of one client.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let file = |reason: String| TlsError::File { path: path.to_owned(), reason };
    let bytes = fs::metadata(path).map_err(|error| file(error.to_string()))?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(file(format!("it has {bytes} bytes, and a certificate has some KiB")));
    }
    fs::read(path).map_err(|error| file(error.to_string()))
}

/// The certificates in a file, at least one.
fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let invalid = |reason: &str| TlsError::Certificate { path: path.to_owned(), reason: reason.into() };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| invalid(&error.to_string()))?;
    if all.is_empty() { Err(invalid("it has none")) } else { Ok(all) }
}
