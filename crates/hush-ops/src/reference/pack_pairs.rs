//! Two ciphertexts to one mask and two bodies.

use hush_he::{algorithms::decompose, entities::EvaluationKeys, params::RingContext};
use hush_math::poly::Poly;

use super::ciphertexts::ciphertext;
use crate::contract::{BatchWords, RlweBatch};

/// As [`crate::contract::RingOps::pack_pairs`], for one query.
pub(super) fn pack_pairs(
    ring: &RingContext,
    keys: &EvaluationKeys,
    batch: &RlweBatch,
    pairs: usize,
) -> BatchWords {
    (0..pairs).flat_map(|pair| pack_pair(ring, keys, batch, 2 * pair)).collect()
}

/// Three polynomials of the ciphertexts `first` and `first + 1`.
fn pack_pair(ring: &RingContext, keys: &EvaluationKeys, batch: &RlweBatch, first: usize) -> Vec<u32> {
    let (kept, gadget) = (ring.kept(), ring.params().pack_gadget());
    let [x, y] = [first, first + 1].map(|index| ciphertext(kept, batch.ciphertext(index)));
    let (mut a, mut b) = (kept.zero(), [x.b, y.b]);
    for (a_i, rows) in [x.a, y.a].iter().zip(&keys.pack) {
        for (digit, row) in decompose(kept, a_i, gadget).iter().zip(rows) {
            kept.mul_add(&mut a, digit, &row.a);
            b.iter_mut().zip(&row.b).for_each(|(b, row)| kept.mul_add(b, digit, row));
        }
    }
    let [b0, b1] = b;
    [a, b0, b1].into_iter().flat_map(Poly::into_words).collect()
}
