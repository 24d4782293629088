//! The degrees for which there are kernels.

use hush_ops::OpsError;

use crate::device::Launch;

/// The words that a thread of a transform holds.
const THREAD_WORDS: usize = 16;

/// The degree N of a ring. Every kernel is compiled for each of these degrees, which are those of the parameter sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Degree {
    /// 2^6.
    N64,
    /// 2^8.
    N256,
    /// 2^11.
    N2048,
    /// 2^12.
    N4096,
}

impl Degree {
    /// Returns the degree `n`.
    ///
    /// # Errors
    /// [`OpsError::Backend`] if there are no kernels for it.
    pub fn new(n: usize) -> Result<Self, OpsError> {
        let known = [Self::N64, Self::N256, Self::N2048, Self::N4096].into_iter().find(|d| d.words() == n);
        known.ok_or_else(|| OpsError::Backend {
            reason: format!("there are no kernels for rings of degree {n}"),
        })
    }

    /// Returns N.
    pub fn words(self) -> usize {
        1 << self.log2()
    }

    /// Returns log2 N.
    pub fn log2(self) -> u32 {
        match self {
            Self::N64 => 6,
            Self::N256 => 8,
            Self::N2048 => 11,
            Self::N4096 => 12,
        }
    }

    /// Returns the number of threads of a transform.
    pub fn threads(self) -> u32 {
        (self.words() / THREAD_WORDS) as u32
    }

    /// Returns the kernel for this degree from four, which are in order from the smallest degree to the
    /// largest.
    pub fn pick(self, kernels: [&'static str; 4]) -> &'static str {
        kernels[self as usize]
    }

    /// Returns a launch of `grid` blocks, each of which transforms polynomials and has `shared_polys` polynomials of one limb in
    /// shared memory.
    pub fn launch(self, grid: [u32; 3], shared_polys: usize) -> Launch {
        Launch::grid(grid, self.threads()).shared(shared_polys * self.words() * size_of::<u32>())
    }
}
