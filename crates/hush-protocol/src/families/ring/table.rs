//! The parameters of a table over rings, and every size that follows from them.
//!
//! ```text
//!             entry 0          entry 1        ...  folded by the bits of the entry, lowest first
//!   row 0   │ plaintext │    │ plaintext │
//!   row 1   │ plaintext │    │ plaintext │         a plaintext: N symbols of k bits
//!   ...                                              short slots: `lanes` slots side by side, or interleaved
//!   row D0-1                                         long slots:  `planes` plaintexts, one after another
//! ```
//!
//! A block is a pair of an entry and a lane. The slots of a block are at the same position in the plaintexts of one entry,
//! one slot in every row. So selectors with any coefficients add them up.

use std::ops::Range;

use hush_he::params::{RingNoise, RingParams, RingSwitch};
use hush_ops::{
    ntt_tiling::{MAX_ROWS, NttTiling},
    path::Content,
    symbol_tiling::SymbolTiling,
};

use crate::{
    ProtocolError,
    facts::{DbForm, SegmentRule},
    ring_answer,
    symbols::symbol_count,
    table::{MAX_SLOT_BYTES, SegmentShape, TableShape, check_failure, check_limit, powers_below},
};

/// The most entries: 2^24, which are folded in 24 rounds.
pub const MAX_ENTRIES: usize = 1 << 24;

/// Checked parameters of a table over rings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingTable {
    ring: RingParams,
    shape: TableShape,
    /// The number of entries of a segment beside the base. `None` in the base.
    entries: Option<usize>,
    /// Whether the server rotates a lane to the front. If so, a plaintext has a power of two of slots, and they are interleaved.
    is_rotated: bool,
    form: DbForm,
}

impl RingTable {
    /// Creates a table without rotations. Checks limits and noise.
    ///
    /// # Errors
    /// [`ProtocolError::Limit`] if the shape is out of range. [`ProtocolError::TooNoisy`] if an answer would fail with
    /// probability above 2^-64.
    pub fn new(ring: RingParams, shape: TableShape) -> Result<Self, ProtocolError> {
        Self::of_lanes(ring, shape, false)
    }

    /// Creates a table whose server rotates the wanted lane to the front. Checks limits and noise, as [`RingTable::new`] does.
    pub fn rotated(ring: RingParams, shape: TableShape) -> Result<Self, ProtocolError> {
        Self::of_lanes(ring, shape, true)
    }

    fn of_lanes(ring: RingParams, shape: TableShape, is_rotated: bool) -> Result<Self, ProtocolError> {
        check_limit("slot bytes", shape.slot_bytes, MAX_SLOT_BYTES)?;
        check_limit("columns", shape.columns, ring.max_leaves().min(MAX_ROWS))?;
        Self { ring, shape, entries: None, is_rotated, form: DbForm::Evaluation }.checked()
    }

    /// Returns the table with its database in another form.
    pub(crate) fn in_form(self, form: DbForm) -> Self {
        Self { form, ..self }
    }

    /// Returns the form of the database.
    pub fn form(&self) -> DbForm {
        self.form
    }

    /// Returns a segment that is asked with the queries of this table.
    ///
    /// # Errors
    /// The errors of [`RingTable::new`]. [`ProtocolError::Limit`] if this table's queries cannot ask the segment.
    pub fn segment(&self, segment: SegmentShape) -> Result<Self, ProtocolError> {
        let SegmentShape { shape, entries } = segment;
        check_limit("slot bytes", shape.slot_bytes, MAX_SLOT_BYTES)?;
        segment.check(&self.segment_rule(), lanes(&self.ring, shape.slot_bytes))?;
        // The query has bits for the lanes of the base, and a segment has other lanes, so it is not rotated.
        Self { shape, entries: Some(entries), is_rotated: false, ..*self }.checked()
    }

    fn checked(self) -> Result<Self, ProtocolError> {
        let table = self;
        let Self { ring, shape, .. } = self;
        check_limit("blocks", shape.blocks, MAX_ENTRIES.saturating_mul(table.lanes()))?;
        check_limit("columns and fold digits", table.leaves(), ring.max_leaves())?;
        check_failure(table.log2_failure(), shape, ring.name())?;
        Ok(table)
    }

    /// Returns the parameter set.
    pub fn ring(&self) -> &RingParams {
        &self.ring
    }

    /// Returns the shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Returns the number of symbols of a slot.
    pub fn slot_symbols(&self) -> usize {
        symbol_count(self.shape.slot_bytes, self.ring.plaintext_bits())
    }

    /// Returns the number of slots in a plaintext, 1 for slots that take several. A segment has as few as its entries need.
    pub fn lanes(&self) -> usize {
        let most = lanes(&self.ring, self.shape.slot_bytes);
        match self.entries {
            Some(entries) => self.shape.blocks.div_ceil(entries),
            None if self.is_rotated => 1 << most.ilog2(),
            None => most,
        }
    }

    /// Returns the number of bits of the lane, by which the server rotates. 0 if it does not rotate.
    pub fn rotations(&self) -> usize {
        if self.is_rotated { self.lanes().ilog2() as usize } else { 0 }
    }

    /// Returns the distance between the symbols of a slot in a plaintext.
    pub fn stride(&self) -> usize {
        if self.is_rotated { self.lanes() } else { 1 }
    }

    /// Returns the number of symbols of a slot in a plane: N, except in the last plane.
    pub fn plane_symbols(&self, plane: usize) -> usize {
        (self.slot_symbols() - plane * self.ring.degree()).min(self.ring.degree())
    }

    /// Returns the coefficients of a plane that hold symbols of a lane's slot, in order.
    pub fn coefficients(&self, lane: usize, plane: usize) -> impl Iterator<Item = usize> + use<> {
        let stride = self.stride();
        let length = self.plane_symbols(plane);
        let first = if self.is_rotated { lane } else { lane * length };
        (first..).step_by(stride).take(length)
    }

    /// Returns the switch of an answer to a small ring. Returns `None` if the set has none, or if slots are too long for it.
    pub(crate) fn switch(&self) -> Option<&RingSwitch> {
        self.ring.switch().filter(|switch| self.stride() >= self.ring.degree() / switch.degree())
    }

    /// Returns the shapes of segments that the queries of this table can ask.
    pub(crate) fn segment_rule(&self) -> SegmentRule {
        // Selectors cannot be wrapped, so all columns are needed. The low bits of the entry choose among fewer entries.
        let columns = self.shape.columns;
        SegmentRule { columns, column_unit: columns, entries: powers_below(self.entries()) }
    }

    /// Returns the number of plaintexts of a slot, 1 for slots that share one.
    pub fn planes(&self) -> usize {
        self.slot_symbols().div_ceil(self.ring.degree())
    }

    /// Returns the number of entries, which is the second dimension.
    pub fn entries(&self) -> usize {
        self.shape.blocks.div_ceil(self.lanes())
    }

    /// Returns the number of rounds that fold all entries to one.
    pub fn folds(&self) -> usize {
        self.entries().next_power_of_two().ilog2() as usize
    }

    /// Returns the entry and the lane of a block.
    pub fn place(&self, block: usize) -> (usize, usize) {
        (block / self.lanes(), block % self.lanes())
    }

    /// Returns the number of bits of a query: those of the entry and of the lane.
    pub fn bits(&self) -> usize {
        self.folds() + self.rotations()
    }

    /// Returns the number of leaves of a query's expansion.
    pub fn leaves(&self) -> usize {
        self.ring.leaves(self.shape.columns, self.bits())
    }

    /// Returns the tiling of the database. It has a row for every column of the shape, and a column for every plane and
    /// entry, plane after plane.
    pub fn tiling(&self) -> NttTiling {
        self.part_tiling(self.entries())
    }

    /// Returns the tiling of a part with `entries` entries.
    pub(crate) fn part_tiling(&self, entries: usize) -> NttTiling {
        let columns = self.planes() * entries;
        let tiling = NttTiling::new(self.ring.degree(), self.ring.kept_limbs(), self.shape.columns, columns);
        tiling.expect("degrees, limbs and rows were checked")
    }

    /// Returns the tiling of the database as symbols, with the same rows and columns.
    ///
    /// # Panics
    /// If the symbols of the set do not fill words.
    pub fn symbol_tiling(&self) -> SymbolTiling {
        self.part_symbol_tiling(self.entries())
    }

    /// Returns the tiling of a part with `entries` entries as symbols.
    pub(crate) fn part_symbol_tiling(&self, entries: usize) -> SymbolTiling {
        let degree = self.ring.degree();
        let bits = self.ring.plaintext_bits();
        let tiling = SymbolTiling::new(degree, bits, self.shape.columns, self.planes() * entries);
        tiling.expect("a set whose symbols fill words")
    }

    /// Returns the content of the database's file.
    pub fn content(&self) -> Content {
        self.part_content(self.entries())
    }

    /// Returns the content of the file of a part with `entries` entries.
    pub(crate) fn part_content(&self, entries: usize) -> Content {
        match self.form {
            DbForm::Evaluation => Content::Eval(self.part_tiling(entries)),
            DbForm::Symbols => Content::Symbols { ring: self.ring, db: self.part_symbol_tiling(entries) },
        }
    }

    /// Returns the columns of the database that hold `entries`, one range for each plane.
    pub(crate) fn columns_of(&self, entries: &Range<usize>) -> Vec<Range<usize>> {
        (0..self.planes())
            .map(|plane| plane * self.entries() + entries.start..plane * self.entries() + entries.end)
            .collect()
    }

    /// Returns the size of a query in bytes.
    pub fn query_bytes(&self) -> usize {
        self.ring.query_bytes(self.shape.columns, self.bits())
    }

    /// Returns the size of an answer in bytes.
    pub fn answer_bytes(&self) -> usize {
        ring_answer::bytes(self)
    }

    /// Returns the noise of a look-up.
    pub fn noise(&self) -> RingNoise {
        let noise = RingNoise::new(&self.ring, self.shape.columns, self.bits());
        match self.switch() {
            Some(switch) => noise.ring_switched(&self.ring, switch),
            None => noise,
        }
    }

    /// Returns log2 of the probability that an honest answer decodes wrongly (union bound over all decoded symbols).
    pub fn log2_failure(&self) -> f64 {
        if self.ring.is_plain() {
            return f64::NEG_INFINITY;
        }
        self.noise().log2_failure(self.planes() * self.ring.degree())
    }
}

/// Returns the number of slots of `slot_bytes` bytes in a plaintext, or 1 for slots that take several.
pub(crate) fn lanes(ring: &RingParams, slot_bytes: usize) -> usize {
    (ring.degree() / symbol_count(slot_bytes, ring.plaintext_bits())).max(1)
}
