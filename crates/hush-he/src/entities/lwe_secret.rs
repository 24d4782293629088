//! An LWE secret, good for one query.

use hush_math::csprng::Csprng;
use zeroize::Zeroizing;

use crate::params::LweParams;

/// A fresh LWE secret: `n` small words modulo 2^32.
///
/// A is public and fixed, so two queries under one secret would leak their difference. Hence the secret is not `Clone`,
/// [`crate::algorithms::encrypt_lwe`] consumes it, and returns a key that can only decrypt. It is wiped when dropped.
pub struct OneTimeLweSecret {
    words: Zeroizing<Vec<u32>>,
}

impl OneTimeLweSecret {
    /// Samples a secret of `params`.
    pub fn sample(params: &LweParams, rng: &mut Csprng) -> Self {
        let mut words = Zeroizing::new(vec![0; params.n()]);
        params.secret().sample(rng, &mut words);
        Self { words }
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    pub(crate) fn into_decryption_key(self) -> LweDecryptionKey {
        LweDecryptionKey { words: self.words }
    }
}

/// The remainder of an [`OneTimeLweSecret`] after encryption: it decrypts answers and encrypts nothing.
pub struct LweDecryptionKey {
    words: Zeroizing<Vec<u32>>,
}

impl LweDecryptionKey {
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }
}
