//! The public matrix A as queries: its columns, prepared for a fold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hush_he::entities::{MatrixShape, MatrixStructure, PublicMatrix};
use hush_ops::steps::LweHint;
use zerocopy::{Immutable, IntoBytes};

use crate::{
    Cuda,
    device::{Arg, CudaError, Device},
};

use super::{
    plan::FoldKernel,
    queries::{PreparedQueries, WordView, split_launch},
    tiles::TILE_COLS,
};

/// The approximate number of words of A in flight to the device at once: 32 MiB.
const STAGED_WORDS: usize = 8 << 20;
/// The divisor of the device's memory that gives the share for prepared matrices. One matrix is always kept.
const KEPT_SHARE: usize = 8;

/// Returns the bytes that the columns of a matrix need, prepared for a fold, including the words in flight.
pub fn matrix_bytes(a: &MatrixShape) -> usize {
    let staged = match a.structure() {
        MatrixStructure::Plain => staged_rows(a).min(a.cols()) * a.n(),
        MatrixStructure::Ring { degree } => a.cols().div_ceil(degree) * a.n(),
    };
    PreparedQueries::bytes_for(a.n(), a.cols()) + size_of::<u32>() * staged
}

/// A cache of the columns of the most recently used matrices. The hint of a table is computed some rows at a time, and the hint of
/// a second fold for every query. So tables that alternate find their matrices prepared.
#[derive(Default)]
pub(crate) struct PreparedMatrices {
    /// The matrices, of which the most recently used comes last.
    matrices: Mutex<Vec<Prepared>>,
}

struct Prepared {
    matrix: PublicMatrix,
    kernel: FoldKernel,
    columns: Arc<PreparedQueries>,
}

impl PreparedMatrices {
    /// Returns the columns of `a`, prepared for `kernel`. Prepares them if they are not in the cache.
    pub(super) fn prepare(
        &self,
        device: &Device,
        kernel: FoldKernel,
        a: &PublicMatrix,
    ) -> Result<Arc<PreparedQueries>, CudaError> {
        let mut matrices = self.lock();
        let found = matrices.iter().position(|ready| (&ready.matrix, ready.kernel) == (a, kernel));
        let ready = match found {
            Some(at) => matrices.remove(at),
            None => {
                // Free the memory of other matrices first: a matrix may need as much as a part of the table.
                let bytes = PreparedQueries::bytes_for(a.n(), a.cols());
                make_room(&mut matrices, bytes, device.info().memory_bytes / KEPT_SHARE);
                let columns = Arc::new(match a.structure() {
                    MatrixStructure::Plain => prepare_plain(device, kernel, a)?,
                    MatrixStructure::Ring { degree } => prepare_ring(device, kernel, a, degree)?,
                });
                Prepared { matrix: *a, kernel, columns }
            }
        };
        let columns = ready.columns.clone();
        matrices.push(ready);
        Ok(columns)
    }

    /// Evicts all matrices. A caller that uses a matrix keeps it.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Prepared>> {
        self.matrices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evicts the least recently used matrices until the remaining ones and `more` further bytes are at most `most` bytes.
fn make_room(matrices: &mut Vec<Prepared>, more: usize, most: usize) {
    let mut bytes = more + matrices.iter().map(|ready| ready.columns.bytes()).sum::<usize>();
    let mut forgotten = 0;
    while bytes > most && forgotten < matrices.len() {
        bytes -= matrices[forgotten].columns.bytes();
        forgotten += 1;
    }
    matrices.drain(..forgotten);
}

/// Returns the number of rows of A that are computed and uploaded at once.
fn staged_rows(a: &MatrixShape) -> usize {
    (STAGED_WORDS / a.n().max(1)).next_multiple_of(TILE_COLS)
}

/// Computes rows of A on the host, uploads them and splits them, some k tiles at a time.
fn prepare_plain(
    device: &Device,
    kernel: FoldKernel,
    a: &PublicMatrix,
) -> Result<PreparedQueries, CudaError> {
    let cols = a.cols();
    let n = a.n();
    let prepared = PreparedQueries::alloc(device, kernel, n, cols)?;
    let step = staged_rows(a.shape());
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

/// The struct `RingBlocks` of `kernels/negacyclic.cu`.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
struct RingBlocks {
    columns: u32,
    n: u32,
    log_degree: u32,
    first: u32,
}

const _: () = assert!(size_of::<RingBlocks>() == 16);

/// Computes ring elements on the host, and expands them on the device.
fn prepare_ring(
    device: &Device,
    kernel: FoldKernel,
    a: &PublicMatrix,
    degree: usize,
) -> Result<PreparedQueries, CudaError> {
    let cols = a.cols();
    let n = a.n();
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
        let ring = Arg::of(&ring);
        let args = [tiles.into(), (&alpha).into(), ring, (pass.padded as u32).into()];
        device.launch("split_negacyclic", split_launch(pass, prepared.k_tiles()), &args)?;
    }
    Ok(prepared)
}

hush_ops::footprint!(Cuda: LweHint, |step, batch| {
    let &LweHint { db, matrix, parts } = step;
    batch * size_of::<u32>() * matrix.n() * db.rows().div_ceil(parts) + matrix_bytes(&matrix)
});

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use hush_he::entities::{MatrixDomain, PublicSeed};

    use super::*;
    use crate::device::Emulation;

    const KERNEL: FoldKernel = FoldKernel::Mma;

    fn matrix(structure: MatrixStructure, cols: usize) -> PublicMatrix {
        of_table(1, structure, cols)
    }

    fn of_table(seed: u8, structure: MatrixStructure, cols: usize) -> PublicMatrix {
        let shape = MatrixShape::new(MatrixDomain::Second, structure, cols, 16);
        PublicMatrix::new(PublicSeed([seed; 32]), shape)
    }

    #[test]
    fn matrices_that_take_turns_are_prepared_once() {
        let device = Device::emulated(Emulation::default());
        let prepared = PreparedMatrices::default();
        let ring = MatrixStructure::Ring { degree: 8 };
        let matrices = [matrix(MatrixStructure::Plain, 100), matrix(ring, 100), matrix(ring, 300)];
        let prepare = |a| prepared.prepare(&device, KERNEL, a).unwrap();
        let first: Vec<_> = matrices.iter().map(prepare).collect();
        for _ in 0..2 {
            let uploaded = device.uploaded_bytes();
            for (a, first) in matrices.iter().zip(&first) {
                assert!(Arc::ptr_eq(first, &prepare(a)), "{a:?}");
            }
            assert_eq!(device.uploaded_bytes(), uploaded);
        }
        // Another table of the same shape has another matrix.
        let other = of_table(2, MatrixStructure::Plain, 100);
        assert!(!Arc::ptr_eq(&first[0], &prepared.prepare(&device, KERNEL, &other).unwrap()));
        // Another kernel needs another preparation.
        assert!(!Arc::ptr_eq(
            &first[0],
            &prepared.prepare(&device, FoldKernel::Wgmma, &matrices[0]).unwrap()
        ));
        let free = device.free_bytes().unwrap();
        drop(first);
        prepared.forget();
        assert!(device.free_bytes().unwrap() > free);
    }

    #[test]
    fn matrices_take_a_share_of_the_memory() {
        // Each matrix needs as much memory as 16 queries of 8 tiles.
        let [one, two, three] = [1024, 1023, 1022].map(|cols| matrix(MatrixStructure::Plain, cols));
        let bytes = PreparedQueries::bytes_for(one.n(), one.cols());
        assert_eq!((bytes, matrix_bytes(one.shape())), (4 * 16 * 1024, 2 * 4 * 16 * 1024));
        let device = Device::emulated_with_memory(Emulation::default(), 2 * KEPT_SHARE * bytes);
        let prepared = PreparedMatrices::default();
        let is_ready = |a: &PublicMatrix| prepared.lock().iter().any(|ready| ready.matrix == *a);
        for a in [&one, &two, &one, &three] {
            prepared.prepare(&device, KERNEL, a).unwrap();
        }
        assert_eq!([&one, &two, &three].map(is_ready), [true, false, true], "the second is the oldest");
        // A matrix that needs more than the share is kept alone.
        let large = matrix(MatrixStructure::Plain, 4096);
        prepared.prepare(&device, KERNEL, &large).unwrap();
        assert_eq!([&one, &three, &large].map(is_ready), [false, false, true]);
    }
}
