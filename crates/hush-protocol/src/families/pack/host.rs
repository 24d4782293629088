//! The operands that the steps of a batch share, and the steps that pages of packed answers have in common.

use std::ops::Range;

use hush_he::entities::{PublicMatrix, PublicSeed};
use hush_ops::{
    contract::{LweBatch, PackOps, RingOps, RlweBatch, Steps},
    ntt_tiling::NttTiledDb,
    pack_shape::PackShape,
};

use crate::{
    ProtocolError,
    facts::LIFTED_FILE,
    pack_page::{PackPage, Packed},
    pack_table::PackTable,
    page::{Files, Host},
    response::{ciphertext_words, respond},
    ring_keys::RingScheme,
};

/// The operands that the steps of a batch share.
pub struct PackHost<'a, B: RingOps> {
    /// The backend.
    pub backend: &'a B,
    /// The parameters.
    pub table: &'a PackTable,
    /// The seed of the public matrices.
    pub seed: PublicSeed,
    /// The RLWE set on the backend.
    pub scheme: &'a RingScheme<B>,
}

/// Rows that are packed together.
pub struct PackedRows<B: RingOps> {
    /// The range of entries.
    pub units: Range<usize>,
    /// The hint of their plaintexts in evaluation form.
    hint: B::NttDb,
    shape: PackShape,
}

impl<'a, B: Steps> PackHost<'a, B> {
    pub(super) fn new<P: PackPage>(host: &Host<'a, Packed<P>, B>) -> Self {
        Self { backend: host.backend, table: host.table, seed: host.seed, scheme: host.scheme }
    }
}

impl<B: PackOps> PackHost<'_, B> {
    /// Opens the rows of the entries `units` with their hint.
    pub(super) fn open_rows<F: Files>(
        &self,
        units: Range<usize>,
        files: &F,
    ) -> Result<PackedRows<B>, F::Error> {
        let table = self.table;
        let all = table.first_shape();
        let shape = table.part_shape(&units);
        let columns = [units.start * all.planes()..units.end * all.planes()];
        let bytes = files.part(LIFTED_FILE, &table.hint_tiling().bytes_of_columns(&columns))?;
        let hint = NttTiledDb::new(table.hint_tiling(), bytes);
        let hint = hint.and_then(|hint| self.backend.open_ntt_db(&self.scheme.ring, hint.columns(&columns)));
        Ok(PackedRows { units, hint: hint.map_err(ProtocolError::from)?, shape })
    }

    /// Returns the public matrix of the second dimension.
    pub(crate) fn second_matrix(&self) -> PublicMatrix {
        PublicMatrix::new(self.seed, self.table.second_matrix())
    }

    /// (3) Packs the first fold of a batch: a ciphertext for every plane of every entry of `rows`.
    pub(crate) fn pack_first(
        &self,
        rows: &PackedRows<B>,
        folded: &LweBatch<B::Words>,
        selectors: &[&RlweBatch<B::Words>],
    ) -> Result<Vec<RlweBatch<B::Words>>, ProtocolError> {
        let PackedRows { hint, shape, .. } = rows;
        let plaintexts = 0..shape.plaintexts();
        Ok(self.backend.pack(&self.scheme.ring, hint, folded, shape, plaintexts, selectors)?)
    }

    /// (3) Packs `columns` of the second shape for one query, with a hint that depends on the query. `hint` has the rows of
    /// these columns, n words each. `folded` has all rows of the shape.
    pub(crate) fn pack_online(
        &self,
        folded: &LweBatch<B::Words>,
        hint: &B::Words,
        columns: Range<usize>,
        selectors: &RlweBatch<B::Words>,
    ) -> Result<RlweBatch<B::Words>, ProtocolError> {
        let shape = self.table.second_shape();
        let n = self.table.params().lwe().n();
        let ring = &self.scheme.ring;
        let hint = self.backend.lift_hint(ring, hint, n, &shape, columns.clone())?;
        let mut packed = self.backend.pack(ring, &hint, folded, &shape, columns, &[selectors])?;
        Ok(packed.remove(0))
    }

    /// Packs, switches and joins the remaining ciphertexts of each query to its answer.
    pub(crate) fn respond(
        &self,
        keys: &[&B::Keys],
        ciphertexts: &[RlweBatch<B::Words>],
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let ciphertexts: Vec<_> = ciphertexts.iter().collect();
        respond(self.backend, &self.scheme.ring, &self.scheme.context, keys, &ciphertexts)
    }

    /// Returns the words of a ciphertext modulo Q_1.
    pub(crate) fn ciphertext_words(&self) -> usize {
        ciphertext_words(self.table.params().ring())
    }
}

/// Returns the words of the ciphertexts of each query.
pub(crate) fn words_of<W>(ciphertexts: Vec<RlweBatch<W>>) -> Vec<W> {
    ciphertexts.into_iter().map(|ciphertexts| ciphertexts.words).collect()
}
