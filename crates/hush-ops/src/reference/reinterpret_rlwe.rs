//! (4) Make RLWE words a new byte database.

use hush_he::params::RingContext;

use super::{mod_switch::switched, reinterpret_lwe::reinterpret_lwe};
use crate::{contract::RlweBatch, tiling::TiledDb};

/// As [`crate::contract::PackOps::reinterpret_rlwe`], for entries of `items` words.
pub(super) fn reinterpret_rlwe(ring: &RingContext, packed: &RlweBatch, items: usize) -> TiledDb {
    let bits = ring.params().response_bits();
    let mut words = Vec::new();
    for index in 0..packed.count() {
        let halves = switched(ring, &packed.words, 2 * index, &[bits.a, bits.b]);
        for (a, b) in halves[0].iter().zip(&halves[1]) {
            let bytes = u128::from(*a) | u128::from(*b) << bits.a;
            words.extend((0..(bits.a + bits.b) / u32::BITS).map(|word| (bytes >> (32 * word)) as u32));
        }
    }
    reinterpret_lwe(&words, 1, items, size_of::<u32>(), words.len() / items)
}
