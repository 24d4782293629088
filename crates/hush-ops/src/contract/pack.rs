//! The steps between LWE and RLWE.

use std::{ops::Range, sync::Arc};

use hush_he::params::{ResponseBits, RingContext};

use super::{BatchWords, LweBatch, LweOps, RingOps, RlweBatch, WordStore};
use crate::{
    OpsError, ntt_tiling::NttTiledDb, pack_shape::PackShape, reference::ByDefinition, steps, tiling::TiledDb,
};

/// The steps that pack LWE ciphertexts, for `exppack-s`, `exppack-d`, `double-pack` and `hybrid`.
///
/// LWE words modulo 2^32 are rounded to the plaintext modulus `t = 2^b` of the ring: `(w + 2^(31 - b)) >> (32 - b)`
/// modulo `2^b`, then centred.
pub trait PackOps: LweOps + RingOps {
    /// Lifts the hint to the form that [`PackOps::pack`] multiplies (step 3, offline). Polynomial `H_i`, i < n, of a column has the
    /// rounded words `hint[row][i]` of the column's rows as coefficients.
    ///
    /// | name      | shape                          | unit                                  |
    /// |-----------|--------------------------------|---------------------------------------|
    /// | `hint`    | `shape.rows_of(columns)` x n   | u32, mod 2^32, row-major              |
    /// | returns   | n rows x columns               | evaluation form modulo the kept primes |
    ///
    /// Cost: n transforms a column and limb. Source: VIPIR sections 3.5 and 3.6, step (3), offline part.
    fn lift_hint(
        &self,
        ring: &Self::Ring,
        hint: &Self::Words,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<Self::NttDb, OpsError> {
        self.called(steps::lift_hint::check(self.context(ring), hint.len(), n, shape, &columns)?);
        self.run_lift_hint(ring, hint, n, shape, columns)
    }

    /// Runs [`PackOps::lift_hint`].
    fn run_lift_hint(
        &self,
        ring: &Self::Ring,
        hint: &Self::Words,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<Self::NttDb, OpsError>;

    /// Packs N LWE ciphertexts into one RLWE ciphertext (step 3, ExpPack):
    /// `out[q][column] = sum_i H_i[column] C_i[q] + (0, Delta G[q][column])`.
    ///
    /// | name        | shape       | unit                                                       |
    /// |-------------|-------------|------------------------------------------------------------|
    /// | `hint`      | n x columns | evaluation form, from [`PackOps::lift_hint`]               |
    /// | `folded`    | B x rows    | u32, mod 2^32: G has a column's rounded words as coefficients |
    /// | `selectors` | B x n       | RLWE modulo Q_1, of the LWE secret's coefficients times Delta |
    /// | returns     | B x columns | RLWE modulo Q_1, phase `Delta` times that of the LWE words |
    ///
    /// `hint` holds the columns `columns` of `shape`.
    ///
    /// Error: `sqrt(n N) t / sqrt(12)` times that of a selector (`PackNoise`), instead of n times as in the paper's appendix
    /// D.3. Cost: one pass over the hint; two products of words an entry and query. Source: VIPIR section 3.5 and
    /// appendix C, step (3).
    fn pack(
        &self,
        ring: &Self::Ring,
        hint: &Self::NttDb,
        folded: &LweBatch<Self::Words>,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch<Self::Words>],
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError> {
        let context = self.context(ring);
        let tiling = self.ntt_tiling(hint);
        self.called(steps::pack::check(context, tiling, folded, shape, &columns, selectors)?);
        self.run_pack(ring, hint, folded, shape, columns, selectors)
    }

    /// Runs [`PackOps::pack`].
    fn run_pack(
        &self,
        ring: &Self::Ring,
        hint: &Self::NttDb,
        folded: &LweBatch<Self::Words>,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch<Self::Words>],
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError>;

    /// Adds the ciphertexts of `part` to those of `sum`, from ciphertext `first` of `sum` on.
    fn add_rlwe(
        &self,
        ring: &Self::Ring,
        sum: &mut RlweBatch<Self::Words>,
        first: usize,
        part: &RlweBatch<Self::Words>,
    ) -> Result<(), OpsError> {
        self.called(steps::add_rlwe::check(self.context(ring), sum, first, part)?);
        self.run_add_rlwe(ring, sum, first, part)
    }

    /// Runs [`PackOps::add_rlwe`].
    fn run_add_rlwe(
        &self,
        ring: &Self::Ring,
        sum: &mut RlweBatch<Self::Words>,
        first: usize,
        part: &RlweBatch<Self::Words>,
    ) -> Result<(), OpsError>;

    /// Turns RLWE ciphertexts into a new byte database (step 4). Each ciphertext is switched to the widths of an answer, so that
    /// coefficient j becomes the W bytes ([`switched_bytes`]) of `a + 2^(bits of a) b`, least significant first. Byte k goes to row
    /// `(plane N + j) W + k`.
    ///
    /// | name     | shape                     | unit            |
    /// |----------|---------------------------|-----------------|
    /// | `packed` | entries x planes          | RLWE modulo Q_1 |
    /// | returns  | `W N planes` x entries    | s8              |
    ///
    /// Source: VIPIR sections 3.2 and 3.4, step (4). VIPIR has 8 N rows (two halves modulo a 29-bit prime); here halves of 20 and
    /// 12 bits make 4 N.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if `packed` is not whole entries, or the widths of an answer have no [`switched_bytes`].
    fn reinterpret_rlwe(
        &self,
        ring: &Self::Ring,
        packed: &RlweBatch<Self::Words>,
        planes: usize,
    ) -> Result<Self::Db, OpsError> {
        let step = steps::reinterpret_rlwe::check(self.context(ring), packed, planes)?;
        self.called(step);
        self.run_reinterpret_rlwe(ring, packed, step.db.rows() / size_of::<u32>())
    }

    /// Runs [`PackOps::reinterpret_rlwe`] for entries of `items` words of 32 bits.
    fn run_reinterpret_rlwe(
        &self,
        ring: &Self::Ring,
        packed: &RlweBatch<Self::Words>,
        items: usize,
    ) -> Result<Self::Db, OpsError>;
}

impl<B: ByDefinition> PackOps for B {
    fn run_lift_hint(
        &self,
        ring: &Arc<RingContext>,
        hint: &BatchWords,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<NttTiledDb, OpsError> {
        steps::lift_hint::reference(ring, hint, n, shape, columns)
    }

    fn run_pack(
        &self,
        ring: &Arc<RingContext>,
        hint: &NttTiledDb,
        folded: &LweBatch,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let mut packed = self.run_rlwe_fold(ring, hint, selectors)?;
        steps::pack::add_folded(ring, folded, shape, columns, &mut packed);
        Ok(packed)
    }

    fn run_add_rlwe(
        &self,
        ring: &Arc<RingContext>,
        sum: &mut RlweBatch,
        first: usize,
        part: &RlweBatch,
    ) -> Result<(), OpsError> {
        steps::add_rlwe::reference(ring, sum, first, part);
        Ok(())
    }

    fn run_reinterpret_rlwe(
        &self,
        ring: &Arc<RingContext>,
        packed: &RlweBatch,
        items: usize,
    ) -> Result<TiledDb, OpsError> {
        Ok(steps::reinterpret_rlwe::reference(ring, packed, items))
    }
}

/// Returns the bytes of both halves of a switched coefficient, which [`PackOps::reinterpret_rlwe`] splits; `None` unless they
/// are whole words of 32 bits.
pub fn switched_bytes(bits: ResponseBits) -> Option<usize> {
    let total = bits.a + bits.b;
    total.is_multiple_of(u32::BITS).then_some(total as usize / 8)
}
