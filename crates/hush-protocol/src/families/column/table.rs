//! The parameters of a table with column packing, and every size that follows from them.
//!
//! The blocks that share a plaintext are defined in `entry_layout.rs`.

use hush_he::{
    codec::packed_bytes,
    entities::{MatrixDomain, MatrixShape},
    params::{ColumnNoise, ColumnParams, ResponseBits, Widths},
};
use hush_ops::{
    pack_shape::PackShape,
    path::{Content, pack_columns_tiling},
    tiling::Tiling,
};

use crate::{
    ProtocolError,
    entry_layout::{EntryLayout, most_lanes},
    facts::SegmentRule,
    registry::Protocol,
    response::bytes_at,
    table::{
        LOOKUPS_PER_EPOCH, MAX_ANSWER_BYTES, MAX_COLUMNS, MAX_DB_ROWS, MAX_SLOT_BYTES, SegmentShape,
        TableShape, check_failure, check_kept, check_limit, fewest_query_bits, invalid_descriptor,
    },
    wire::QuerySizes,
};

/// The facts in which the protocols with column packing differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnSpec {
    /// The protocol.
    pub protocol: Protocol,
    /// Whether entries are folded to one by a power of X. If not, clients download the masks of all plaintexts.
    pub folds: bool,
}

/// The fewest bits of a coefficient of a mask among which a table chooses.
const SHORTEST_MASK: u32 = 16;
/// The fewest bits of a coefficient of b. A byte of it is decoded.
const SHORTEST_WORD: u32 = u8::BITS + 1;
/// The most bits of a coefficient of a mask that is downloaded, and not part of every answer.
const DOWNLOADED_BITS: u32 = 24;

/// Checked parameters of a table of `colpack-s` or `colpack`. They determine every size on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnTable {
    spec: ColumnSpec,
    params: ColumnParams,
    shape: TableShape,
    /// The bits of a query word, of a coefficient of a mask, and of a coefficient of b in an answer.
    widths: Widths,
    /// The columns of the queries: the table's own, or those of the base.
    asked_columns: usize,
    /// The number of entries of a segment beside the base. `None` in the base.
    entries: Option<usize>,
}

impl ColumnTable {
    /// Creates a table with the words of the least traffic that keep [`Widths::MIN_SIGMAS`]; that of masks is spread over
    /// [`LOOKUPS_PER_EPOCH`] look-ups. Checks limits and noise.
    pub fn new(spec: ColumnSpec, params: ColumnParams, shape: TableShape) -> Result<Self, ProtocolError> {
        check_shape(shape)?;
        let ResponseBits { a, b } = params.ring().response_bits();
        let whole = Widths { query: 32, hint: a, answer: b };
        let table =
            |widths| Self { spec, params, shape, widths, asked_columns: shape.columns, entries: None };
        let mut best = table(whole);
        let longest = if spec.folds { a } else { DOWNLOADED_BITS };
        let rounded = !params.lwe().full_words();
        for hint in (SHORTEST_MASK..=longest).filter(|_| rounded) {
            for answer in SHORTEST_WORD..=b {
                let query = fewest_query_bits(|query| table(Widths { query, hint, answer }).sigmas());
                let found = table(Widths { query, hint, answer });
                if found.sigmas() >= Widths::MIN_SIGMAS && found.traffic() < best.traffic() {
                    best = found;
                }
            }
        }
        Self::with_widths(spec, params, shape, best.widths)
    }

    /// Creates a table with the given bits of words. Checks limits and noise.
    ///
    /// # Errors
    /// [`ProtocolError::Limit`] if the shape or a width is out of range. [`ProtocolError::TooNoisy`] if an answer would fail with
    /// probability above 2^-64.
    pub fn with_widths(
        spec: ColumnSpec,
        params: ColumnParams,
        shape: TableShape,
        widths: Widths,
    ) -> Result<Self, ProtocolError> {
        check_limit("bits of a word", widths.query as usize, 32)?;
        let ResponseBits { a: longest, .. } = params.ring().response_bits();
        check_limit("bits of a mask", widths.hint as usize, longest.max(DOWNLOADED_BITS) as usize)?;
        check_limit("bits of a word of an answer", widths.answer as usize, widths.hint as usize)?;
        // A byte is the top of a word.
        if widths.answer < SHORTEST_WORD {
            return Err(invalid_descriptor("a word of an answer has 9 bits or more"));
        }
        check_shape(shape)?;
        Self { spec, params, shape, widths, asked_columns: shape.columns, entries: None }.checked()
    }

    /// Returns a segment that is asked with the queries of this table.
    ///
    /// # Errors
    /// The errors of [`ColumnTable::with_widths`]. [`ProtocolError::Limit`] if this table's queries cannot ask the segment.
    pub fn segment(&self, segment: SegmentShape) -> Result<Self, ProtocolError> {
        let SegmentShape { shape, entries } = segment;
        check_shape(shape)?;
        let most = most_lanes(self.params.ring().degree(), shape.slot_bytes);
        segment.check(&self.segment_rule(), if self.spec.folds { most } else { MAX_DB_ROWS })?;
        Self { shape, asked_columns: self.shape.columns, entries: Some(entries), ..*self }.checked()
    }

    fn checked(self) -> Result<Self, ProtocolError> {
        let table = self;
        let Self { spec, params, shape, .. } = self;
        check_kept("bytes of the pack columns (use more columns)", table.columns_tiling().stored_bytes())?;
        if spec.folds {
            let entries = table.pack_shape().entries();
            check_limit("entries (use more columns)", entries, 2 * params.ring().degree())?;
        }
        check_limit("bytes of an answer (use colpack)", table.answer_bytes(), MAX_ANSWER_BYTES)?;
        check_failure(table.log2_failure(), shape, params.name())?;
        Ok(table)
    }

    /// Returns the facts in which the protocols differ.
    pub fn spec(&self) -> &ColumnSpec {
        &self.spec
    }

    /// Returns the parameter set.
    pub fn params(&self) -> &ColumnParams {
        &self.params
    }

    /// Returns the shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Returns the bits of words on the wire: of a query, of a mask, and of b in an answer.
    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// Returns the bits of the two halves of a ciphertext that a client decrypts.
    pub fn response_bits(&self) -> ResponseBits {
        ResponseBits { a: self.widths.hint, b: self.widths.answer }
    }

    /// Returns the bytes of a look-up, with its share of the masks.
    fn traffic(&self) -> f64 {
        let sent = self.query_bytes().total() + self.answer_bytes();
        sent as f64 + self.mask_bytes() as f64 / LOOKUPS_PER_EPOCH
    }

    /// Returns the number of database rows.
    pub fn rows(&self) -> usize {
        self.shape.blocks * self.shape.slot_bytes
    }

    /// Returns the tiling of the database.
    pub fn tiling(&self) -> Tiling {
        self.shape.byte_tiling()
    }

    /// Returns the tiling of the pack columns: 4 N bytes beside every row of the database.
    pub fn columns_tiling(&self) -> Tiling {
        pack_columns_tiling(self.params.ring(), self.rows())
    }

    /// Returns the content of the chain's file.
    pub fn chain(&self) -> Content {
        Content::Chain { ring: *self.params.ring(), shape: self.pack_shape(), folds: self.spec.folds }
    }

    pub(crate) fn entry_layout(&self) -> EntryLayout {
        let degree = self.params.ring().degree();
        match self.entries {
            Some(entries) if self.spec.folds => EntryLayout::with_entries(degree, self.shape, entries),
            // An answer has all entries, so their number is not limited by the base.
            _ => EntryLayout::new(degree, self.shape),
        }
    }

    /// Returns the number of blocks in an entry. In the base, this is the number of slots in a plaintext, or 1 for slots
    /// that take several plaintexts.
    pub fn lanes(&self) -> usize {
        self.entry_layout().lanes()
    }

    /// Returns the entry and the lane of a block.
    pub fn place(&self, block: usize) -> (usize, usize) {
        self.entry_layout().place(block)
    }

    /// Returns the rows that are packed together.
    pub fn pack_shape(&self) -> PackShape {
        self.entry_layout().pack_shape()
    }

    /// Returns the shape of the public matrix.
    pub fn matrix(&self) -> MatrixShape {
        self.params.lwe().matrix_shape(MatrixDomain::First, self.asked_columns).wrapped(self.shape.columns)
    }

    /// Returns the shapes of segments that the queries of this table can ask.
    pub(crate) fn segment_rule(&self) -> SegmentRule {
        // A query has one power of X. It chooses among all entries of the base; a segment of one entry needs no choice.
        let entries = self.pack_shape().entries();
        let entries = if self.spec.folds && entries > 1 { vec![1, entries] } else { vec![1] };
        SegmentRule { columns: self.shape.columns, column_unit: self.matrix().column_unit(), entries }
    }

    /// Returns whether entries are folded to one (`colpack`, if there are several).
    pub fn folds(&self) -> bool {
        self.external_products() > 0
    }

    /// Returns the number of external products that fold one plane of all entries to one.
    pub fn external_products(&self) -> usize {
        if self.spec.folds { self.pack_shape().entries().next_power_of_two() - 1 } else { 0 }
    }

    /// Returns the exponent p, below 2N, whose power X^p selects `entry`. Returns `None` if nothing is folded.
    pub fn exponent(&self, entry: usize) -> Option<usize> {
        let step = 2 * self.params.ring().degree() / self.pack_shape().entries().next_power_of_two().max(1);
        self.folds().then_some(step * entry)
    }

    /// Returns the number of plaintexts of an answer.
    pub fn answer_plaintexts(&self) -> usize {
        if self.spec.folds { self.pack_shape().planes() } else { self.pack_shape().plaintexts() }
    }

    /// Returns the sizes of the parts of a query, in bytes.
    pub fn query_bytes(&self) -> QuerySizes {
        let first = packed_bytes(self.shape.columns, self.widths.query);
        QuerySizes { first, packed: self.params.key_bytes(self.folds()), ..QuerySizes::default() }
    }

    /// Returns the size of an answer, in bytes: the ciphertexts of an entry, or a coefficient of b for every row.
    pub fn answer_bytes(&self) -> usize {
        match self.spec.folds {
            true => bytes_at(self.params.ring(), self.response_bits(), self.answer_plaintexts()),
            false => packed_bytes(self.rows(), self.widths.answer),
        }
    }

    /// Returns the size of the masks that clients download, in bytes: one for every plaintext. 0 with folds.
    pub fn mask_bytes(&self) -> u64 {
        let mask = packed_bytes(self.params.ring().degree(), self.widths.hint);
        if self.spec.folds { 0 } else { self.pack_shape().plaintexts() as u64 * mask as u64 }
    }

    /// Returns the noise of a look-up.
    pub fn noise(&self) -> ColumnNoise {
        let response = self.response_bits();
        ColumnNoise::new(
            &self.params,
            self.asked_columns,
            self.widths.query,
            self.external_products(),
            response,
        )
    }

    /// Returns the distance from an honest answer to a wrong decoding, in standard deviations of the error. Infinite without noise.
    pub fn sigmas(&self) -> f64 {
        if self.params.ring().is_plain() { f64::INFINITY } else { self.noise().sigmas() }
    }

    /// Returns log2 of the probability that an honest answer decodes wrongly (union bound over the bytes of an entry).
    pub fn log2_failure(&self) -> f64 {
        if self.params.ring().is_plain() {
            return f64::NEG_INFINITY;
        }
        self.noise().log2_failure(self.pack_shape().planes() * self.params.ring().degree())
    }
}

/// Checks the limits of the numbers that determine all others.
fn check_shape(shape: TableShape) -> Result<(), ProtocolError> {
    check_limit("columns", shape.columns, MAX_COLUMNS)?;
    check_limit("slot bytes", shape.slot_bytes, MAX_SLOT_BYTES)?;
    check_limit("blocks", shape.blocks, MAX_DB_ROWS / shape.slot_bytes)
}
