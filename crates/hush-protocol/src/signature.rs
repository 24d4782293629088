//! Who published a table: an Ed25519 signature of its epoch.
//!
//! A server can make up an epoch for a single client, and know that client by it. One that is not the publisher cannot sign it.

use std::{fmt, str::FromStr};

use ed25519_dalek::{Signer, VerifyingKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// What is signed ahead of the epoch: no other message of a publisher begins like that.
const CONTEXT: &[u8; 32] = b"hushdb v1 2026 epoch signature  ";

/// The public half of a publisher's key. As text: 64 hex digits.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Whose.
    pub publisher: PublicKey,
    /// The signature.
    #[serde(with = "hex")]
    pub signature: [u8; 64],
}

impl Signature {
    /// Whether the publisher that it names has signed `epoch`.
    pub fn is_of(&self, epoch: &[u8; 32]) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&self.signature);
        // Strict: one signature has one form.
        VerifyingKey::from_bytes(&self.publisher.0)
            .is_ok_and(|key| key.verify_strict(&message(epoch), &signature).is_ok())
    }
}

/// A publisher's key: 32 secret bytes. As text: 64 hex digits.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// The key of these secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(secret))
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs an epoch.
    pub fn sign(&self, epoch: &[u8; 32]) -> Signature {
        Signature { publisher: self.public(), signature: self.0.sign(&message(epoch)).to_bytes() }
    }

    /// The secret as text.
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

fn message(epoch: &[u8; 32]) -> [u8; 64] {
    let mut message = [0; 64];
    message[..32].copy_from_slice(CONTEXT);
    message[32..].copy_from_slice(epoch);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_epoch_and_one_publisher() {
        let (key, other) = (SigningKey::new(&[1; 32]), SigningKey::new(&[2; 32]));
        let signature = key.sign(&[7; 32]);
        assert!(signature.is_of(&[7; 32]));
        assert!(!signature.is_of(&[8; 32]));
        assert!(!Signature { publisher: other.public(), ..signature }.is_of(&[7; 32]));
        for bit in 0..512 {
            let mut damaged = signature;
            damaged.signature[bit / 8] ^= 1 << (bit % 8);
            assert!(!damaged.is_of(&[7; 32]));
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
        // No point of the curve.
        assert!(format!("02{}", "0".repeat(62)).parse::<PublicKey>().is_err());
    }
}
