//! The parameters of a table over LWE, and every size that follows from them.

use hush_he::{
    codec::packed_bytes,
    entities::{MatrixDomain, MatrixShape},
    params::{LweParams, Traffic, Widths, noise::LweNoise},
};
use hush_ops::tiling::Tiling;

use crate::{
    ProtocolError,
    facts::SegmentRule,
    registry::Protocol,
    table::{
        LOOKUPS_PER_EPOCH, MAX_COLUMNS, MAX_DB_ROWS, MAX_DOUBLE_HINT_BYTES, MAX_SLOT_BYTES, SegmentShape,
        TableShape, check_failure, check_limit,
    },
};

/// The facts in which the protocols over LWE differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LweSpec {
    /// The protocol.
    pub protocol: Protocol,
    /// Whether a table has a single block, so that every slot is a column.
    pub one_block: bool,
    /// Whether the result of the first fold is folded again.
    pub second_fold: bool,
}

/// Checked parameters of a table over LWE. They determine every size on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LweTable {
    spec: LweSpec,
    lwe: LweParams,
    shape: TableShape,
    widths: Widths,
    /// The columns of the queries: the table's own, or those of the base.
    asked_columns: usize,
}

impl LweTable {
    /// Creates a table with word widths that suit `shape`. Checks limits and noise.
    pub fn new(spec: LweSpec, lwe: LweParams, shape: TableShape) -> Result<Self, ProtocolError> {
        check_shape(spec, &lwe, shape)?;
        let full = Self { spec, lwe, shape, widths: Widths::FULL, asked_columns: shape.columns };
        let traffic = Traffic {
            query: shape.columns as f64,
            hint: full.hint_rows() as f64 * lwe.n() as f64 / LOOKUPS_PER_EPOCH,
            answer: full.answer_bytes() as f64 / 4.0,
        };
        // DoublePIR cuts hint words into whole bytes.
        let hints: &[u32] = if spec.second_fold { &[16, 24, 32] } else { &[16, 18, 20, 22, 24, 32] };
        // DoublePIR's second query has a word for every block, of the same width.
        let words = if spec.second_fold { shape.columns.max(shape.blocks) } else { shape.columns };
        Self::with_widths(spec, lwe, shape, Widths::choose(&lwe, words, traffic, hints))
    }

    /// Creates a table with the given word widths. Checks limits and noise.
    ///
    /// # Errors
    /// [`ProtocolError::Limit`] if the shape or a width is out of range. [`ProtocolError::SlotTooLong`] if slots would make
    /// the hint of `double` longer than [`MAX_DOUBLE_HINT_BYTES`]. [`ProtocolError::TooNoisy`] if an answer would fail with
    /// probability above 2^-64.
    pub fn with_widths(
        spec: LweSpec,
        lwe: LweParams,
        shape: TableShape,
        widths: Widths,
    ) -> Result<Self, ProtocolError> {
        for bits in [widths.query, widths.hint, widths.answer] {
            check_limit("bits of a word", bits as usize, 32)?;
        }
        if !(widths.hint as usize * lwe.n()).is_multiple_of(8)
            || (spec.second_fold && !widths.hint.is_multiple_of(8))
        {
            return Err(ProtocolError::Limit {
                what: "bits of a hint word",
                actual: u64::from(widths.hint),
                allowed: "one for which rows (with double: words) are whole bytes".into(),
            });
        }
        check_shape(spec, &lwe, shape)?;
        Self { spec, lwe, shape, widths, asked_columns: shape.columns }.checked()
    }

    /// Returns a segment that is asked with the queries of this table, with words of the same widths.
    ///
    /// # Errors
    /// The errors of [`LweTable::with_widths`]. [`ProtocolError::Limit`] if this table's queries cannot ask the segment.
    pub fn segment(&self, segment: SegmentShape) -> Result<Self, ProtocolError> {
        let shape = segment.shape;
        check_shape(self.spec, &self.lwe, shape)?;
        let lanes = if self.spec.one_block || self.spec.second_fold { 1 } else { MAX_DB_ROWS };
        segment.check(&self.segment_rule(), lanes)?;
        Self { shape, asked_columns: self.shape.columns, ..*self }.checked()
    }

    fn checked(self) -> Result<Self, ProtocolError> {
        let params = self;
        let Self { spec, lwe, shape, .. } = self;
        if spec.second_fold {
            // The hint bytes for each byte of a slot. They do not depend on columns and blocks.
            let hint_bytes = lwe.n() * params.digits() * params.hint_row_bytes();
            let max = MAX_DOUBLE_HINT_BYTES / hint_bytes;
            if shape.slot_bytes > max {
                return Err(ProtocolError::SlotTooLong {
                    protocol: spec.protocol,
                    actual: shape.slot_bytes,
                    max,
                    instead: Protocol::Simple,
                });
            }
        }
        check_failure(params.log2_failure(), shape, lwe.name())?;
        Ok(params)
    }

    /// Returns the facts in which the protocols differ.
    pub fn spec(&self) -> &LweSpec {
        &self.spec
    }

    /// Returns the LWE parameters.
    pub fn lwe(&self) -> &LweParams {
        &self.lwe
    }

    /// Returns the shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Returns the widths of words on the wire, in bits.
    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// Returns the number of database rows.
    pub fn rows(&self) -> usize {
        self.shape.blocks * self.shape.slot_bytes
    }

    /// Returns the tiling of the database.
    pub fn tiling(&self) -> Tiling {
        self.shape.byte_tiling()
    }

    /// Returns the shape of the public matrix of the first dimension, `columns x n`.
    pub fn first_matrix(&self) -> MatrixShape {
        self.lwe.matrix_shape(MatrixDomain::First, self.asked_columns).wrapped(self.shape.columns)
    }

    /// Returns the shape of the public matrix of DoublePIR's second dimension, `blocks x n`.
    pub fn second_matrix(&self) -> MatrixShape {
        self.lwe.matrix_shape(MatrixDomain::Second, self.shape.blocks)
    }

    /// Returns the shapes of segments that the queries of this table can ask.
    pub(crate) fn segment_rule(&self) -> SegmentRule {
        // The second vector cannot be wrapped, so a segment has as many blocks as the base.
        let entries = vec![if self.spec.second_fold { self.shape.blocks } else { 1 }];
        SegmentRule { columns: self.shape.columns, column_unit: self.first_matrix().column_unit(), entries }
    }

    /// Returns the number of bytes into which a word of the first fold is cut for the second fold (DoublePIR).
    pub fn digits(&self) -> usize {
        self.widths.hint as usize / 8
    }

    /// Returns the tiling of the second database, which is computed from the hint and has a column for every block (`double`).
    pub fn second_tiling(&self) -> Tiling {
        Tiling::new(self.second_hint_rows(), self.shape.blocks)
    }

    /// Returns the number of rows of the second fold that are computed from the hint (DoublePIR).
    pub fn second_hint_rows(&self) -> usize {
        self.shape.slot_bytes * self.lwe.n() * self.digits()
    }

    /// Returns the number of rows of the second fold that are computed from the answer (DoublePIR).
    pub fn second_answer_rows(&self) -> usize {
        self.shape.slot_bytes * self.digits()
    }

    /// Returns the sizes of the two vectors of a query, in bytes: first and second dimension.
    pub fn query_bytes(&self) -> (usize, usize) {
        let packed = |words| packed_bytes(words, self.widths.query);
        let second = if self.spec.second_fold { packed(self.shape.blocks) } else { 0 };
        (packed(self.shape.columns), second)
    }

    /// Returns the bytes of a prepared query: its words, its secrets and, without a second fold, the products of the hint.
    pub fn prepared_bytes(&self) -> usize {
        let n = self.lwe().n();
        let beside = if self.spec.second_fold { self.shape.blocks + n } else { self.rows() };
        size_of::<u32>() * (self.shape.columns + n + beside)
    }

    /// Returns the size of an answer, in bytes.
    pub fn answer_bytes(&self) -> usize {
        let words = |count| packed_bytes(count, self.widths.answer);
        if !self.spec.second_fold {
            return words(self.rows());
        }
        let online_hint = packed_bytes(self.second_answer_rows() * self.lwe.n(), self.widths.hint);
        words(self.second_hint_rows()) + words(self.second_answer_rows()) + online_hint
    }

    /// Returns the number of rows of the hint that a client downloads. A row has n words.
    pub fn hint_rows(&self) -> usize {
        if self.spec.second_fold { self.second_hint_rows() } else { self.rows() }
    }

    /// Returns the size of a hint row, in bytes.
    pub fn hint_row_bytes(&self) -> usize {
        packed_bytes(self.lwe.n(), self.widths.hint)
    }

    /// Returns the size of the hint, in bytes.
    pub fn hint_bytes(&self) -> u64 {
        self.hint_rows() as u64 * self.hint_row_bytes() as u64
    }

    /// Returns the noise of the first fold, as the client sees it.
    pub fn noise(&self) -> LweNoise {
        // DoublePIR cuts the words of the answer into as many bytes as those of the hint.
        let is_double = self.spec.second_fold;
        let answer = if is_double { self.widths.hint } else { self.widths.answer };
        LweNoise::new(&self.lwe, self.asked_columns, Widths { answer, ..self.widths })
    }

    /// Returns the noise of the second fold. `None` if there is none.
    pub fn second_noise(&self) -> Option<LweNoise> {
        self.spec.second_fold.then(|| LweNoise::new(&self.lwe, self.shape.blocks, self.widths))
    }

    /// Returns log2 of the probability that an honest answer decodes wrongly (union bound over all decoded bytes).
    pub fn log2_failure(&self) -> f64 {
        let first = self.noise().log2_failure(self.shape.slot_bytes);
        let second = self.second_noise().map_or(f64::NEG_INFINITY, |noise| {
            noise.log2_failure(self.second_hint_rows() + self.second_answer_rows())
        });
        (first.exp2() + second.exp2()).log2()
    }
}

/// Checks the limits of the numbers that determine all others.
fn check_shape(spec: LweSpec, lwe: &LweParams, shape: TableShape) -> Result<(), ProtocolError> {
    let max_words = lwe.max_samples().map_or(MAX_COLUMNS, |samples| samples.min(MAX_COLUMNS));
    check_limit("columns", shape.columns, max_words)?;
    check_limit("slot bytes", shape.slot_bytes, MAX_SLOT_BYTES)?;
    check_limit("blocks", shape.blocks, MAX_DB_ROWS / shape.slot_bytes)?;
    if spec.one_block {
        check_limit("blocks (frodo has one)", shape.blocks, 1)?;
    }
    if spec.second_fold {
        check_limit("blocks (double has a query word for each)", shape.blocks, max_words)?;
    }
    Ok(())
}
