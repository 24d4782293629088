//! The public matrix A as queries: its columns, prepared for a fold.

use std::sync::{Arc, Mutex, PoisonError};

use hush_he::entities::{MatrixStructure, PublicMatrix};

use crate::device::{Arg, CudaError, Device};

use super::{
    plan::FoldKernel,
    queries::{PreparedQueries, WordView, split_launch},
    tiles::TILE_COLS,
};

/// Words of A that are on their way to the device at once, about: 32 MiB.
const STAGED_WORDS: usize = 8 << 20;

/// The columns of the matrix that was used last: the hint of a table is asked for some rows at a time.
#[derive(Default)]
pub(super) struct LastMatrix {
    prepared: Mutex<Option<(PublicMatrix, FoldKernel, Arc<PreparedQueries>)>>,
}

impl LastMatrix {
    /// The columns of `a`, prepared for `kernel` if they are not yet.
    pub(super) fn prepare(
        &self,
        device: &Device,
        kernel: FoldKernel,
        a: &PublicMatrix,
    ) -> Result<Arc<PreparedQueries>, CudaError> {
        let mut last = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, prepared)) =
            last.as_ref().filter(|(matrix, for_kernel, _)| (matrix, for_kernel) == (a, &kernel))
        {
            return Ok(prepared.clone());
        }
        // Its memory first: a matrix may take as much as a part of the table.
        *last = None;
        let prepared = Arc::new(match a.structure() {
            MatrixStructure::Plain => prepare_plain(device, kernel, a)?,
            MatrixStructure::Ring { degree } => prepare_ring(device, kernel, a, degree)?,
        });
        *last = Some((*a, kernel, prepared.clone()));
        Ok(prepared)
    }
}

/// Rows of A are made on the host, and uploaded and split some k tiles at a time.
fn prepare_plain(
    device: &Device,
    kernel: FoldKernel,
    a: &PublicMatrix,
) -> Result<PreparedQueries, CudaError> {
    let (cols, n) = (a.cols(), a.n());
    let prepared = PreparedQueries::alloc(device, kernel, n, cols)?;
    let step = (STAGED_WORDS / n.max(1)).next_multiple_of(TILE_COLS);
    for first in (0..cols).step_by(step) {
        let columns = step.min(cols - first);
        let mut host = vec![0; columns * n];
        for (row, words) in host.chunks_exact_mut(n.max(1)).enumerate() {
            a.row_into(first + row, words);
        }
        let words = device.upload(&host)?;
        let view = WordView { words: words.slice(..), query_stride: 1, column_stride: n, columns };
        prepared.split(device, first / TILE_COLS, view)?;
    }
    Ok(prepared)
}

/// As `kernels/negacyclic.cu` has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct RingBlocks {
    columns: u32,
    n: u32,
    log_degree: u32,
    first: u32,
}

const _: () = assert!(size_of::<RingBlocks>() == 16);

/// Ring elements are made on the host, and expanded on the device.
fn prepare_ring(
    device: &Device,
    kernel: FoldKernel,
    a: &PublicMatrix,
    degree: usize,
) -> Result<PreparedQueries, CudaError> {
    let (cols, n) = (a.cols(), a.n());
    let prepared = PreparedQueries::alloc(device, kernel, n, cols)?;
    let mut alpha = vec![0; cols.div_ceil(degree) * n];
    for (block, words) in alpha.chunks_exact_mut(n.max(1)).enumerate() {
        a.ring_block_into(block, words);
    }
    let alpha = device.upload(&alpha)?;
    for (pass, tiles) in prepared.passes() {
        let ring = RingBlocks {
            columns: cols as u32,
            n: n as u32,
            log_degree: degree.ilog2(),
            first: pass.first as u32,
        };
        // SAFETY: it is `repr(C)`, laid out as the kernel has it, and has no padding.
        let ring = unsafe { Arg::of(&ring) };
        let args = [tiles.into(), (&alpha).into(), ring, (pass.padded as u32).into()];
        device.launch("split_negacyclic", split_launch(pass, prepared.k_tiles()), &args)?;
    }
    Ok(prepared)
}
