//! Launches of kernels that transpose squares of words (`kernels/transpose.cuh`).

use crate::device::Launch;

/// The side of a square, in words.
const SIDE: usize = 32;
/// The threads of a block.
const THREADS: u32 = 256;
/// The bytes of shared memory of a block.
const BYTES: usize = 4 * SIDE * (SIDE + 1);

/// Returns the number of squares along a side of `words` words.
pub(crate) fn squares(words: usize) -> u32 {
    words.div_ceil(SIDE) as u32
}

/// Returns a launch of a grid of squares, one for each block.
pub(crate) fn launch_squares(grid: [u32; 3]) -> Launch {
    Launch::grid(grid, THREADS).shared(BYTES)
}
