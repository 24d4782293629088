//! The keys of the gateway of Oblivious HTTP (RFC 9458). Clients seal requests for the newest key. Older keys still open requests
//! that were sealed before a rotation.

use std::{
    mem,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ohttp::{
    KeyConfig, ServerResponse, SymmetricSuite,
    hpke::{Aead, Kdf, Kem},
};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::{
    access::replays::{NAME_BYTES, Replays, RequestName, Unanswered, seconds},
    renewed::{FileBytes, Renewed, Source, read_file},
};

const VERSION: u32 = 1;
/// The longest file that is read: a key takes some 150 bytes.
const MAX_FILE_BYTES: u64 = 1 << 16;
/// The number of keys that are kept: the newest, and the keys of the last rotations.
const KEPT: usize = 3;
/// The bytes of a sealed request before its encapsulated key (RFC 9458 section 4.3): the identifiers of the key and of the
/// ciphers.
const HEADER_BYTES: usize = 7;

/// A key pair of a gateway, as the file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayKey {
    /// The number by which requests name the key pair.
    pub id: u8,
    /// The time at which the key pair was made, in seconds since 1970.
    pub created: u64,
    /// The text that the key pair is derived from (RFC 9180 section 7.1.3).
    secret: Zeroizing<String>,
}

impl GatewayKey {
    /// The number of random bytes that a key pair is made of, from a cryptographic source.
    pub const RANDOM_BYTES: usize = 32;

    /// Returns the key configuration: X25519, and the ciphers that every client has. Fails with the reason if the secret is
    /// malformed.
    fn config(&self) -> Result<KeyConfig, String> {
        let mut secret = Zeroizing::new([0; Self::RANDOM_BYTES]);
        hex::decode_to_slice(&*self.secret, &mut *secret)
            .map_err(|_| format!("the secret of key {} is not 64 hex digits", self.id))?;
        let suites =
            [Aead::Aes128Gcm, Aead::ChaCha20Poly1305].map(|aead| SymmetricSuite::new(Kdf::HkdfSha256, aead));
        KeyConfig::derive(self.id, Kem::X25519Sha256, suites.to_vec(), &*secret)
            .map_err(|error| error.to_string())
    }
}

/// Puts a new key pair, made of `random`, before the others, and drops all but the three newest.
pub fn rotate(keys: &mut Vec<GatewayKey>, random: &[u8; GatewayKey::RANDOM_BYTES]) {
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let id = keys.first().map_or(random[0], |newest| newest.id.wrapping_add(1));
    keys.insert(0, GatewayKey { id, created, secret: Zeroizing::new(hex::encode(random)) });
    keys.truncate(KEPT);
}

/// Why a file of gateway keys cannot be used.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum GatewayError {
    #[error("cannot read the gateway's keys in {}: {reason}: hushdb gateway-key rotate makes the file", path.display())]
    File { path: PathBuf, reason: String },
    #[error("{} is no file of gateway keys ({reason}): hushdb gateway-key rotate makes one", path.display())]
    Format { path: PathBuf, reason: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GatewayDocument<K> {
    version: u32,
    keys: K,
}

/// Returns the keys in a file, the newest first. Fails with [`GatewayError::File`] if the file cannot be read or has more than 64
/// KiB. Fails with [`GatewayError::Format`] if it is malformed, has another version, or has no key.
pub fn read_gateway_keys(path: &Path) -> Result<Vec<GatewayKey>, GatewayError> {
    parse(&bytes_of(path)?, path)
}

/// Returns the text of a file of gateway keys.
pub fn text_of_gateway_keys(keys: &[GatewayKey]) -> Zeroizing<String> {
    // The buffer has its final capacity from the start: a buffer that grows leaves copies of secrets behind.
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_FILE_BYTES as usize));
    serde_json::to_writer_pretty(&mut *text, &GatewayDocument { version: VERSION, keys })
        .expect("plain data");
    text.push(b'\n');
    Zeroizing::new(String::from_utf8(mem::take(&mut *text)).expect("JSON"))
}

fn bytes_of(path: &Path) -> Result<FileBytes, GatewayError> {
    read_file(path, MAX_FILE_BYTES).map_err(|reason| GatewayError::File { path: path.to_owned(), reason })
}

fn parse(bytes: &[u8], path: &Path) -> Result<Vec<GatewayKey>, GatewayError> {
    let refused = |reason: String| GatewayError::Format { path: path.to_owned(), reason };
    let GatewayDocument { version, keys }: GatewayDocument<Vec<GatewayKey>> =
        serde_json::from_slice(bytes).map_err(|error| refused(error.to_string()))?;
    if version != VERSION {
        return Err(refused(format!("it has version {version}, and this program reads {VERSION}")));
    }
    if keys.is_empty() {
        return Err(refused("it has no key".into()));
    }
    Ok(keys)
}

/// The keys of a gateway, which are read again when their file changes, and the requests that they opened.
pub struct Gateway {
    keys: Renewed<GatewayFile>,
    replays: Replays,
}

/// A sealed request that was opened.
pub(crate) struct OpenedRequest {
    /// The request, a binary HTTP message.
    pub(crate) message: Vec<u8>,
    /// The key that seals the response.
    pub(crate) seals: ServerResponse,
    /// The name of the request, which no other request has.
    pub(crate) name: RequestName,
}

struct GatewayFile(PathBuf);

/// The keys in use, the newest first.
pub(crate) struct KeySet {
    servers: Vec<(u8, ohttp::Server)>,
    /// The newest public key, as clients get it. All clients get the same one, so that the key identifies no client.
    public: Vec<u8>,
}

/// Why a sealed request stays closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// The request is sealed for a key that the gateway does not have.
    UnknownKey,
    /// The sealed request does not open.
    Broken,
}

impl Source for GatewayFile {
    type Value = KeySet;
    type Error = GatewayError;

    fn read(&self) -> Result<Vec<FileBytes>, GatewayError> {
        Ok(vec![bytes_of(&self.0)?])
    }

    fn parse(&self, files: &[FileBytes], _before: Option<&KeySet>) -> Result<KeySet, GatewayError> {
        let refused = |reason: String| GatewayError::Format { path: self.0.clone(), reason };
        let servers = parse(&files[0], &self.0)?.into_iter().map(|key: GatewayKey| {
            let server = ohttp::Server::new(key.config()?).map_err(|error| error.to_string())?;
            Ok((key.id, server))
        });
        let servers = servers.collect::<Result<Vec<_>, String>>().map_err(refused)?;
        let public = KeyConfig::encode_list(&[servers[0].1.config()]);
        Ok(KeySet { public: public.map_err(|error| refused(error.to_string()))?, servers })
    }
}

impl Gateway {
    /// Reads the keys in a file. Fails as [`read_gateway_keys`] does, and with [`GatewayError::Format`] if a secret is malformed.
    /// Waits for the next full second, so that every request that an earlier process answered has an earlier date.
    pub fn open(path: &Path) -> Result<Arc<Self>, GatewayError> {
        let keys = Renewed::open(GatewayFile(path.to_owned()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        thread::sleep(Duration::from_secs(1) - Duration::from_nanos(now.subsec_nanos().into()));
        Ok(Arc::new(Self { keys, replays: Replays::new(now.as_secs()) }))
    }

    /// Reads the file again. If it holds no gateway keys, the current keys stay, and the log says why.
    pub fn take_up(&self) {
        self.keys.take_up("gateway keys");
    }

    /// Returns the key that clients seal requests for.
    pub(crate) fn public(&self) -> Vec<u8> {
        self.keys.current().public.clone()
    }

    /// Opens a sealed request. Fails with [`Sealed`] if the gateway does not have its key or the request is malformed.
    pub(crate) fn open_request(&self, sealed: &[u8]) -> Result<OpenedRequest, Sealed> {
        let keys = self.keys.current();
        let id = *sealed.first().ok_or(Sealed::Broken)?;
        let (_, server) = keys.servers.iter().find(|(own, _)| *own == id).ok_or(Sealed::UnknownKey)?;
        let (message, seals) = server.decapsulate(sealed).map_err(|_| Sealed::Broken)?;
        let (name, _) = sealed[HEADER_BYTES..].split_first_chunk::<NAME_BYTES>().ok_or(Sealed::Broken)?;
        Ok(OpenedRequest { message, seals, name: *name })
    }

    /// Accepts an opened request, once. `date` is the date that the request states. Fails as [`Replays::admit`] does.
    pub(crate) fn admit(&self, name: RequestName, date: Option<SystemTime>) -> Result<(), Unanswered> {
        self.replays.admit(name, date.map(seconds), seconds(SystemTime::now()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ohttp::ClientRequest;

    use super::*;

    fn write(path: &Path, keys: &[GatewayKey]) {
        fs::write(path, text_of_gateway_keys(keys).as_bytes()).unwrap();
    }

    fn seal(public: &[u8], request: &[u8]) -> (Vec<u8>, ohttp::ClientResponse) {
        let config = KeyConfig::decode_list(public).unwrap().remove(0);
        ClientRequest::from_config(&mut config.clone()).unwrap().encapsulate(request).unwrap()
    }

    #[test]
    fn a_rotation_leaves_the_last_keys_open_what_was_sealed_for_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.json");
        let mut keys = Vec::new();
        rotate(&mut keys, &[255; 32]);
        write(&path, &keys);
        let gateway = Gateway::open(&path).unwrap();
        let (old, response) = seal(&gateway.public(), b"ask");
        let OpenedRequest { message, seals, .. } = gateway.open_request(&old).unwrap();
        assert_eq!(message, b"ask");
        assert_eq!(response.decapsulate(&seals.encapsulate(b"said").unwrap()).unwrap(), b"said");

        for turn in 1..4 {
            let before = gateway.public();
            rotate(&mut keys, &[turn; 32]);
            write(&path, &keys);
            gateway.take_up();
            assert_ne!(gateway.public(), before);
            let opened = gateway.open_request(&old).map(|opened| opened.message);
            assert_eq!(opened, if turn < 3 { Ok(b"ask".to_vec()) } else { Err(Sealed::UnknownKey) });
        }
        // A malformed file changes nothing.
        let now = gateway.public();
        fs::write(&path, "{}").unwrap();
        gateway.take_up();
        assert_eq!(gateway.public(), now);
    }

    #[test]
    fn what_is_not_sealed_stays_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.json");
        let mut keys = Vec::new();
        rotate(&mut keys, &[7; 32]);
        write(&path, &keys);
        let gateway = Gateway::open(&path).unwrap();
        let (sealed, _) = seal(&gateway.public(), b"ask");
        let closed = |bytes: &[u8]| gateway.open_request(bytes).map(drop).unwrap_err();
        assert_eq!(closed(b""), Sealed::Broken);
        for length in 1..sealed.len() {
            assert_eq!(closed(&sealed[..length]), Sealed::Broken);
        }
        for at in 0..sealed.len() {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert_eq!(closed(&other), if at == 0 { Sealed::UnknownKey } else { Sealed::Broken });
        }
    }
}
