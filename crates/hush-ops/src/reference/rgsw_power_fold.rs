//! (7h) Fold the entries to one, with a single RGSW ciphertext.

use hush_he::{
    algorithms::external_product,
    entities::{RgswCiphertext, RlweCiphertext},
    params::RingContext,
};
use hush_math::{
    poly::{Coeff, Eval, Poly},
    ring::Ring,
};

use super::ciphertexts::{add, batch};
use crate::{
    contract::{ChainPolys, LweBatch, PowerKeys, RlweBatch, lift_words, poly_words},
    pack_shape::PackShape,
};

/// As [`crate::contract::ColumnOps::rgsw_power_fold`].
pub(super) fn rgsw_power_fold(
    ring: &RingContext,
    (shape, polys): &(PackShape, ChainPolys),
    packed: &LweBatch,
    powers: PowerKeys<'_>,
) -> RlweBatch {
    let gadget = ring.params().fold_gadget();
    let queries = packed.words.chunks_exact(shape.rows()).zip(powers.bodies);
    let folded = queries.flat_map(|(words, &bodies)| {
        let power = bodies.map(|bodies| rgsw(ring.kept(), powers.masks, bodies));
        (0..shape.planes()).map(move |plane| {
            let entries = entries(ring, shape, polys, words, plane);
            let mut terms = spectrum(ring.kept(), &entries).into_iter().rev();
            let mut sum = terms.next().expect("at least one entry");
            for term in terms {
                let power = power.as_ref().expect("several entries have one");
                sum = external_product(ring.kept(), power, &sum, gadget);
                add(ring.kept(), &mut sum, &term);
            }
            sum
        })
    });
    batch(ring.kept(), folded)
}

/// The RGSW ciphertext of rows `(mask, body)`.
fn rgsw(ring: &Ring, masks: &[Poly<Eval>; 2], bodies: &[Poly<Coeff>; 2]) -> RgswCiphertext {
    let row = |i: usize| vec![RlweCiphertext { a: masks[i].clone(), b: ring.forward(bodies[i].clone()) }];
    RgswCiphertext { bottom: row(0), top: row(1) }
}

/// The ciphertexts of one plane of every entry.
fn entries(
    ring: &RingContext,
    shape: &PackShape,
    polys: &ChainPolys,
    words: &[u32],
    plane: usize,
) -> Vec<RlweCiphertext> {
    let (kept, poly) = (ring.kept(), poly_words(ring));
    let columns = (plane..shape.plaintexts()).step_by(shape.planes());
    let entry = |column: usize| RlweCiphertext {
        a: Poly::from_words(polys.masks[column * poly..][..poly].to_vec(), kept.degree()),
        b: kept.forward(lift_words(kept, &words[shape.plaintext_rows(column)])),
    };
    columns.map(entry).collect()
}

/// `c_k = 1/T sum_j X^(-2N j k / T) entry_j`, k < T, for T the power of two that is not below the number of entries.
fn spectrum(ring: &Ring, entries: &[RlweCiphertext]) -> Vec<RlweCiphertext> {
    let count = entries.len().next_power_of_two();
    let step = 2 * ring.degree() / count;
    let term = |k: usize| {
        let mut sum = RlweCiphertext { a: ring.zero(), b: ring.zero() };
        for (j, entry) in entries.iter().enumerate() {
            let factor = scaled_monomial(
                ring,
                (2 * ring.degree() - step * (j * k % count)) % (2 * ring.degree()),
                count,
            );
            ring.mul_add(&mut sum.a, &factor, &entry.a);
            ring.mul_add(&mut sum.b, &factor, &entry.b);
        }
        sum
    };
    (0..count).map(term).collect()
}

/// `X^power / divisor`.
fn scaled_monomial(ring: &Ring, power: usize, divisor: usize) -> Poly<Eval> {
    let mut poly: Poly<Coeff> = ring.zero();
    for (limb, p) in ring.moduli().iter().enumerate() {
        let inverse = p.inverse(p.reduce(divisor as u64));
        let coefficient = if power < ring.degree() { inverse } else { p.neg(inverse) };
        poly.limb_mut(limb)[power % ring.degree()] = coefficient;
    }
    ring.forward(poly)
}
