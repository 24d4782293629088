//! The steps between LWE and RLWE by their definitions.

use std::{ops::Range, sync::Arc};

use hush_he::params::RingContext;

use super::{Reference, pack_shapes, ring_shapes};
use crate::{
    OpsError,
    contract::{BatchWords, LweBatch, LweOps, PackOps, RingOps, RlweBatch},
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
    tiling::TiledDb,
};

impl PackOps for Reference {
    fn lift_hint(
        &self,
        ring: &Arc<RingContext>,
        hint: &BatchWords,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<NttTiledDb, OpsError> {
        pack_shapes::check_lift(ring, hint.len(), n, shape, &columns)?;
        let tiling = NttTiling::new(shape.degree(), ring.kept().limbs(), n, columns.len())?;
        let first = shape.rows_of(columns.clone()).start;
        let mut symbols = Vec::with_capacity(n * columns.len() * shape.degree());
        for i in 0..n {
            for column in columns.clone() {
                let words = shape.plaintext_rows(column).map(|row| hint[(row - first) * n + i]);
                symbols.extend(plaintext(ring, words));
            }
        }
        Ok(NttTiledDb::from_polys(tiling, &self.ntt_db(ring, &symbols)?))
    }

    fn pack(
        &self,
        ring: &Arc<RingContext>,
        hint: &NttTiledDb,
        folded: &LweBatch,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        pack_shapes::check_pack(ring, hint.tiling(), folded, shape, &columns, selectors)?;
        let mut packed = self.rlwe_fold(ring, hint, selectors)?;
        let (kept, poly) = (ring.kept(), ring_shapes::poly_words(ring));
        let delta: Vec<u32> = (0..kept.limbs()).map(|limb| kept.rns().reduce(ring.delta(), limb)).collect();
        for (packed, words) in packed.iter_mut().zip(folded.words.chunks_exact(folded.rows)) {
            for (column, ciphertext) in columns.clone().zip(packed.words.chunks_exact_mut(2 * poly)) {
                let rows = shape.plaintext_rows(column);
                let g = self.ntt_db(ring, &plaintext(ring, words[rows].iter().copied()))?;
                for (index, (b, g)) in ciphertext[poly..].iter_mut().zip(g).enumerate() {
                    let limb = index / kept.degree();
                    let p = kept.moduli()[limb];
                    *b = p.add(*b, p.mul(g, delta[limb]));
                }
            }
        }
        Ok(packed)
    }

    fn add_rlwe(
        &self,
        ring: &Arc<RingContext>,
        sum: &mut RlweBatch,
        first: usize,
        part: &RlweBatch,
    ) -> Result<(), OpsError> {
        pack_shapes::check_add(ring, sum, first, part)?;
        let kept = ring.kept();
        let limbs = sum.words[first * sum.ciphertext_words..].chunks_exact_mut(kept.degree());
        for (index, (sum, part)) in limbs.zip(part.words.chunks_exact(kept.degree())).enumerate() {
            let p = kept.moduli()[index % kept.limbs()];
            sum.iter_mut().zip(part).for_each(|(sum, &part)| *sum = p.add(*sum, part));
        }
        Ok(())
    }

    fn reinterpret_rlwe(
        &self,
        ring: &Arc<RingContext>,
        packed: &RlweBatch,
        planes: usize,
    ) -> Result<TiledDb, OpsError> {
        let items = pack_shapes::check_reinterpret(ring, packed, planes)?;
        let bits = ring.params().response_bits();
        let mut words = Vec::new();
        for index in 0..packed.count() {
            let halves = 2 * index..2 * index + 2;
            let halves = self.mod_switch(ring, &[&packed.words], halves, &[bits.a, bits.b])?.remove(0);
            for (a, b) in halves[0].iter().zip(&halves[1]) {
                let bytes = u128::from(*a) | u128::from(*b) << bits.a;
                words.extend((0..(bits.a + bits.b) / u32::BITS).map(|word| (bytes >> (32 * word)) as u32));
            }
        }
        self.reinterpret_lwe(&words.into(), items, size_of::<u32>())
    }
}

/// `words` rounded to the plaintext modulus, as the symbols of a plaintext.
fn plaintext(ring: &RingContext, words: impl Iterator<Item = u32>) -> Vec<u32> {
    let bits = ring.params().plaintext_bits();
    let mut symbols: Vec<u32> = words.map(|word| round_word_up(word, bits)).collect();
    symbols.resize(ring.params().degree(), 0);
    symbols
}

/// `word` rounded to its top `bits` bits, half up, modulo `2^bits`.
pub fn round_word_up(word: u32, bits: u32) -> u32 {
    word.wrapping_add(1 << (31 - bits)) >> (32 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_rounded_half_up() {
        assert_eq!([0, 0x1fff, 0x2000, 0x5fff, 0x6000].map(|word| round_word_up(word, 18)), [0, 0, 1, 1, 2]);
        assert_eq!(round_word_up(u32::MAX, 18), 0);
        assert_eq!(round_word_up(0xffff_dfff, 18), (1 << 18) - 1);
    }
}
