//! The steps of column packing.

use std::sync::Arc;

use hush_he::{entities::ColumnMasks, params::RingContext};
use hush_math::{
    poly::{Coeff, Eval, Poly},
    ring::Ring,
};

use super::{BatchWords, LweBatch, LweOps, LweQueries, RingOps, RlweBatch, WordStore};
use crate::{OpsError, pack_shape::PackShape, reference::ByDefinition, steps, tiling::TiledDb};

/// The bytes of an entry of a pack column: a word in balanced digits.
pub const PACK_BYTES: usize = size_of::<u32>();

/// Half a base for every byte. The bytes of `x + BALANCED_HALVES`, each with its highest bit flipped, are the balanced digits of x,
/// for x from `-BALANCED_HALVES` to `u32::MAX - BALANCED_HALVES`.
pub const BALANCED_HALVES: u32 = 0x8080_8080;

/// The result of [`ColumnOps::chain_hint`] for the hint of one plaintext: everything that packing needs to know of the
/// plaintext's rows, computed before any query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainedHint {
    /// The pack columns: rows x 4N bytes read as s8, row-major. Bytes `4c ..` of a row are the balanced digits, lowest first, of
    /// the word that is multiplied by coefficient c of the rotation key.
    pub columns: Vec<u8>,
    /// The digit that is multiplied by the conjugation key: a polynomial in evaluation form.
    pub digit: Vec<u32>,
    /// The mask a of the packed ciphertext, in evaluation form.
    pub mask: Vec<u32>,
}

/// The polynomials of [`ChainedHint`] for every plaintext of a [`PackShape`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainPolys {
    /// The digits: `[plaintext][limb][slot]`.
    pub digits: Vec<u32>,
    /// The masks: `[plaintext][limb][slot]`; empty where nothing is folded.
    pub masks: Vec<u32>,
}

/// The steps of column packing, for `colpack-s` and `colpack`.
///
/// The mask a of a packed ciphertext is a function of the hint, and no query changes it. So packing is linear in the keys that
/// travel with a query, and its coefficients are known beforehand. They are stored as further columns of the table, and
/// [`ColumnOps::pack_columns`] is a second [`LweOps::lwe_fold`]. Source: InsPIRe (InspiRING) for the chain of key
/// switches. ReinsPIRe (ePrint 2026/1934) has packing as one matrix product, too.
pub trait ColumnOps: LweOps + RingOps {
    /// The public masks with this backend's tables for the chain.
    type ChainPlan: Send + Sync;
    /// The polynomials of all plaintexts in this backend's memory.
    type Chain: Send + Sync;

    /// Makes the tables of the chain from the public masks.
    fn open_masks(&self, ring: &Self::Ring, masks: &ColumnMasks) -> Result<Self::ChainPlan, OpsError>;

    /// Returns how many hints [`ColumnOps::chain_hint`] needs at once to keep the backend busy, at least one. More hints
    /// save no time, and each needs memory.
    fn chain_batch(&self) -> usize;

    /// Switches the hints of some plaintexts offline, each from N LWE ciphertexts to one RLWE ciphertext, by a chain of N - 1
    /// key switches of one digit. The digits become the pack columns.
    ///
    /// | name    | shape                          | unit                                                  |
    /// |---------|--------------------------------|-------------------------------------------------------|
    /// | `hints` | plaintexts x rows <= N, x N    | u32, mod 2^32, row-major; then zeros                  |
    /// | returns | plaintexts x [`ChainedHint`]   | as many rows of columns as the plaintext's hint has   |
    ///
    /// For each plaintext, with `a_i(X) = sum_j round(h_ij Q / 2^32) X^-j`, `A_e = (1/N) sum_i X^i a_i(X^e)`, `g_k = 5^k`, and the
    /// masks w and v:
    ///
    /// 1. `x_c = A_(+-g_(N/2-1))`, the sign + for c = 0 and - for c = 1; for k = N/2-2 .. 0:
    ///    `t = digit(x_c)`, `x_c = A_(+-g_k) + t w(X^(+-g_k))`.
    /// 2. `digit = digit(x_1)`, `mask = x_0 + digit v`.
    /// 3. In row r of the columns, the word of coefficient c of a key y is the integer factor with which y_c contributes to
    ///    coefficient r of `sum t y(X^(+-g_k))`.
    ///
    /// Error: `ColumnNoise::packing`. Cost: four passes of 2 N transforms (two limbs), and 8 transforms for each of the N/2
    /// steps. The steps are sequential, so plaintexts run side by side. Source: InsPIRe (InspiRING, offline), with one digit.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if a hint does not have 1 to N rows of N words; [`OpsError::PackColumns`] if an entry of any plaintext
    /// does not fit into [`PACK_BYTES`] balanced digits (at 9.8 standard deviations).
    fn chain_hint(
        &self,
        ring: &Self::Ring,
        plan: &Self::ChainPlan,
        hints: &[&Self::Words],
    ) -> Result<Vec<ChainedHint>, OpsError> {
        let context = self.context(ring);
        hints.iter().try_for_each(|hint| steps::chain_hint::check(context, hint.len()))?;
        self.run_chain_hint(ring, plan, hints)
    }

    /// Runs [`ColumnOps::chain_hint`].
    fn run_chain_hint(
        &self,
        ring: &Self::Ring,
        plan: &Self::ChainPlan,
        hints: &[&Self::Words],
    ) -> Result<Vec<ChainedHint>, OpsError>;

    /// Loads the polynomials of all plaintexts of `shape`. Without masks, nothing can be folded.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if their number is wrong, a word is not below its prime, or there are masks of more than 2N entries.
    fn open_chain(
        &self,
        ring: &Self::Ring,
        shape: &PackShape,
        polys: ChainPolys,
    ) -> Result<Self::Chain, OpsError> {
        steps::chain_hint::check_polys(self.context(ring), shape, &polys)?;
        self.run_open_chain(ring, shape, polys)
    }

    /// Runs [`ColumnOps::open_chain`].
    fn run_open_chain(
        &self,
        ring: &Self::Ring,
        shape: &PackShape,
        polys: ChainPolys,
    ) -> Result<Self::Chain, OpsError>;

    /// Returns the shape with which the chain was opened.
    fn chain_shape(&self, chain: &Self::Chain) -> PackShape;

    /// Returns whether the chain has masks, so that entries can be folded.
    fn has_masks(&self, chain: &Self::Chain) -> bool;

    /// Packs (step 3c): `b[q] = folded[q] + columns * keys[q] + round(digit z[q] 2^32 / Q_1)` modulo 2^32.
    ///
    /// | name           | shape      | unit                                                    |
    /// |----------------|------------|---------------------------------------------------------|
    /// | `columns`      | rows x 4N  | s8                                                      |
    /// | `folded`       | B x rows   | u32, mod 2^32                                           |
    /// | `keys`         | B x 4N     | u32, mod 2^32, from [`key_words`]            |
    /// | `conjugations` | B x 1      | z, polynomials modulo Q_1 in coefficient form           |
    /// | returns        | B x rows   | u32, mod 2^32: b of the packed ciphertexts, a coefficient a row |
    ///
    /// The product of a plaintext's digit and z is rounded half up; its coefficient j belongs to row j of the column.
    /// Error: `ColumnNoise::packing`. Cost: one pass over the columns, 4 N multiply-adds of s8 x u32 a row and query; a transform
    /// of each limb a query, and an inverse one a plaintext and query. Source: InsPIRe (InspiRING, online); ReinsPIRe has one
    /// matrix product, too.
    fn pack_columns(
        &self,
        ring: &Self::Ring,
        columns: &Self::Db,
        chain: &Self::Chain,
        folded: LweBatch<Self::Words>,
        keys: &LweQueries,
        conjugations: &[&Poly<Coeff>],
    ) -> Result<LweBatch<Self::Words>, OpsError> {
        let context = self.context(ring);
        let shape = self.chain_shape(chain);
        let tiling = self.tiling(columns);
        self.called(steps::pack_columns::check(context, &shape, tiling, &folded, keys, conjugations)?);
        self.run_pack_columns(ring, columns, chain, folded, keys, conjugations)
    }

    /// Runs [`ColumnOps::pack_columns`].
    fn run_pack_columns(
        &self,
        ring: &Self::Ring,
        columns: &Self::Db,
        chain: &Self::Chain,
        folded: LweBatch<Self::Words>,
        keys: &LweQueries,
        conjugations: &[&Poly<Coeff>],
    ) -> Result<LweBatch<Self::Words>, OpsError>;

    /// Folds the T' entries of each query to entry i (step 7h) with one RGSW ciphertext of `X^(2N i / T)`. T is the least power of
    /// two not below T', and entries from T' on are zero. With `c_k = 1/T sum_j X^(-2N j k / T) entry_j`, starts from
    /// `x = c_(T-1)` and sets `x = power [x] x + c_k` for k = T-2 .. 0 (Horner). Each plane of the entries is folded separately, in
    /// the same way.
    ///
    /// | name      | shape            | unit                                                       |
    /// |-----------|------------------|------------------------------------------------------------|
    /// | `packed`  | B x rows         | u32, mod 2^32, lifted to `round(b Q_1 / 2^32)`             |
    /// | `powers`  | B x 2 rows       | RGSW modulo Q_1; none if there is one entry                |
    /// | returns   | B x planes       | RLWE modulo Q_1                                            |
    ///
    /// Error: `ColumnNoise::folds`. Cost: `T - 1` external products a plane, and two transforms of each limb a query. Source:
    /// InsPIRe, which transforms the table to the spectrum instead.
    fn rgsw_power_fold(
        &self,
        ring: &Self::Ring,
        chain: &Self::Chain,
        packed: &LweBatch<Self::Words>,
        powers: PowerKeys<'_>,
    ) -> Result<RlweBatch<Self::Words>, OpsError> {
        let context = self.context(ring);
        let shape = self.chain_shape(chain);
        let has_masks = self.has_masks(chain);
        self.called(steps::rgsw_power_fold::check(context, &shape, has_masks, packed, powers)?);
        self.run_rgsw_power_fold(ring, chain, packed, powers)
    }

    /// Runs [`ColumnOps::rgsw_power_fold`].
    fn run_rgsw_power_fold(
        &self,
        ring: &Self::Ring,
        chain: &Self::Chain,
        packed: &LweBatch<Self::Words>,
        powers: PowerKeys<'_>,
    ) -> Result<RlweBatch<Self::Words>, OpsError>;
}

impl<B: ByDefinition> ColumnOps for B {
    type ChainPlan = ColumnMasks;
    type Chain = (PackShape, ChainPolys);

    fn open_masks(&self, _ring: &Arc<RingContext>, masks: &ColumnMasks) -> Result<ColumnMasks, OpsError> {
        Ok(masks.clone())
    }

    fn chain_batch(&self) -> usize {
        1
    }

    fn run_chain_hint(
        &self,
        ring: &Arc<RingContext>,
        masks: &ColumnMasks,
        hints: &[&BatchWords],
    ) -> Result<Vec<ChainedHint>, OpsError> {
        hints.iter().map(|hint| steps::chain_hint::reference(ring, masks, hint)).collect()
    }

    fn run_open_chain(
        &self,
        _ring: &Arc<RingContext>,
        shape: &PackShape,
        polys: ChainPolys,
    ) -> Result<Self::Chain, OpsError> {
        Ok((*shape, polys))
    }

    fn chain_shape(&self, (shape, _): &Self::Chain) -> PackShape {
        *shape
    }

    fn has_masks(&self, (_, polys): &Self::Chain) -> bool {
        !polys.masks.is_empty()
    }

    fn run_pack_columns(
        &self,
        ring: &Arc<RingContext>,
        columns: &TiledDb,
        chain: &Self::Chain,
        folded: LweBatch,
        keys: &LweQueries,
        conjugations: &[&Poly<Coeff>],
    ) -> Result<LweBatch, OpsError> {
        Ok(steps::pack_columns::reference(ring, columns, chain, folded, keys, conjugations))
    }

    fn run_rgsw_power_fold(
        &self,
        ring: &Arc<RingContext>,
        chain: &Self::Chain,
        packed: &LweBatch,
        powers: PowerKeys<'_>,
    ) -> Result<RlweBatch, OpsError> {
        Ok(steps::rgsw_power_fold::reference(ring, chain, packed, powers))
    }
}

/// The RGSW ciphertexts of a batch. Their gadget has one digit, so each has two rows: the row multiplied by the digit of a, then
/// the row multiplied by the digit of b.
#[derive(Clone, Copy, Debug)]
pub struct PowerKeys<'a> {
    /// The halves a of the rows in evaluation form, the same for all queries.
    pub masks: &'a [Poly<Eval>; 2],
    /// The halves b of the rows of each query, in coefficient form; `None` if there is one entry.
    pub bodies: &'a [Option<&'a [Poly<Coeff>; 2]>],
}

/// Returns the words by which the pack columns are multiplied. Word `4c + i` of a query is `round(2^(8i) t_c / 2^32)` modulo 2^32,
/// half up, for the N = `degree` coefficients t of its rotation key, fractions of Q modulo 2^64. This takes only shifts, so no
/// backend overrides it.
pub fn key_words(degree: usize, rotations: &[&[u64]]) -> LweQueries {
    let cols = PACK_BYTES * degree;
    let mut words = Vec::with_capacity(rotations.len() * cols);
    for &rotation in rotations {
        for &fraction in rotation {
            for i in 0..PACK_BYTES {
                words.push(((fraction << (8 * i)).wrapping_add(1 << 31) >> 32) as u32);
            }
        }
    }
    LweQueries { cols, words }
}

/// Returns the polynomial with the coefficients `round(word Q / 2^32)`, then zeros, as [`ColumnOps::rgsw_power_fold`] lifts words.
pub fn lift_words(ring: &Ring, words: &[u32]) -> Poly<Coeff> {
    let mut poly = ring.zero();
    for limb in 0..ring.limbs() {
        for (residue, &word) in poly.limb_mut(limb).iter_mut().zip(words) {
            let lifted = (u128::from(word) * ring.rns().product() + (1 << 31)) >> 32;
            *residue = ring.rns().reduce(lifted, limb);
        }
    }
    poly
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_words_are_rounded_multiples() {
        let fractions =
            [0, 1, u64::MAX, 1 << 31, (1 << 31) - 1, 0x1234_5678_9abc_def0, 1 << 63, 0xffff_ffff_8000_0000];
        let words = key_words(fractions.len(), &[&fractions, &fractions[..]]);
        assert_eq!((words.cols, words.batch()), (4 * fractions.len(), 2));
        for (index, &word) in words.words.iter().enumerate() {
            let c = index / 4 % fractions.len();
            let i = index % 4;
            // The exact value 256^i f / 2^32, without a modulus.
            let exact = u128::from(fractions[c]) << (8 * i);
            assert_eq!(word, ((exact + (1 << 31)) >> 32) as u32, "{c}, {i}");
        }
    }
}
