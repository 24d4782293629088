//! TLS to a PostgreSQL server.

use std::{
    fmt, io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::{TlsConnector, client};

/// The properties of a certificate that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Nothing,
    /// The authority that signed the certificate.
    Authority,
    /// The authority, and the name of the server.
    Name,
}

/// A maker of TLS sessions.
#[derive(Clone)]
pub(crate) struct PostgresTls(Arc<ClientConfig>);

impl PostgresTls {
    /// Creates sessions. `roots` is a file of certificates in PEM; `system`, the default, stands for those of this machine.
    pub(crate) fn new(check: Check, roots: Option<&Path>) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let by_authority = match check {
            Check::Nothing => None,
            _ => Some(by_authority(roots, provider.clone())?),
        };
        let verifier = Verifier { check, by_authority, provider: provider.clone() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(config.into()))
    }
}

fn by_authority(
    roots: Option<&Path>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let mut store = RootCertStore::empty();
    match roots {
        Some(path) if path != Path::new("system") => {
            let refused = |why: &dyn fmt::Display| format!("sslrootcert={}: {why}", path.display());
            let certificates = CertificateDer::pem_file_iter(path).map_err(|error| refused(&error))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| refused(&error))?;
                store.add(certificate).map_err(|error| refused(&error))?;
            }
            if store.is_empty() {
                return Err(refused(&"no certificate in it"));
            }
        }
        _ => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if store.is_empty() {
                return Err(
                    "this machine has no certificates of authorities; name a file of them: sslrootcert"
                        .into(),
                );
            }
        }
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(store.into(), provider).build();
    verifier.map_err(|error| error.to_string())
}

#[derive(Debug)]
struct Verifier {
    check: Check,
    by_authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(verifier) = &self.by_authority else { return Ok(ServerCertVerified::assertion()) };
        let verified =
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The verifier checks the name last, so everything else is right here.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == Check::Authority => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for PostgresTls {
    type Stream = TlsSession;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, InvalidDnsNameError> {
        // A socket of this machine has no name, and no TLS.
        let host = if host.is_empty() { "localhost" } else { host };
        Ok(Handshake { config: self.0.clone(), host: ServerName::try_from(host.to_owned())? })
    }
}

/// A TLS session before its handshake.
pub(crate) struct Handshake {
    config: Arc<ClientConfig>,
    host: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsSession;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsSession>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let connecting = TlsConnector::from(self.config).connect(self.host, socket);
        Box::pin(async { Ok(TlsSession(connecting.await?)) })
    }
}

/// A TLS session.
pub(crate) struct TlsSession(client::TlsStream<Socket>);

impl TlsStream for TlsSession {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for TlsSession {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TlsSession {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
