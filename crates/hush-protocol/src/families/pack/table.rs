//! The parameters of a table whose answers are packed, and every size that follows from them.
//!
//! The blocks that share a plaintext are defined in `entry_layout.rs`.

use std::ops::Range;

use hush_he::{
    codec::packed_bytes,
    entities::{MatrixDomain, MatrixShape},
    params::{LweNoise, PackNoise, PackParams, Widths},
};
use hush_ops::{
    contract::switched_bytes,
    ntt_tiling::NttTiling,
    pack_shape::PackShape,
    tiling::{GROUP_ROWS, Tiling},
};

use crate::{
    ProtocolError,
    entry_layout::{EntryLayout, most_lanes},
    facts::SegmentRule,
    registry::Protocol,
    response::response_bytes,
    table::{
        MAX_ANSWER_BYTES, MAX_COLUMNS, MAX_DB_ROWS, MAX_SLOT_BYTES, SegmentShape, TableShape, check_failure,
        check_kept, check_limit, fewest_query_bits, powers_below,
    },
    wire::{KEY_ID_BYTES, QuerySizes},
};

/// The number of bytes into which `exppack-d` cuts a word of the first fold for the second fold.
pub(crate) const DIGITS: usize = 2;
/// The number of plaintexts that `double-pack` packs at a time: the four of a plane, which are one tile of a hint.
const PART_COLUMNS: usize = 4;
/// The longest slot of `exppack-d`, in bytes. Its hint grows by about 25 MiB with every byte of a slot.
pub const MAX_EXPPACK_D_SLOT: usize = 64;

/// The facts in which the protocols that pack with evaluation keys differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackSpec {
    /// The protocol.
    pub protocol: Protocol,
    /// The selection of a query's second vector.
    pub second: Second,
    /// Whether entries are folded to one by the bits of the entry.
    pub folds: bool,
}

/// The selection of a query's second vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// There is no second vector.
    None,
    /// A block. The second fold is over the first fold's hint and words, and all of its rows are packed.
    Block,
    /// An entry. The second fold is over the ciphertexts of the entries.
    Entry,
}

/// Checked parameters of a table whose answers are packed. They determine every size on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackTable {
    spec: PackSpec,
    params: PackParams,
    shape: TableShape,
    query_bits: u32,
    /// The columns of the queries: the table's own, or those of the base.
    asked_columns: usize,
    /// The number of entries of a segment beside the base. `None` in the base.
    entries: Option<usize>,
    /// Whether whoever finishes a query packs all rows for it, in place of every part its own rows for all queries.
    packs_by_query: bool,
}

impl PackTable {
    /// Creates a table with the fewest bits of query words that decode. Checks limits and noise.
    pub fn new(spec: PackSpec, params: PackParams, shape: TableShape) -> Result<Self, ProtocolError> {
        check_shape(spec, &params, shape)?;
        if params.lwe().full_words() {
            return Self::with_query_bits(spec, params, shape, 32);
        }
        let query_bits =
            fewest_query_bits(|query_bits| Self::unchecked(spec, params, shape, query_bits).sigmas());
        Self::with_query_bits(spec, params, shape, query_bits)
    }

    /// Creates a table with the given bits of query words. Checks limits and noise.
    ///
    /// # Errors
    /// [`ProtocolError::Limit`] if the shape is out of range. [`ProtocolError::SlotTooLong`] if slots of `exppack-d` exceed
    /// [`MAX_EXPPACK_D_SLOT`]. [`ProtocolError::TooNoisy`] if an answer would fail with probability above 2^-64.
    pub fn with_query_bits(
        spec: PackSpec,
        params: PackParams,
        shape: TableShape,
        query_bits: u32,
    ) -> Result<Self, ProtocolError> {
        check_limit("bits of a query word", query_bits as usize, 32)?;
        check_shape(spec, &params, shape)?;
        Self::unchecked(spec, params, shape, query_bits).checked()
    }

    fn unchecked(spec: PackSpec, params: PackParams, shape: TableShape, query_bits: u32) -> Self {
        let packs_by_query = spec.second == Second::Block;
        Self { spec, params, shape, query_bits, asked_columns: shape.columns, entries: None, packs_by_query }
    }

    /// Returns the table whose rows are packed by whoever finishes a query.
    pub(crate) fn packed_by_query(self) -> Self {
        Self { packs_by_query: true, ..self }
    }

    /// Returns whether whoever finishes a query packs all rows for it.
    pub(crate) fn packs_by_query(&self) -> bool {
        self.packs_by_query
    }

    /// Returns a segment that is asked with the queries of this table.
    ///
    /// # Errors
    /// The errors of [`PackTable::with_query_bits`]. [`ProtocolError::Limit`] if this table's queries cannot ask the segment.
    pub fn segment(&self, segment: SegmentShape) -> Result<Self, ProtocolError> {
        let SegmentShape { shape, entries } = segment;
        check_shape(self.spec, &self.params, shape)?;
        let most = match self.spec.second {
            Second::Block => 1,
            _ if self.chooses_entries() => most_lanes(self.params.ring().degree(), shape.slot_bytes),
            _ => MAX_DB_ROWS,
        };
        segment.check(&self.segment_rule(), most)?;
        Self { shape, asked_columns: self.shape.columns, entries: Some(entries), ..*self }.checked()
    }

    fn checked(self) -> Result<Self, ProtocolError> {
        let table = self;
        let Self { params, shape, .. } = self;
        check_limit("blocks or entries (a query word for each)", table.second_words().max(1), MAX_COLUMNS)?;
        check_limit("secret and fold digits", table.leaves(), params.ring().max_leaves())?;
        check_kept("bytes of the hint (use more columns)", table.hint_tiling().stored_bytes())?;
        check_limit("bytes of an answer (use hybrid)", table.answer_bytes(), MAX_ANSWER_BYTES)?;
        check_failure(table.log2_failure(), shape, params.name())?;
        Ok(table)
    }

    /// Returns the facts in which the protocols differ.
    pub fn spec(&self) -> &PackSpec {
        &self.spec
    }

    /// Returns the parameter set.
    pub fn params(&self) -> &PackParams {
        &self.params
    }

    /// Returns the shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Returns the bits of a query word on the wire.
    pub fn query_bits(&self) -> u32 {
        self.query_bits
    }

    /// Returns the number of database rows.
    pub fn rows(&self) -> usize {
        self.shape.blocks * self.shape.slot_bytes
    }

    /// Returns the rows of the entries `units`, or of the blocks `units` if the second vector selects a block.
    pub(crate) fn rows_of(&self, units: &Range<usize>) -> Range<usize> {
        match self.spec.second {
            Second::Block => units.start * self.shape.slot_bytes..units.end * self.shape.slot_bytes,
            Second::Entry | Second::None => self.first_shape().entries_rows(units),
        }
    }

    /// Returns the tiling of the database.
    pub fn tiling(&self) -> Tiling {
        self.shape.byte_tiling()
    }

    pub(crate) fn entry_layout(&self) -> EntryLayout {
        let degree = self.params.ring().degree();
        match self.entries {
            Some(entries) if self.chooses_entries() => EntryLayout::with_entries(degree, self.shape, entries),
            _ => EntryLayout::new(degree, self.shape),
        }
    }

    /// Returns whether a query chooses one entry, instead of receiving all entries or selecting a block.
    pub(crate) fn chooses_entries(&self) -> bool {
        self.spec.folds || self.spec.second == Second::Entry
    }

    /// Returns the number of blocks in an entry: the slots that fit in one plaintext, or 1 for slots that take several.
    pub fn lanes(&self) -> usize {
        self.entry_layout().lanes()
    }

    /// Returns the entry and the lane of a block.
    pub fn place(&self, block: usize) -> (usize, usize) {
        self.entry_layout().place(block)
    }

    /// Returns the rows of the first fold that are packed together.
    pub fn first_shape(&self) -> PackShape {
        self.entry_layout().pack_shape()
    }

    /// Returns the shape of the packed plaintexts of the entries `units`.
    pub(crate) fn part_shape(&self, units: &Range<usize>) -> PackShape {
        let all = self.first_shape();
        all.part(all.entries_rows(units).len())
    }

    /// Returns the rows of the second fold that are packed together. All belong to one entry (`exppack-d`, `double-pack`).
    ///
    /// In `exppack-d` these are the digits of the hint, then those of the answer. In `double-pack` they are the bytes of
    /// one entry's switched ciphertexts.
    pub fn second_shape(&self) -> PackShape {
        let rows = match self.spec.second {
            Second::Block => self.second_hint_rows() + self.second_answer_rows(),
            Second::Entry | Second::None => {
                self.switched_bytes() * self.params.ring().degree() * self.first_shape().planes()
            }
        };
        PackShape::new(self.params.ring().degree(), rows, rows).expect("all are positive")
    }

    /// Returns the columns of the second shape in ranges that are computed and packed at a time, because the hint differs
    /// for every query (`double-pack`). The rows of each range, except the last, are whole groups of a database.
    pub(crate) fn second_parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let columns = self.second_shape().plaintexts();
        let step = self.second_part_columns();
        (0..columns).step_by(step).map(move |first| first..columns.min(first + step))
    }

    /// Returns the most columns of the second hint that are computed at a time.
    pub fn second_part_columns(&self) -> usize {
        let degree = self.params.ring().degree();
        (PART_COLUMNS * degree).next_multiple_of(GROUP_ROWS) / degree
    }

    /// Returns the columns of the second shape that contain rows computed from the answer (`exppack-d`).
    pub(crate) fn online_columns(&self) -> Range<usize> {
        let shape = self.second_shape();
        self.second_hint_rows() / shape.degree()..shape.plaintexts()
    }

    /// Returns the tiling of a lifted hint of `plaintexts` plaintexts. It has a row for every coefficient of the LWE secret.
    pub(crate) fn lifted_tiling(&self, plaintexts: usize) -> NttTiling {
        let ring = self.params.ring();
        let tiling = NttTiling::new(ring.degree(), ring.kept_limbs(), self.params.lwe().n(), plaintexts);
        tiling.expect("every preset's degree and dimension fit")
    }

    /// Returns the bytes of a switched coefficient. The second database of `double-pack` consists of such bytes.
    pub(crate) fn switched_bytes(&self) -> usize {
        switched_bytes(self.params.ring().response_bits()).unwrap_or(0)
    }

    /// Returns the tiling of the second database, which is computed from the hint and has a column for every block (`exppack-d`).
    pub fn second_tiling(&self) -> Tiling {
        Tiling::new(self.second_hint_rows(), self.shape.blocks)
    }

    /// Returns the number of rows of the second fold that are computed from the hint (`exppack-d`).
    pub fn second_hint_rows(&self) -> usize {
        self.shape.slot_bytes * self.params.lwe().n() * DIGITS
    }

    /// Returns the number of rows of the second fold that are computed from the answer (`exppack-d`).
    pub fn second_answer_rows(&self) -> usize {
        self.shape.slot_bytes * DIGITS
    }

    /// Returns the shape of the hint that the server holds in evaluation form: that of the second fold in `exppack-d`, else
    /// that of the first.
    pub fn hint_shape(&self) -> PackShape {
        if self.spec.second == Second::Block { self.second_shape() } else { self.first_shape() }
    }

    /// Returns the tiling of the hint of [`PackTable::hint_shape`]: a row for every coefficient of the LWE secret, and a
    /// column for every plaintext.
    pub fn hint_tiling(&self) -> NttTiling {
        self.lifted_tiling(self.hint_shape().plaintexts())
    }

    /// Returns the shape of the public matrix of the first dimension.
    pub fn first_matrix(&self) -> MatrixShape {
        self.params.lwe().matrix_shape(MatrixDomain::First, self.asked_columns).wrapped(self.shape.columns)
    }

    /// Returns the shape of the public matrix of the second dimension.
    pub fn second_matrix(&self) -> MatrixShape {
        self.params.lwe().matrix_shape(MatrixDomain::Second, self.second_words())
    }

    /// Returns the number of words of a query's second vector, which selects among as many blocks or entries. 0 without one.
    pub fn second_words(&self) -> usize {
        match self.spec.second {
            Second::Block => self.shape.blocks,
            Second::Entry => self.first_shape().entries(),
            Second::None => 0,
        }
    }

    /// Returns the number of blocks in an answer.
    pub(crate) fn chosen_blocks(&self) -> usize {
        match self.spec.second {
            Second::Block => 1,
            _ if self.chooses_entries() => self.lanes(),
            _ => self.shape.blocks,
        }
    }

    /// Returns the shapes of segments that the queries of this table can ask.
    pub(crate) fn segment_rule(&self) -> SegmentRule {
        let entries = self.first_shape().entries();
        let entries = match self.spec.second {
            // The second vector cannot be wrapped, so a segment has as many blocks as the base.
            Second::Block => vec![self.shape.blocks],
            Second::Entry => vec![entries],
            // The low bits of the entry choose among fewer entries.
            Second::None if self.spec.folds => powers_below(entries),
            Second::None => vec![1],
        };
        let column_unit = self.first_matrix().column_unit();
        SegmentRule { columns: self.shape.columns, column_unit, entries }
    }

    /// Returns the number of rounds that fold the entries to one (`hybrid`).
    pub fn folds(&self) -> usize {
        if self.spec.folds { self.first_shape().entries().next_power_of_two().ilog2() as usize } else { 0 }
    }

    /// Returns the number of leaves of a query's expansion.
    pub fn leaves(&self) -> usize {
        self.params.leaves(self.folds())
    }

    /// Returns the number of plaintexts of an answer.
    pub fn answer_plaintexts(&self) -> usize {
        match self.spec.second {
            Second::Block | Second::Entry => self.second_shape().plaintexts(),
            Second::None if self.spec.folds => self.first_shape().planes(),
            Second::None => self.first_shape().plaintexts(),
        }
    }

    /// Returns the sizes of the parts of a query, in bytes.
    pub fn query_bytes(&self) -> QuerySizes {
        QuerySizes {
            first: packed_bytes(self.shape.columns, self.query_bits),
            second: packed_bytes(self.second_words(), self.query_bits),
            packed: self.params.ring().query_bytes(self.params.lwe().n(), self.folds()),
            key_id: KEY_ID_BYTES,
        }
    }

    /// Returns the size of an answer, in bytes.
    pub fn answer_bytes(&self) -> usize {
        response_bytes(self.params.ring(), self.answer_plaintexts())
    }

    /// Returns the distance from an honest answer to a wrong decoding in the noisier fold, in standard deviations of the error.
    pub fn sigmas(&self) -> f64 {
        let layers = self.layers();
        layers.iter().map(|layer| layer.sigmas).fold(f64::INFINITY, f64::min)
    }

    /// Returns log2 of the probability that an honest answer decodes wrongly (union bound over all decoded bytes).
    pub fn log2_failure(&self) -> f64 {
        let layers = self.layers();
        let worst = layers.iter().map(|layer| layer.log2_failure).fold(f64::NEG_INFINITY, f64::max);
        if worst == f64::NEG_INFINITY {
            return worst;
        }
        // The sum is relative to the worst layer, whose probability is below the smallest f64 in some sets.
        worst + layers.iter().map(|layer| (layer.log2_failure - worst).exp2()).sum::<f64>().log2()
    }

    /// Returns the layers of decoding: that of the first fold, then that of the second if there is one.
    fn layers(&self) -> Vec<DecodingLayer> {
        if self.params.ring().is_plain() {
            return vec![DecodingLayer { sigmas: f64::INFINITY, log2_failure: f64::NEG_INFINITY }];
        }
        let packed = |words, values| {
            let noise = PackNoise::new(&self.params, words, self.query_bits, self.folds());
            DecodingLayer { sigmas: noise.sigmas(), log2_failure: noise.log2_failure(values) }
        };
        let slot_planes = self.first_shape().planes() * self.params.ring().degree();
        let second = || packed(self.second_words(), self.second_shape().rows());
        match self.spec.second {
            Second::Block => {
                let bits = 8 * DIGITS as u32;
                let widths = Widths { query: self.query_bits, hint: bits, answer: bits };
                let noise = LweNoise::new(self.params.lwe(), self.asked_columns, widths);
                let values = self.shape.slot_bytes;
                vec![
                    DecodingLayer { sigmas: noise.sigmas(), log2_failure: noise.log2_failure(values) },
                    second(),
                ]
            }
            Second::Entry => vec![packed(self.asked_columns, slot_planes), second()],
            Second::None => vec![packed(self.asked_columns, slot_planes)],
        }
    }
}

/// Checks the limits of the numbers that determine all others.
fn check_shape(spec: PackSpec, params: &PackParams, shape: TableShape) -> Result<(), ProtocolError> {
    check_limit("columns", shape.columns, MAX_COLUMNS)?;
    check_limit("slot bytes", shape.slot_bytes, MAX_SLOT_BYTES)?;
    check_limit("blocks", shape.blocks, MAX_DB_ROWS / shape.slot_bytes)?;
    match spec.second {
        Second::Block if shape.slot_bytes > MAX_EXPPACK_D_SLOT => Err(ProtocolError::SlotTooLong {
            protocol: spec.protocol,
            actual: shape.slot_bytes,
            max: MAX_EXPPACK_D_SLOT,
            instead: Protocol::Hybrid,
        }),
        Second::Block => {
            let second = (shape.slot_bytes * params.lwe().n() * DIGITS) as u64 * shape.blocks as u64;
            check_kept("bytes of the second database (use more columns)", second)
        }
        Second::Entry => {
            let bytes = switched_bytes(params.ring().response_bits()).unwrap_or(0);
            check_limit("bytes of a switched coefficient", bytes, size_of::<u64>())
        }
        Second::None => Ok(()),
    }
}

/// The error margin of one layer of decoding.
struct DecodingLayer {
    sigmas: f64,
    log2_failure: f64,
}
