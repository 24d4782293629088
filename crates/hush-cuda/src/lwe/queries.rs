//! Queries in the layout of the fold kernels: swizzled tiles of their bytes (`kernels/lwe_tiles.cuh`).

use std::mem::offset_of;

use hush_ops::contract::LweQueries;
use zerocopy::{Immutable, IntoBytes};

use crate::device::{Arg, Buffer, CudaError, Device, Launch, Slice};

use super::{
    plan::{FoldKernel, Pass},
    tiles::TILE_COLS,
};

/// The chunks of 16 columns in a k tile, each written by a thread.
const TILE_CHUNKS: usize = 8;
/// The threads of a block of `split_queries` and `split_negacyclic`.
const THREADS: u32 = 256;

/// The prepared queries of a batch on the device: `[pass][k tile][N byte columns][128 bytes]`.
pub struct PreparedQueries {
    batch: usize,
    cols: usize,
    passes: Vec<Pass>,
    tiles: Buffer<u8>,
}

/// A view of some words on the device: the word of a query and a column is
/// `words[query * query_stride + column * column_stride]`.
#[derive(Clone, Copy)]
pub(super) struct WordView<'a> {
    pub(super) words: Slice<'a, u32>,
    pub(super) query_stride: usize,
    pub(super) column_stride: usize,
    pub(super) columns: usize,
}

/// The struct `WordShape` of `kernels/split_queries.cu`.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
struct WordShape {
    query_stride: u64,
    column_stride: u64,
    queries: u32,
    columns: u32,
}

const _: () = assert!(size_of::<WordShape>() == 24 && offset_of!(WordShape, queries) == 16);

impl PreparedQueries {
    /// Allocates memory for `batch` queries of `cols` words, prepared for `kernel`.
    pub(super) fn alloc(
        device: &Device,
        kernel: FoldKernel,
        batch: usize,
        cols: usize,
    ) -> Result<Self, CudaError> {
        let tiles = device.alloc(prepared_bytes(kernel, batch, cols))?;
        Ok(Self { batch, cols, passes: kernel.passes(batch).collect(), tiles })
    }

    /// Returns the bytes of device memory that `batch` queries of `cols` words need at most, whichever kernel the device
    /// uses.
    pub fn bytes_for(batch: usize, cols: usize) -> usize {
        let kernels = [FoldKernel::Wgmma, FoldKernel::Mma];
        kernels.map(|kernel| prepared_bytes(kernel, batch, cols)).into_iter().max().unwrap_or(0)
    }

    /// Returns the number of queries.
    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// Returns the words of a query.
    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        self.tiles.len()
    }

    /// Uploads and prepares a batch.
    pub(super) fn upload(
        device: &Device,
        kernel: FoldKernel,
        queries: &LweQueries,
    ) -> Result<Self, CudaError> {
        let prepared = Self::alloc(device, kernel, queries.batch(), queries.cols)?;
        let words = device.upload(&queries.words)?;
        let view = WordView {
            words: words.slice(..),
            query_stride: queries.cols,
            column_stride: 1,
            columns: queries.cols,
        };
        prepared.split(device, 0, view)?;
        Ok(prepared)
    }

    /// Prepares columns of all queries, from k tile `first_tile` on, as many as `view` has.
    pub(super) fn split(
        &self,
        device: &Device,
        first_tile: usize,
        view: WordView<'_>,
    ) -> Result<(), CudaError> {
        let k_tiles = view.columns.div_ceil(TILE_COLS);
        for (pass, tiles) in self.passes() {
            let shape = WordShape {
                query_stride: view.query_stride as u64,
                column_stride: view.column_stride as u64,
                queries: pass.queries as u32,
                columns: view.columns as u32,
            };
            let tiles = tiles.slice(first_tile * pass.tile_bytes()..);
            let words = view.words.slice(pass.first * view.query_stride..);
            let shape = Arg::of(&shape);
            let args = [tiles.into(), words.into(), shape, (pass.padded as u32).into()];
            device.launch("split_queries", split_launch(pass, k_tiles), &args)?;
        }
        Ok(())
    }

    /// Returns the number of k tiles of a query.
    pub(super) fn k_tiles(&self) -> usize {
        self.cols.div_ceil(TILE_COLS)
    }

    /// Returns the passes, each with its tiles.
    pub(super) fn passes(&self) -> impl Iterator<Item = (&Pass, Slice<'_, u8>)> {
        self.passes.iter().scan(0, |end, pass| {
            let start = *end;
            *end += self.k_tiles() * pass.tile_bytes();
            Some((pass, self.tiles.slice(start..*end)))
        })
    }
}

fn prepared_bytes(kernel: FoldKernel, batch: usize, cols: usize) -> usize {
    kernel.passes(batch).map(|pass| cols.div_ceil(TILE_COLS) * pass.tile_bytes()).sum()
}

/// Returns the launch of a kernel that prepares `k_tiles` k tiles of a pass, with a thread for each chunk of a query.
pub(super) fn split_launch(pass: &Pass, k_tiles: usize) -> Launch {
    let blocks = (pass.padded * TILE_CHUNKS).div_ceil(THREADS as usize);
    Launch::grid([k_tiles as u32, blocks as u32, 1], THREADS)
}
