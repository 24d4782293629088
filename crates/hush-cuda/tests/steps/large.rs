//! A table of more than 2^32 words, whose offsets 32 bits do not count: every kernel of the scan gives the same words, and those
//! that one finds by hand.

use crate::devices::gpu_or_one;
use hush_cuda::{Cuda, FoldKernel};
use hush_math::csprng::Csprng;
use hush_ops::contract::LweQueries;

/// Bytes of the table on a GPU, or half of its memory.
const BYTES: usize = 18 << 30;
/// The bytes in the emulator, for which [`BYTES`] would be too much.
const EMULATED_BYTES: usize = 1 << 20;
/// Rows that are computed by hand, between the first and the last.
const ROWS_BY_HAND: usize = 16;
const SEED: u64 = 1;

/// Returns a word of `fill_random` (`kernels/floors.cu`).
fn random_word(at: usize) -> u32 {
    let z = (at as u64).wrapping_add(SEED).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31) as u32
}

/// Returns a byte of a database of random words, where `kernels/lwe_tiles.cuh` says that it lies.
fn random_byte(row: usize, col: usize, cols: usize) -> i8 {
    let tile = row / 256 * cols.div_ceil(128) + col / 128;
    let chunk = (col % 128 / 16) ^ (row % 8);
    let at = tile * (256 * 128) + row % 256 * 128 + chunk * 16 + col % 16;
    random_word(at / 4).to_le_bytes()[at % 4] as i8
}

#[test]
fn every_kernel_counts_beyond_32_bits() {
    let device = gpu_or_one();
    let emulated = device.info().name == "emulator";
    let (bytes, cols, batch) = if emulated {
        (EMULATED_BYTES, (1 << 10) - 5, 5)
    } else {
        (BYTES.min(device.free_bytes().expect("the device is there") / 2), (1 << 16) - 5, 64)
    };
    let kernels = [FoldKernel::Mma, FoldKernel::Wgmma];
    let kernels = &kernels[..if device.is_hopper() { 2 } else { 1 }];
    // The last tile has fewer rows.
    let rows = bytes / cols - 3;
    let mut words = vec![0; batch * cols];
    Csprng::insecure_from_seed(2).fill_u32(&mut words);
    let queries = LweQueries { cols, words };

    let cuda = Cuda::new(device);
    let db = cuda.random_db(rows, cols, SEED).expect("there is room");
    let mut folded = Vec::with_capacity(kernels.len());
    for &kernel in kernels {
        let prepared = cuda.prepare_queries(&queries, Some(kernel)).expect("there is room");
        let sums = cuda.device().zeroed::<u32>(batch * rows).expect("there is room");
        cuda.add_prepared_fold(&db, &prepared, &sums.slice(..)).expect("the shapes fit");
        folded.push(cuda.device().download(&sums.slice(..)).expect("the device is there"));
    }
    for (kernel, words) in kernels.iter().zip(&folded) {
        assert!(*words == folded[0], "{kernel:?} and {:?} on {bytes} bytes", kernels[0]);
    }
    for row in (0..rows).step_by(rows / ROWS_BY_HAND).chain([rows - 1]) {
        let entries: Vec<_> = (0..cols).map(|col| i32::from(random_byte(row, col, cols)) as u32).collect();
        for (query, words) in queries.words.chunks_exact(cols).enumerate() {
            let products = entries.iter().zip(words).map(|(&entry, &word)| entry.wrapping_mul(word));
            let expected = products.fold(0u32, u32::wrapping_add);
            assert_eq!(folded[0][query * rows + row], expected, "row {row} of {rows}, query {query}");
        }
    }
}
