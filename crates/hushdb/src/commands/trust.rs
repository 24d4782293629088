//! The options for TLS of commands that ask a server: which servers are trusted, and the certificate of the client.

use std::{fs, path::PathBuf};

use clap::Args;
use hush_client::http::{TlsIdentity, TlsOptions};
use zeroize::Zeroizing;

#[derive(Args)]
pub(super) struct TrustArgs {
    /// File of certificates of authorities (PEM), trusted instead of those of this system.
    #[arg(long, value_name = "FILE", global = true)]
    ca_cert: Option<PathBuf>,
    /// Accept any certificate of a server on this machine's loopback, for tests.
    #[arg(long, conflicts_with = "ca_cert", global = true)]
    insecure: bool,
    /// File of this client's certificate in PEM, for a server that requires one.
    #[arg(long, value_name = "FILE", requires = "client_key", global = true)]
    client_cert: Option<PathBuf>,
    /// File of the private key of --client-cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "client_cert", global = true)]
    client_key: Option<PathBuf>,
}

impl TrustArgs {
    /// Reads the files, and returns the options for TLS.
    pub(super) fn options(&self) -> Result<TlsOptions, String> {
        let identity = self.client_cert.as_ref().zip(self.client_key.as_ref()).map(|(cert, key)| {
            Ok::<_, String>(TlsIdentity { cert: file(cert)?, key: Zeroizing::new(file(key)?) })
        });
        Ok(TlsOptions {
            ca_cert: self.ca_cert.as_ref().map(file).transpose()?,
            identity: identity.transpose()?,
            is_insecure: self.insecure,
        })
    }
}

/// Reads a file.
pub(super) fn file(path: &PathBuf) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
