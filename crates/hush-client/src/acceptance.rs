//! The conditions under which a client accepts a table.

use std::str::FromStr;

use hush_protocol::{Name, descriptor::Descriptor, facts::Facts, signature::PublicKey};

use crate::ClientError;

/// The conditions for a table. By default its parameter set must have 128 bits of security, and nothing else is required.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// The name of the parameter set that is accepted although it has less than 128 bits. Sets without any security are
    /// accepted only in builds for tests (feature `insecure-presets`).
    pub weak_preset: Option<String>,
    /// The only epoch that is accepted. With it, a server cannot show one client a table made for that client alone.
    pub epoch: Option<[u8; 32]>,
    /// The publisher who must have signed the table, and the signed name. No other server can make up such a table.
    pub trust: Option<Trust>,
}

/// A publisher, and the name under which it publishes a table. The text form is the public key in 64 hex digits. If the
/// name differs from that by which the server is asked, `=` and the name follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The public key of the publisher.
    pub publisher: PublicKey,
    /// The signed name. With `None`, a session expects the name of the table that it opens, and a [`crate::Table`] that is
    /// created without a session accepts any name.
    pub name: Option<Name>,
}

impl FromStr for Trust {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (publisher, name) = match text.trim().split_once('=') {
            None => (text, None),
            Some((publisher, name)) => {
                let name = name
                    .parse()
                    .map_err(|_| "a table's name has 1 to 64 letters, digits, '.', '_' and '-'")?;
                (publisher, Some(name))
            }
        };
        Ok(Self { publisher: publisher.parse()?, name })
    }
}

/// Parses an epoch of 64 hex digits. Fails with a message if `text` has anything else.
pub fn parse_epoch(text: &str) -> Result<[u8; 32], &'static str> {
    let mut epoch = [0; 32];
    let parsed = hex::decode_to_slice(text.trim(), &mut epoch);
    parsed.map(|()| epoch).map_err(|_| "an epoch has 64 hex digits: hushdb inspect prints it")
}

impl Acceptance {
    /// Returns the default conditions, except that the parameter set `preset` is accepted even if it has less than 128 bits.
    pub fn of_weak(preset: &str) -> Self {
        Self { weak_preset: Some(preset.to_owned()), ..Self::default() }
    }

    /// Refuses a table that does not meet the conditions. `descriptor` must be checked, and `facts` must be those of its table.
    ///
    /// # Errors
    /// [`ClientError::Insecure`], [`ClientError::Weak`], [`ClientError::OtherEpoch`], [`ClientError::NotSigned`],
    /// [`ClientError::OtherPublisher`], [`ClientError::OtherName`].
    pub fn check(&self, descriptor: &Descriptor, facts: &Facts) -> Result<(), ClientError> {
        let preset = facts.preset;
        let bits = facts.security_bits;
        if bits == 0.0 && !cfg!(feature = "insecure-presets") {
            return Err(ClientError::Insecure { preset });
        }
        if !facts.is_secure() && self.weak_preset.as_deref() != Some(preset) {
            return Err(ClientError::Weak { preset, bits });
        }
        if let Some(asked) = self.epoch.filter(|epoch| *epoch != descriptor.epoch) {
            return Err(ClientError::OtherEpoch { actual: descriptor.epoch, asked });
        }
        let Some(Trust { publisher: asked, name }) = &self.trust else { return Ok(()) };
        let Some(signature) = &descriptor.signature else {
            return Err(ClientError::NotSigned { asked: *asked });
        };
        if signature.publisher != *asked {
            return Err(ClientError::OtherPublisher { actual: signature.publisher, asked: *asked });
        }
        match name {
            Some(asked) if *asked != signature.name => {
                Err(ClientError::OtherName { actual: signature.name.clone(), asked: asked.clone() })
            }
            _ => Ok(()),
        }
    }
}
