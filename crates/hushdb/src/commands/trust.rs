//! How a command that asks a server with TLS knows it, and who it says it is: options of such commands.

use std::{fs, path::PathBuf};

use clap::Args;
use hush_client::http::{TlsIdentity, TlsOptions};
use zeroize::Zeroizing;

#[derive(Args)]
pub(super) struct TrustArgs {
    /// Trust servers whose certificate one of those in FILE (PEM) has signed, in place of those that this system trusts.
    #[arg(long, value_name = "FILE", global = true)]
    ca_cert: Option<PathBuf>,
    /// Take any certificate of a server on this machine's loopback, for a test.
    #[arg(long, conflicts_with = "ca_cert", global = true)]
    insecure: bool,
    /// Certificate of this client in PEM, for a server that asks for one.
    #[arg(long, value_name = "FILE", requires = "client_key", global = true)]
    client_cert: Option<PathBuf>,
    /// The private key of --client-cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "client_cert", global = true)]
    client_key: Option<PathBuf>,
}

impl TrustArgs {
    /// Returns the options of TLS.
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
