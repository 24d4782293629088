//! Parameters of a table over LWE, and every size that follows from them.

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

/// The facts that differ between the protocols over LWE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LweSpec {
    /// The protocol.
    pub protocol: Protocol,
    /// Whether a table has a single block: every slot a column.
    pub one_block: bool,
    /// Whether the result of the first fold is folded again.
    pub second_fold: bool,
}

/// Checked parameters of a table over LWE. Everything on the wire has a size that is a function of this alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LweTable {
    spec: LweSpec,
    lwe: LweParams,
    shape: TableShape,
    widths: Widths,
    /// Columns of the queries that it is asked with: its own, or those of the base.
    asked_columns: usize,
}

impl LweTable {
    /// Chooses the widths of words for `shape`, then checks limits and noise.
    pub fn new(spec: LweSpec, lwe: LweParams, shape: TableShape) -> Result<Self, ProtocolError> {
        check_shape(spec, &lwe, shape)?;
        let full = Self { spec, lwe, shape, widths: Widths::FULL, asked_columns: shape.columns };
        let traffic = Traffic {
            query: shape.columns as f64,
            hint: full.hint_rows() as f64 * lwe.n() as f64 / LOOKUPS_PER_EPOCH,
            answer: full.answer_bytes() as f64 / 4.0,
        };
        // DoublePIR cuts hint words into bytes.
        let hints: &[u32] = if spec.second_fold { &[16, 24, 32] } else { &[16, 18, 20, 22, 24, 32] };
        // DoublePIR's second query has a word for every block, at the same width.
        let words = if spec.second_fold { shape.columns.max(shape.blocks) } else { shape.columns };
        Self::with_widths(spec, lwe, shape, Widths::choose(&lwe, words, traffic, hints))
    }

    /// Checks limits and noise.
    ///
    /// # Errors
    /// [`ProtocolError::Limit`] for a shape out of range, [`ProtocolError::SlotTooLong`] for slots that would make the hint of
    /// `double` longer than [`MAX_DOUBLE_HINT_BYTES`], [`ProtocolError::TooNoisy`] if an answer would fail with probability
    /// above 2^-64.
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
    /// As [`LweTable::with_widths`], and [`ProtocolError::Limit`] for what this table's queries cannot ask.
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
            // Of a byte of the slots; columns and blocks do not matter.
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

    /// Returns the facts that differ between the protocols.
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

    /// Bits at which words travel.
    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// Database rows.
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

    /// Returns the shapes that segments may have that are asked with the queries of this table.
    pub(crate) fn segment_rule(&self) -> SegmentRule {
        // The second vector is as it is.
        let entries = vec![if self.spec.second_fold { self.shape.blocks } else { 1 }];
        SegmentRule { columns: self.shape.columns, column_unit: self.first_matrix().column_unit(), entries }
    }

    /// Returns the bytes into which a word of the first fold is cut for the second one (DoublePIR).
    pub fn digits(&self) -> usize {
        self.widths.hint as usize / 8
    }

    /// Returns the tiling of the second database, which stems from the hint and has a column for every block (`double`).
    pub fn second_tiling(&self) -> Tiling {
        Tiling::new(self.second_hint_rows(), self.shape.blocks)
    }

    /// Rows of the second database that stem from the hint (DoublePIR).
    pub fn second_hint_rows(&self) -> usize {
        self.shape.slot_bytes * self.lwe.n() * self.digits()
    }

    /// Rows of the second database that stem from the answer (DoublePIR).
    pub fn second_answer_rows(&self) -> usize {
        self.shape.slot_bytes * self.digits()
    }

    /// Returns the bytes of a query: first and second dimension.
    pub fn query_bytes(&self) -> (usize, usize) {
        let packed = |words| packed_bytes(words, self.widths.query);
        let second = if self.spec.second_fold { packed(self.shape.blocks) } else { 0 };
        (packed(self.shape.columns), second)
    }

    /// Returns the bytes of an answer.
    pub fn answer_bytes(&self) -> usize {
        let words = |count| packed_bytes(count, self.widths.answer);
        if !self.spec.second_fold {
            return words(self.rows());
        }
        let online_hint = packed_bytes(self.second_answer_rows() * self.lwe.n(), self.widths.hint);
        words(self.second_hint_rows()) + words(self.second_answer_rows()) + online_hint
    }

    /// Rows of the hint that a client downloads, each of n words.
    pub fn hint_rows(&self) -> usize {
        if self.spec.second_fold { self.second_hint_rows() } else { self.rows() }
    }

    /// Returns the bytes of one hint row.
    pub fn hint_row_bytes(&self) -> usize {
        packed_bytes(self.lwe.n(), self.widths.hint)
    }

    /// Returns the bytes of the hint.
    pub fn hint_bytes(&self) -> u64 {
        self.hint_rows() as u64 * self.hint_row_bytes() as u64
    }

    /// Noise of the first fold, as the client sees it.
    pub fn noise(&self) -> LweNoise {
        // DoublePIR makes digits of the answer as of the hint.
        let is_double = self.spec.second_fold;
        let answer = if is_double { self.widths.hint } else { self.widths.answer };
        LweNoise::new(&self.lwe, self.asked_columns, Widths { answer, ..self.widths })
    }

    /// Noise of the second fold (DoublePIR).
    pub fn second_noise(&self) -> Option<LweNoise> {
        self.spec.second_fold.then(|| LweNoise::new(&self.lwe, self.shape.blocks, self.widths))
    }

    /// log2 of the probability that an honest answer decodes wrongly (union bound over all decoded bytes).
    pub fn log2_failure(&self) -> f64 {
        let first = self.noise().log2_failure(self.shape.slot_bytes);
        let second = self.second_noise().map_or(f64::NEG_INFINITY, |noise| {
            noise.log2_failure(self.second_hint_rows() + self.second_answer_rows())
        });
        (first.exp2() + second.exp2()).log2()
    }
}

/// The limits of the numbers from which everything else follows.
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
