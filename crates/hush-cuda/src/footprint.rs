//! The device memory of table contents and keys, and the largest batches. Each step's own file states the memory of the step.

use hush_he::params::RingParams;
use hush_ops::{
    path::{Content, Footprint},
    steps::{StepShape, poly_bytes},
};

use crate::{
    Cuda, CudaChain, CudaDb,
    ring::{CudaKeys, CudaNttDb, MAX_PASS, STAGING_BYTES, columns_at_once},
};

impl Footprint for Cuda {
    type Steps = Self;
    const LARGEST_BATCH: usize = MAX_PASS;

    fn resident(content: &Content) -> usize {
        match content {
            Content::Bytes(tiling) => CudaDb::bytes_for(*tiling),
            Content::Eval(tiling) => CudaNttDb::bytes_for(*tiling),
            Content::Symbols { db, .. } => db.bytes(),
            Content::Chain { ring, shape, folds } => CudaChain::bytes_for(ring, shape, *folds),
            Content::Download { .. } => 0,
        }
    }

    /// Returns the bytes that are in flight at once during an upload.
    fn staging(content: &Content) -> usize {
        match content {
            Content::Bytes(tiling) if tiling.groups() > 0 => tiling.group_bytes(0).len(),
            Content::Eval(tiling) => {
                tiling.bytes().min(STAGING_BYTES.max(size_of::<u32>() * tiling.group_words()))
            }
            // The masks of terms are a transform of those that are uploaded.
            Content::Chain { ring, shape, folds } => {
                let masks = if *folds { 2 * shape.plaintexts() * poly_bytes(ring) } else { 0 };
                CudaChain::bytes_for(ring, shape, *folds) + masks
            }
            Content::Bytes(_) | Content::Symbols { .. } | Content::Download { .. } => 0,
        }
    }

    fn keys(ring: &RingParams) -> usize {
        CudaKeys::bytes_for(ring)
    }
}

/// A backend whose databases of symbols stay on the host ([`Cuda::with_symbols_on_host`]).
pub struct SymbolsOnHost;

impl Footprint for SymbolsOnHost {
    type Steps = Cuda;
    const LARGEST_BATCH: usize = MAX_PASS;

    fn footprint(step: &StepShape, batch: usize) -> usize {
        let copied = match step {
            StepShape::SymbolFold(fold) => {
                let db = fold.db.part(fold.parts);
                db.of_columns(columns_at_once(&db, fold.ring.kept_limbs())).bytes()
            }
            _ => 0,
        };
        step.footprint::<Cuda>(batch) + copied
    }

    fn resident(content: &Content) -> usize {
        if matches!(content, Content::Symbols { .. }) { 0 } else { Cuda::resident(content) }
    }

    fn staging(content: &Content) -> usize {
        Cuda::staging(content)
    }

    fn keys(ring: &RingParams) -> usize {
        Cuda::keys(ring)
    }
}
