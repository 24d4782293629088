//! Squares of words, transposed from one place in memory to another.

use std::array::from_fn;

use crate::{
    Level,
    kernels::with_lanes,
    lanes::{Lanes, VectorLoop},
};

/// The number of lines of a square, and of words of a line: a cache line.
pub(crate) const SQUARE: usize = 16;

/// A function that moves word `j` of line `i` at `from` to word `i` of line `j` at `to`. Lines are `from_stride` and `to_stride`
/// words apart.
///
/// # Safety
/// The CPU must have the level; 16 lines of 16 words are readable and writable.
pub(crate) type Transpose = unsafe fn(from: *const u32, from_stride: usize, to: *mut u32, to_stride: usize);

/// The transposition kernels of a level.
#[derive(Clone, Copy)]
pub(crate) struct Squares {
    /// The kernel for lines that are read soon.
    pub(crate) transpose: Transpose,
    /// The kernel for lines that are read late: past the caches if that helps. Call
    /// [`crate::kernels::end_stream`] before another thread reads them.
    ///
    /// # Safety
    /// The conditions of [`Transpose`] must hold, and the lines at `to` are whole cache lines.
    pub(crate) stream: Transpose,
}

impl Squares {
    pub(crate) fn of(level: Level) -> Self {
        with_lanes!(level, L => Self { transpose: transpose::<L, false>, stream: transpose::<L, true> })
    }
}

/// # Safety
/// The conditions of [`Transpose`] must hold, and if `STREAM`, those of [`Squares::stream`].
unsafe fn transpose<L: Lanes, const STREAM: bool>(
    from: *const u32,
    from_stride: usize,
    to: *mut u32,
    to_stride: usize,
) {
    // SAFETY: the caller promises so.
    unsafe { L::enter(Square::<STREAM> { from, from_stride, to, to_stride }) };
}

/// The operands of a transposition.
struct Square<const STREAM: bool> {
    from: *const u32,
    from_stride: usize,
    to: *mut u32,
    to_stride: usize,
}

impl<const STREAM: bool> VectorLoop for Square<STREAM> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: the caller has the instruction set.
        unsafe { if L::WIDTH == SQUARE { self.transpose::<L, SQUARE>() } else { self.transpose::<L, 8>() } }
    }
}

impl<const STREAM: bool> Square<STREAM> {
    /// Transposes the square in squares of `W` words, which is the width of a vector.
    ///
    /// # Safety
    /// The conditions of [`Transpose`] must hold; the CPU has the instruction set of `L`.
    #[inline(always)]
    unsafe fn transpose<L: Lanes, const W: usize>(self) {
        for (i, j) in (0..SQUARE * SQUARE / W).step_by(W).map(|at| (at / SQUARE * W, at % SQUARE)) {
            // SAFETY: within the squares; the caller has the instruction set.
            unsafe {
                let from = self.from.add(i * self.from_stride + j);
                let to = self.to.add(j * self.to_stride + i);
                let mut lines: [L::Words; W] = from_fn(|k| L::load(from.add(k * self.from_stride)));
                L::transpose(&mut lines);
                for (k, line) in lines.into_iter().enumerate() {
                    let to = to.add(k * self.to_stride);
                    // Vectors of half a line gain nothing from stores past the caches.
                    if STREAM && W == SQUARE { L::stream(to, line) } else { L::store(to, line) }
                }
            }
        }
    }
}
