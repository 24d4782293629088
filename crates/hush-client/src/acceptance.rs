//! Which tables a client accepts.

use hush_protocol::{descriptor::Descriptor, facts::Facts, signature::PublicKey};

use crate::ClientError;

/// What a table has to be. By default its parameter set has 128 bits of security, and nothing else is asked of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// Name of the one parameter set that is accepted although it has less. Sets without any security never are, but in builds
    /// for tests (feature `insecure-presets`).
    pub weak_preset: Option<String>,
    /// The one epoch that is accepted: a server cannot show a client a table of its own.
    pub epoch: Option<[u8; 32]>,
    /// Who has to have signed the epoch: a server that is somebody else cannot make one up.
    pub publisher: Option<PublicKey>,
}

/// An epoch as text: 64 hex digits.
///
/// # Errors
/// If it is none, what to do.
pub fn parse_epoch(text: &str) -> Result<[u8; 32], &'static str> {
    let mut epoch = [0; 32];
    let parsed = hex::decode_to_slice(text.trim(), &mut epoch);
    parsed.map(|()| epoch).map_err(|_| "an epoch has 64 hex digits: hushdb inspect prints it")
}

impl Acceptance {
    /// The default, and the set of this name although it has less than 128 bits.
    pub fn of_weak(preset: &str) -> Self {
        Self { weak_preset: Some(preset.to_owned()), ..Self::default() }
    }

    /// Refuses a table that is not accepted. `descriptor` was checked, and `facts` are its own.
    ///
    /// # Errors
    /// [`ClientError::Insecure`], [`ClientError::Weak`], [`ClientError::OtherEpoch`], [`ClientError::NotSigned`],
    /// [`ClientError::OtherPublisher`].
    pub fn check(&self, descriptor: &Descriptor, facts: &Facts) -> Result<(), ClientError> {
        let (preset, bits) = (facts.preset, facts.security_bits);
        if bits == 0.0 && !cfg!(feature = "insecure-presets") {
            return Err(ClientError::Insecure { preset });
        }
        if !facts.is_secure() && self.weak_preset.as_deref() != Some(preset) {
            return Err(ClientError::Weak { preset, bits });
        }
        if let Some(asked) = self.epoch.filter(|epoch| *epoch != descriptor.epoch) {
            return Err(ClientError::OtherEpoch { actual: descriptor.epoch, asked });
        }
        match (self.publisher, descriptor.signature) {
            (None, _) => Ok(()),
            (Some(asked), None) => Err(ClientError::NotSigned { asked }),
            (Some(asked), Some(signature)) if signature.publisher != asked => {
                Err(ClientError::OtherPublisher { actual: signature.publisher, asked })
            }
            _ => Ok(()),
        }
    }
}
