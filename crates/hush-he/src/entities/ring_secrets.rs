//! All that a client of a ring protocol keeps to itself.

use hush_math::csprng::Csprng;

use super::RlweSecret;
use crate::params::RingParams;

/// The secrets of one client for one parameter set, from one 32-byte seed.
pub struct RingSecrets {
    /// s: queries are encrypted under it. Also the first secret of a pair.
    pub query: RlweSecret,
    /// s': the second secret of a pair.
    pub second: RlweSecret,
}

impl RingSecrets {
    /// The secrets that follow from `seed`, which must have come from the operating system and be kept like a key.
    pub fn from_seed(params: &RingParams, seed: &[u8; 32]) -> Self {
        let mut rng = Csprng::from_secret_seed("hushdb v1 2026 ring secrets", seed, &params.key_context());
        let mut sample = || match params.is_plain() {
            true => RlweSecret::zero(params.degree()),
            false => RlweSecret::sample(params.degree(), &mut rng),
        };
        Self { query: sample(), second: sample() }
    }
}
