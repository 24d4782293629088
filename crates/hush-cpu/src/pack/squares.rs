//! Squares of words, transposed from one place in memory to another.

use std::arch::x86_64::*;

use crate::{
    Level,
    lanes::{Avx2, Avx512, Lanes},
    ntt::Words,
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
    /// The kernel for lines that are read late: past the caches if that helps. Call [`end_stream`] before another thread reads
    /// them.
    ///
    /// # Safety
    /// The conditions of [`Transpose`] must hold, and the lines at `to` are whole cache lines.
    pub(crate) stream: Transpose,
}

impl Squares {
    pub(crate) fn of(level: Level) -> Self {
        match level {
            Level::Scalar => Self { transpose: scalar, stream: scalar },
            // AVX2 vectors are half a line, so streaming does not help.
            Level::Avx2 => Self { transpose: avx2, stream: avx2 },
            Level::Avx512 | Level::Avx512Ifma | Level::Amx => {
                Self { transpose: avx512::<false>, stream: avx512::<true> }
            }
        }
    }
}

/// Orders writes past the caches before all later writes.
pub(crate) fn end_stream() {
    // SAFETY: every CPU of this architecture has this instruction.
    unsafe { _mm_sfence() };
}

/// # Safety
/// The conditions of [`Transpose`] must hold.
unsafe fn scalar(from: *const u32, from_stride: usize, to: *mut u32, to_stride: usize) {
    for i in 0..SQUARE {
        for j in 0..SQUARE {
            // SAFETY: within the squares.
            unsafe { *to.add(j * to_stride + i) = *from.add(i * from_stride + j) };
        }
    }
}

/// # Safety
/// The conditions of [`Transpose`] must hold.
#[target_feature(enable = "avx2")]
unsafe fn avx2(from: *const u32, from_stride: usize, to: *mut u32, to_stride: usize) {
    for (i, j) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
        // SAFETY: within the squares; the caller has AVX2.
        unsafe {
            let from = from.add(i * from_stride + j);
            let to = to.add(j * to_stride + i);
            let mut lines = [_mm256_setzero_si256(); 8];
            lines.iter_mut().enumerate().for_each(|(k, line)| *line = Avx2::load(from.add(k * from_stride)));
            for (k, line) in Avx2::transpose(lines).into_iter().enumerate() {
                Avx2::store(to.add(k * to_stride), line);
            }
        }
    }
}

/// # Safety
/// The conditions of [`Transpose`] must hold, and if `STREAM`, those of [`Squares::stream`].
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const STREAM: bool>(from: *const u32, from_stride: usize, to: *mut u32, to_stride: usize) {
    // SAFETY: within the squares; the caller has AVX-512 F.
    unsafe {
        let mut lines = [_mm512_setzero_si512(); SQUARE];
        lines.iter_mut().enumerate().for_each(|(k, line)| *line = Avx512::load(from.add(k * from_stride)));
        for (k, line) in Avx512::transpose(lines).into_iter().enumerate() {
            let to = to.add(k * to_stride);
            if STREAM { _mm512_stream_si512(to.cast(), line) } else { Avx512::store(to, line) }
        }
    }
}
