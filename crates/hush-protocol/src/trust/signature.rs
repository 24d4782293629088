//! Signatures of tables: an Ed25519 signature of a table's name, serial, time and epoch.
//!
//! A malicious server could make up an epoch for a single client, and recognise the client by it. A server that is not the
//! publisher cannot sign such an epoch. It also cannot present another table of the publisher as this one, nor an old epoch
//! as the newest to a client that has seen a newer one.

use std::{fmt, str::FromStr};

use ed25519_dalek::{Signer, VerifyingKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::Name;

/// The beginning of the signed message. No other message of a publisher begins like this.
const CONTEXT: &[u8; 32] = b"hushdb v2 2026 table signature  ";

/// The public half of a publisher's key. Its text form is 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PublicKey(#[serde(with = "hex")] pub [u8; 32]);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for PublicKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.trim(), &mut bytes).map_err(|_| "a public key has 64 hex digits")?;
        VerifyingKey::from_bytes(&bytes).map_err(|_| "these 64 hex digits are no public key")?;
        Ok(Self(bytes))
    }
}

/// A publisher's signature in a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The publisher's public key.
    pub publisher: PublicKey,
    /// The name under which the table is published.
    pub name: Name,
    /// A number that grows with every publication under this name.
    pub serial: u64,
    /// The time of publication, in seconds after 1970.
    pub time: u64,
    /// The signature.
    #[serde(with = "hex")]
    pub signature: [u8; 64],
}

impl Signature {
    /// Returns whether the publisher named here has signed `epoch` with this name, serial and time.
    pub fn is_of(&self, epoch: &[u8; 32]) -> bool {
        let message = message(epoch, &self.name, self.serial, self.time);
        let signature = ed25519_dalek::Signature::from_bytes(&self.signature);
        // Strict verification: a signature has only one valid encoding.
        VerifyingKey::from_bytes(&self.publisher.0)
            .is_ok_and(|key| key.verify_strict(&message, &signature).is_ok())
    }

    /// Returns an identifier of this publisher's table of this name. Clients store the newest serial under it.
    pub fn publication(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("hushdb v2 2026 publication");
        hasher.update(&self.publisher.0).update(self.name.as_bytes());
        hasher.finalize().to_hex().to_string()
    }
}

/// A publisher's key: 32 secret bytes. Its text form is 64 hex digits.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Creates the key from its secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(secret))
    }

    /// Returns the public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs an epoch as publication `serial` under `name`, at `time` seconds after 1970.
    pub fn sign(&self, epoch: &[u8; 32], name: &Name, serial: u64, time: u64) -> Signature {
        let signature = self.0.sign(&message(epoch, name, serial, time)).to_bytes();
        Signature { publisher: self.public(), name: name.clone(), serial, time, signature }
    }

    /// Returns the secret key as text.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(self.0.as_bytes()))
    }
}

impl FromStr for SigningKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut secret = Zeroizing::new([0; 32]);
        hex::decode_to_slice(text.trim(), &mut *secret).map_err(|_| "a signing key has 64 hex digits")?;
        Ok(Self::new(&secret))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey of {}", self.public())
    }
}

/// Returns the message that is signed. All of its parts except the last have a fixed length.
fn message(epoch: &[u8; 32], name: &str, serial: u64, time: u64) -> Vec<u8> {
    [&CONTEXT[..], epoch, &serial.to_le_bytes(), &time.to_le_bytes(), name.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_publication_and_one_publisher() {
        let key = SigningKey::new(&[1; 32]);
        let other = SigningKey::new(&[2; 32]);
        let name = |name: &str| name.parse::<Name>().unwrap();
        let signature = key.sign(&[7; 32], &name("leaked"), 5, 6);
        assert!(signature.is_of(&[7; 32]));
        assert!(!signature.is_of(&[8; 32]));
        for changed in [
            Signature { publisher: other.public(), ..signature.clone() },
            Signature { name: name("test"), ..signature.clone() },
            Signature { serial: 6, ..signature.clone() },
            Signature { time: 5, ..signature.clone() },
            // The boundary between time and name cannot be moved.
            Signature { time: 6 | u64::from(b'l') << 56, name: name("eaked"), ..signature.clone() },
        ] {
            assert!(!changed.is_of(&[7; 32]), "{changed:?}");
        }
        for bit in 0..512 {
            let mut damaged = signature.clone();
            damaged.signature[bit / 8] ^= 1 << (bit % 8);
            assert!(!damaged.is_of(&[7; 32]));
        }
    }

    #[test]
    fn a_signature_under_a_name_that_no_table_has_is_not_read() {
        let signature = SigningKey::new(&[1; 32]).sign(&[7; 32], &"table".parse().unwrap(), 1, 1);
        let json = serde_json::to_string(&signature).unwrap();
        assert_eq!(serde_json::from_str::<Signature>(&json).unwrap(), signature);
        for name in ["", "..", ".hidden", "a/b"] {
            let changed = json.replace("\"table\"", &format!("\"{name}\""));
            assert_ne!(changed, json);
            assert!(serde_json::from_str::<Signature>(&changed).is_err(), "{name}");
        }
    }

    #[test]
    fn keys_are_text() {
        let key = SigningKey::new(&[1; 32]);
        let same: SigningKey = format!("{}\n", *key.to_text()).parse().unwrap();
        assert_eq!(same.public(), key.public());
        assert_eq!(key.public().to_string().parse(), Ok(key.public()));
        assert!(!format!("{key:?}").contains(&key.to_text()[..8]));
        for bad in ["", "01", &"g".repeat(64), &"0".repeat(63)] {
            assert!(bad.parse::<SigningKey>().is_err() && bad.parse::<PublicKey>().is_err());
        }
        // These digits are no point of the curve.
        assert!(format!("02{}", "0".repeat(62)).parse::<PublicKey>().is_err());
    }
}
