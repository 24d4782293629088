//! The step `lwe_fold` (1): it folds the first dimension.

use std::{mem::offset_of, ops::Range};

use zerocopy::{Immutable, IntoBytes};

use crate::device::{Arg, CudaError, Device, Slice};

use super::{queries::PreparedQueries, tiles::CudaDb};

/// The layout of a result: word (query, row) is at `query * query_stride + row * row_stride`.
#[derive(Clone, Copy)]
pub(super) struct ResultStrides {
    pub(super) query: usize,
    pub(super) row: usize,
}

/// The struct `FoldShape` of `kernels/lwe_fold.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
struct FoldShape {
    query_stride: u64,
    row_stride: u64,
    rows: u32,
    k_tiles: u32,
    queries: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<FoldShape>() == 32 && offset_of!(FoldShape, rows) == 16);

/// Adds the fold of some rows of `db`, the first of which begins a tile, to `out`, modulo 2^32.
pub(super) fn add_fold(
    device: &Device,
    db: &CudaDb,
    rows: Range<usize>,
    queries: &PreparedQueries,
    out: &Slice<'_, u32>,
    strides: ResultStrides,
) -> Result<(), CudaError> {
    debug_assert_eq!(db.k_tiles(), queries.k_tiles());
    let tiles = db.row_tiles(rows.clone());
    for (pass, prepared) in queries.passes() {
        let shape = FoldShape {
            query_stride: strides.query as u64,
            row_stride: strides.row as u64,
            rows: rows.len() as u32,
            k_tiles: db.k_tiles() as u32,
            queries: pass.queries as u32,
            reserved: 0,
        };
        let result = out.slice(pass.first * strides.query..);
        let shape = Arg::of(&shape);
        let launch = pass.launch(device.info(), rows.len(), db.k_tiles());
        device.launch(pass.kernel_name(), launch, &[tiles.into(), prepared.into(), result.into(), shape])?;
    }
    Ok(())
}
