//! The steps over rings without encryption: ciphertexts are `(0, m)`.

use hush_he::{entities::RlweCiphertext, params::RingContext};
use hush_math::poly::{Eval, Poly};
use hush_ops::{
    contract::{Expanded, RlweBatch, ciphertext_words, poly_words},
    ntt_tiling::NttTiledDb,
};

/// Folds the rows that are selected.
pub(super) fn fold(ring: &RingContext, db: &NttTiledDb, selectors: &RlweBatch) -> RlweBatch {
    let tiling = db.tiling();
    let poly = poly_words(ring);
    let ciphertext_words = ciphertext_words(ring);
    let mut words = vec![0; tiling.columns() * ciphertext_words];
    for (row, selector) in selectors.words.chunks_exact(ciphertext_words).enumerate() {
        let selector = &selector[poly..];
        if selector.iter().all(|&word| word == 0) {
            continue;
        }
        for (column, out) in words.chunks_exact_mut(ciphertext_words).enumerate() {
            for (index, (out, &selector)) in out[poly..].iter_mut().zip(selector).enumerate() {
                let limb = index / tiling.degree();
                let slot = index % tiling.degree();
                let p = ring.kept().moduli()[limb];
                *out = p.add(*out, p.mul(db.at(limb, slot, row, column), selector));
            }
        }
    }
    RlweBatch { ciphertext_words, words: words.into() }
}

/// Returns the messages of a query, as ciphertexts without encryption.
pub(super) fn expand(ring: &RingContext, query: &RlweCiphertext, rows: usize, folds: usize) -> Expanded {
    let params = ring.params();
    let full = ring.full();
    let b = full.inverse(query.b.clone());
    let leaves = params.leaves(rows, folds);
    let positions = params.query_positions(0..leaves).step_by(params.query_words(1));
    let messages: Vec<u128> = positions
        .map(|position| {
            let message = full.rns().lift(|limb: usize| {
                let p = full.moduli()[limb];
                p.mul(b.limb(limb)[position], p.pow(2, params.levels().len() as u64))
            });
            let factor = u128::from(params.dropped_factor());
            (message + factor / 2) / factor % ring.kept().rns().product()
        })
        .collect();
    let (selectors, bits) = messages.split_at(rows);
    let gadget = params.fold_gadget();
    let bits = bits.chunks_exact(gadget.digits).map(|words| {
        let top = words.iter().copied();
        constants(ring, std::iter::repeat_n(0, gadget.digits).chain(top))
    });
    Expanded { bits: bits.collect(), selectors: constants(ring, selectors.iter().copied()) }
}

/// Returns the entry that RGSW ciphertexts without encryption select.
pub(super) fn entry_of_bits(ring: &RingContext, bits: &[RlweBatch]) -> usize {
    // A bit of 1 makes its last row the largest g_k; one of 0 makes it zero but for rounding.
    let gadget = ring.params().fold_gadget();
    let half = 1u128 << (gadget.log2_factor(gadget.digits - 1) - 1);
    let mut index = 0;
    for bit in bits.iter().rev() {
        let b = &bit.ciphertext(bit.count() - 1)[poly_words(ring)..];
        let constant = ring.kept().rns().lift_centred(|limb| b[limb * ring.params().degree()]);
        index = index << 1 | usize::from(constant.unsigned_abs() > half);
    }
    index
}

/// Ciphertexts `(0, m)` of constant polynomials modulo Q_1.
fn constants(ring: &RingContext, messages: impl Iterator<Item = u128>) -> RlweBatch {
    let kept = ring.kept();
    let ciphertext_words = ciphertext_words(ring);
    let mut words = Vec::new();
    for message in messages {
        words.resize(words.len() + ciphertext_words / 2, 0);
        // The value of a constant polynomial is the same in every slot.
        let residues = (0..kept.limbs()).map(|limb| vec![kept.rns().reduce(message, limb); kept.degree()]);
        words.extend(Poly::<Eval>::from_words(residues.flatten().collect(), kept.degree()).into_words());
    }
    RlweBatch { ciphertext_words, words: words.into() }
}
