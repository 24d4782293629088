//! The seal of Oblivious HTTP (RFC 9458 section 4) over X25519, HKDF-SHA256 and ChaCha20-Poly1305.
//!
//! Every gateway of HushDB has these ciphers. They add little code to a web page, and need no AES instructions for constant time.

use chacha20poly1305::{ChaCha20Poly1305, KeyInit, aead::Aead};
use hkdf::Hkdf;
use hpke::{Deserializable, Kem, OpModeS, Serializable, aead, kdf::HkdfSha256, kem::X25519HkdfSha256};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The identifier of X25519 with HKDF-SHA256 (RFC 9180 section 7.1).
const KEM: [u8; 2] = [0x00, 0x20];
/// The identifiers of HKDF-SHA256 and of ChaCha20-Poly1305 (RFC 9180 sections 7.2 and 7.3).
const CIPHERS: [u8; 4] = [0x00, 0x01, 0x00, 0x03];
/// The length of a public key, in bytes.
const PUBLIC_BYTES: usize = 32;
/// The length of a response's secret and of its nonce, in bytes: the greater of the cipher's key and nonce lengths.
const SECRET_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// A key of a gateway.
pub(super) struct GatewayKey {
    id: u8,
    public: <X25519HkdfSha256 as Kem>::PublicKey,
}

impl GatewayKey {
    /// Returns the first key of a list (`application/ohttp-keys`) that has these ciphers. Returns `None` if there is none,
    /// or if the list is malformed.
    pub(super) fn first_of(mut list: &[u8]) -> Option<Self> {
        let mut found = None;
        while !list.is_empty() {
            let (length, rest) = list.split_first_chunk::<2>()?;
            let (config, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
            list = rest;
            found = found.or_else(|| Self::read(config));
        }
        found
    }

    /// Parses a key configuration (RFC 9458 section 3.1). Returns `None` if it is malformed, or for other ciphers.
    fn read(config: &[u8]) -> Option<Self> {
        let (&id, rest) = config.split_first()?;
        let (public, rest) = rest.strip_prefix(&KEM)?.split_at_checked(PUBLIC_BYTES)?;
        let (length, ciphers) = rest.split_first_chunk::<2>()?;
        let (offered, odd) = ciphers.as_chunks::<4>();
        let is_whole = odd.is_empty() && ciphers.len() == usize::from(u16::from_be_bytes(*length));
        if !is_whole || !offered.contains(&CIPHERS) {
            return None;
        }
        Some(Self { id, public: Deserializable::from_bytes(public).ok()? })
    }

    /// Seals a request. Returns the sealed bytes, and the opener of the response.
    pub(super) fn seal(&self, message: &[u8]) -> Option<(Vec<u8>, Opener)> {
        let header = [&[self.id][..], &KEM, &CIPHERS].concat();
        let info = [&b"message/bhttp request\0"[..], &header].concat();
        let (key, mut context) = hpke::setup_sender::<aead::ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeS::Base,
            &self.public,
            &info,
        )
        .ok()?;
        let sealed = context.seal(message, &[]).ok()?;
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        context.export(b"message/bhttp response", &mut *secret).ok()?;
        let key = key.to_bytes().as_slice().to_vec();
        Some(([&header[..], &key, &sealed].concat(), Opener { key, secret }))
    }
}

/// The opener of the response to one request.
pub(super) struct Opener {
    /// The encapsulated key of the request.
    key: Vec<u8>,
    secret: Zeroizing<[u8; SECRET_BYTES]>,
}

impl Opener {
    /// Opens the response. Returns `None` if it was not sealed for this request.
    pub(super) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(SECRET_BYTES)?;
        let salt = [&self.key[..], nonce].concat();
        let derived = Hkdf::<Sha256>::new(Some(&salt[..]), &*self.secret);
        let mut key = Zeroizing::new([0; SECRET_BYTES]);
        derived.expand(b"key", &mut *key).ok()?;
        let mut nonce = [0; NONCE_BYTES];
        derived.expand(b"nonce", &mut nonce).ok()?;
        let cipher = ChaCha20Poly1305::new_from_slice(&*key).ok()?;
        cipher.decrypt(&nonce.into(), sealed).ok()
    }
}

#[cfg(test)]
mod tests {
    use ohttp::{
        KeyConfig, Server, SymmetricSuite,
        hpke::{Aead, Kdf, Kem},
    };

    use super::*;

    fn config(id: u8, kem: Kem, ciphers: &[Aead]) -> KeyConfig {
        let ciphers = ciphers.iter().map(|&aead| SymmetricSuite::new(Kdf::HkdfSha256, aead)).collect();
        KeyConfig::new(id, kem, ciphers).unwrap()
    }

    #[test]
    fn a_gateway_of_another_library_opens_it() {
        let own = config(7, Kem::X25519Sha256, &[Aead::Aes128Gcm, Aead::ChaCha20Poly1305]);
        let others = [
            config(1, Kem::P256Sha256, &[Aead::ChaCha20Poly1305]),
            config(2, Kem::X25519Sha256, &[Aead::Aes128Gcm]),
        ];
        let list = KeyConfig::encode_list(&[&others[0], &others[1], &own]).unwrap();
        let key = GatewayKey::first_of(&list).unwrap();
        assert!(GatewayKey::first_of(&KeyConfig::encode_list(&others).unwrap()).is_none());
        let server = Server::new(own).unwrap();
        for message in [&b""[..], b"a", &[7; 10_000]] {
            let (sealed, opener) = key.seal(message).unwrap();
            let (opened, responder) = server.decapsulate(&sealed).unwrap();
            assert_eq!(opened, message);
            let response = responder.encapsulate(message).unwrap();
            assert_eq!(opener.open(&response).unwrap(), message);
            assert!(
                key.seal(message).unwrap().1.open(&response).is_none(),
                "the response to another request"
            );
            for damaged in [0, 31, 32, response.len() - 1] {
                let mut response = response.clone();
                response[damaged] ^= 1;
                assert!(opener.open(&response).is_none());
            }
            assert!((0..48).all(|length| opener.open(&response[..length]).is_none()));
        }
    }

    #[test]
    fn lists_that_are_cut_are_refused() {
        let own = config(7, Kem::X25519Sha256, &[Aead::ChaCha20Poly1305]);
        let list = KeyConfig::encode_list(&[&own, &own]).unwrap();
        let half = list.len() / 2;
        for length in (0..half).chain(half + 1..list.len()) {
            assert!(GatewayKey::first_of(&list[..length]).is_none(), "{length}");
        }
        assert!(GatewayKey::first_of(&list[..half]).is_some());
        let mut odd = list[..half].to_vec();
        odd[1] += 1;
        odd.push(0);
        assert!(GatewayKey::first_of(&odd).is_none());
    }
}
