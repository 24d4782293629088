//! The path of a protocol as data: its steps with their shapes, and the files that they read.
//!
//! The file of each step computes the step's cost from its shape ([`crate::steps`]); each backend computes the memory
//! ([`Footprint`]). The largest batch, the memory plan, `inspect`, the benchmarks and the planner add up one list.

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
    /// Whether the step runs for one query after another, instead of for a batch at once.
    pub one_by_one: bool,
}

impl Step {
    /// Creates a step that runs for a batch at once.
    pub fn of_batch(shape: impl Into<StepShape>) -> Self {
        Self { shape: shape.into(), one_by_one: false }
    }

    /// Creates a step that runs for one query after another.
    pub fn of_query(shape: impl Into<StepShape>) -> Self {
        Self { shape: shape.into(), one_by_one: true }
    }
}

/// The content of a snapshot's file, which tells a backend how to read it.
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
        /// The shape: D0 rows, and a column for each plane of each entry.
        db: SymbolTiling,
    },
    /// The polynomials of a chain (`chain_hint`): a digit for every plaintext, and a mask if entries are folded.
    Chain {
        /// The RLWE set.
        ring: RingParams,
        /// The plaintexts.
        shape: PackShape,
        /// Whether entries are folded, so that there are masks.
        folds: bool,
    },
    /// A file that clients download and no backend reads.
    Download {
        /// The largest size of the file, which may be compressed.
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
            Self::Chain { ring, shape, folds } => {
                (1 + u64::from(*folds)) * shape.plaintexts() as u64 * poly_bytes(ring) as u64
            }
            Self::Download { bytes } => *bytes,
        }
    }

    /// Returns whether a server holds the file in memory: true unless it is for download only.
    pub fn is_held(&self) -> bool {
        !matches!(self, Self::Download { .. })
    }

    /// Returns whether every answer reads the file: true of a database in any form.
    pub fn is_scanned(&self) -> bool {
        matches!(self, Self::Bytes(_) | Self::Eval(_) | Self::Symbols { .. })
    }
}

/// Returns the tiling of the pack columns of a database of `rows` rows: 4N bytes for each row.
pub fn pack_columns_tiling(ring: &RingParams, rows: usize) -> Tiling {
    Tiling::new(rows, PACK_BYTES * ring.degree())
}

/// The memory that a backend needs: upper bounds, known before anything is loaded.
pub trait Footprint {
    /// The backend's bounds for each step.
    type Steps: StepFootprints;
    /// The largest number of queries in one pass of any step.
    const LARGEST_BATCH: usize;

    /// Returns the largest batch of a step: the smaller of
    /// [`StepFootprint::LARGEST_BATCH`](crate::steps::StepFootprint::LARGEST_BATCH) and [`Footprint::LARGEST_BATCH`].
    fn largest_batch(step: &StepShape) -> usize {
        step.largest_batch::<Self::Steps>().min(Self::LARGEST_BATCH)
    }

    /// Returns [`StepFootprint::footprint`](crate::steps::StepFootprint::footprint) of a step.
    fn footprint(step: &StepShape, batch: usize) -> usize {
        step.footprint::<Self::Steps>(batch)
    }

    /// Returns the bytes that a file occupies as long as it is loaded.
    fn resident(content: &Content) -> usize;

    /// Returns the bytes in flight at once while a file is loaded.
    fn staging(content: &Content) -> usize;

    /// Returns the bytes that a client's evaluation keys occupy.
    fn keys(ring: &RingParams) -> usize;
}

/// Returns the largest batch of a path whose steps fit into `room` bytes; at least one query.
pub fn largest_batch<F: Footprint>(path: &[Step], room: usize) -> usize {
    let most = path.iter().map(|step| F::largest_batch(&step.shape)).min().unwrap_or(1);
    (1..=most).rev().find(|&batch| batch_bytes::<F>(path, batch) <= room).unwrap_or(1)
}

/// Returns the bytes that all steps of a path need for `batch` queries.
pub fn batch_bytes<F: Footprint>(path: &[Step], batch: usize) -> usize {
    path.iter()
        .map(|step: &Step| F::footprint(&step.shape, if step.one_by_one { batch.min(1) } else { batch }))
        .fold(0, usize::saturating_add)
}
