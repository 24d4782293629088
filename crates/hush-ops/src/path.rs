//! The path of a protocol as data: its steps with their shapes, and the files that they read.
//!
//! What a step costs, its file works out from its shape ([`crate::steps`]); what memory it takes, each backend ([`Footprint`]). The
//! largest batch, the memory plan, `inspect`, the benchmarks and the planner add up one list.

use hush_he::params::RingParams;

use crate::{
    contract::PACK_BYTES,
    ntt_tiling::NttTiling,
    pack_shape::PackShape,
    steps::{StepFootprints, StepShape, poly_bytes},
    symbol_tiling::SymbolTiling,
    tiling::Tiling,
};

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The shape of the step.
    pub shape: StepShape,
    /// Whether it is done for one query after another, and not for a batch at once.
    pub one_by_one: bool,
}

impl Step {
    /// Returns a step that is done for a batch at once.
    pub fn of_batch(shape: impl Into<StepShape>) -> Self {
        Self { shape: shape.into(), one_by_one: false }
    }

    /// Returns a step that is done for one query after another.
    pub fn of_query(shape: impl Into<StepShape>) -> Self {
        Self { shape: shape.into(), one_by_one: true }
    }
}

/// The content of a snapshot's file, by which a backend reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// A byte database.
    Bytes(Tiling),
    /// A database of ring elements in evaluation form.
    Eval(NttTiling),
    /// A database of ring elements as symbols.
    Symbols {
        /// The RLWE set.
        ring: RingParams,
        /// D0 rows, a column a plane and entry.
        db: SymbolTiling,
    },
    /// The polynomials of a chain (`chain_hint`): a digit and a mask for every plaintext.
    Chain {
        /// The RLWE set.
        ring: RingParams,
        /// The plaintexts.
        shape: PackShape,
        /// Whether entries are folded, for which a backend keeps the masks.
        folds: bool,
    },
    /// A file that clients download, and no backend reads.
    Download {
        /// The most bytes that the file has: it may be compressed.
        bytes: u64,
    },
}

impl Content {
    /// Returns the bytes of the file.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(tiling) => tiling.stored_bytes(),
            Self::Eval(tiling) => tiling.stored_bytes(),
            Self::Symbols { db, .. } => db.stored_bytes(),
            Self::Chain { ring, shape, .. } => 2 * shape.plaintexts() as u64 * poly_bytes(ring) as u64,
            Self::Download { bytes } => *bytes,
        }
    }

    /// Returns whether a server holds it: all but what clients download.
    pub fn is_held(&self) -> bool {
        !matches!(self, Self::Download { .. })
    }

    /// Returns whether every answer reads it: a database, in whatever form.
    pub fn is_scanned(&self) -> bool {
        matches!(self, Self::Bytes(_) | Self::Eval(_) | Self::Symbols { .. })
    }
}

/// Returns the pack columns of a database of `rows` rows: 4N bytes beside each of them.
pub fn pack_columns_tiling(ring: &RingParams, rows: usize) -> Tiling {
    Tiling::new(rows, PACK_BYTES * ring.degree())
}

/// The memory that a backend takes: bounds, known before anything is loaded.
pub trait Footprint {
    /// The backend that states what its steps take.
    type Steps: StepFootprints;
    /// Queries that one pass of any step takes at most.
    const LARGEST_BATCH: usize;

    /// [`StepFootprint::LARGEST_BATCH`](crate::steps::StepFootprint::LARGEST_BATCH).
    fn largest_batch(step: &StepShape) -> usize {
        step.largest_batch::<Self::Steps>().min(Self::LARGEST_BATCH)
    }

    /// [`StepFootprint::footprint`](crate::steps::StepFootprint::footprint).
    fn footprint(step: &StepShape, batch: usize) -> usize {
        step.footprint::<Self::Steps>(batch)
    }

    /// Returns the bytes that a file takes for good, once it is loaded.
    fn resident(content: &Content) -> usize;

    /// Returns the bytes that are on their way at once while a file is loaded.
    fn staging(content: &Content) -> usize;

    /// Returns the bytes of a client's evaluation keys.
    fn keys(ring: &RingParams) -> usize;
}

/// Returns the largest batch of a path, at least one query, whose steps fit `room` bytes.
pub fn largest_batch<F: Footprint>(path: &[Step], room: usize) -> usize {
    let most = path.iter().map(|step| F::largest_batch(&step.shape)).min().unwrap_or(1);
    (1..=most).rev().find(|&batch| batch_bytes::<F>(path, batch) <= room).unwrap_or(1)
}

/// Returns the bytes that a path takes for `batch` queries.
pub fn batch_bytes<F: Footprint>(path: &[Step], batch: usize) -> usize {
    path.iter()
        .map(|step: &Step| F::footprint(&step.shape, if step.one_by_one { batch.min(1) } else { batch }))
        .fold(0, usize::saturating_add)
}
