//! Launches of kernels that turn squares of words over (`kernels/transpose.cuh`).

use crate::device::Launch;

/// Side of a square.
const SIDE: usize = 32;
/// Threads of a block.
const THREADS: u32 = 256;
/// Bytes of shared memory of a block.
const BYTES: usize = 4 * SIDE * (SIDE + 1);

/// Squares along a side of `words` words.
pub(crate) fn squares(words: usize) -> u32 {
    words.div_ceil(SIDE) as u32
}

/// Returns a launch of a grid of squares.
pub(crate) fn launch_squares(grid: [u32; 3]) -> Launch {
    Launch::grid(grid, THREADS).shared(BYTES)
}
