//! The secrets of a client of a ring protocol.

use hush_math::csprng::Csprng;
use zeroize::Zeroizing;

use super::RlweSecret;
use crate::params::{RingParams, Tlwe};

/// The secrets of one client for one parameter set, from one 32-byte seed.
pub struct RingSecrets {
    /// s, under which queries are encrypted. Also the first secret of a pair.
    pub query: RlweSecret,
    /// s', the second secret of a pair.
    pub second: RlweSecret,
    /// The secrets of the small ring to which answers are switched, one for each unit of its rank; empty without such a ring.
    pub switched: Vec<RlweSecret>,
    /// t, the secret of TLWE words: n entries modulo 2^32; empty if queries are not TLWE words.
    pub tlwe: Zeroizing<Vec<u32>>,
}

impl RingSecrets {
    /// Derives the secrets from `seed`, which must have come from the operating system and be kept like a key.
    pub fn from_seed(params: &RingParams, seed: &[u8; 32]) -> Self {
        let mut rng = Csprng::from_secret_seed("hushdb v1 2026 ring secrets", seed, &params.key_context());
        let mut sample = |degree| RlweSecret::sample(degree, params.secret(), &mut rng);
        let [query, second] = [(); 2].map(|()| sample(params.degree()));
        let switched = params.switch().into_iter().flat_map(|switch| vec![switch.degree(); switch.rank()]);
        let switched = switched.map(sample).collect();
        let mut tlwe = Zeroizing::new(vec![0; params.tlwe().map_or(0, Tlwe::n)]);
        params.secret().sample(&mut rng, &mut tlwe);
        Self { query, second, switched, tlwe }
    }
}
