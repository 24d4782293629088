//! The offline steps of the key filters.

use crate::{OpsError, reference::Reference, steps};

/// A banded 0/1 system over Z_2^8 or Z_2^32, the linear algebra of the `band` key filter.
///
/// Row `i` has the coefficients `coeffs[i]` (bit `j` of the 256, in little-endian words) at the slots
/// `starts[i] + j`, `j < width`; bit 0 is set. Rows are sorted by start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandSystem {
    /// The number of unknown slots.
    pub slots: usize,
    /// The band width w, 1 to 256.
    pub width: usize,
    /// The first slot of each row, ascending, at most `slots - width`.
    pub starts: Vec<u32>,
    /// The 0/1 coefficients of each row.
    pub coeffs: Vec<[u64; 4]>,
}

/// The offline steps of the key filters.
pub trait FilterOps: Send + Sync {
    /// Solves for the slots: `sum_j coeff[i][j] * slots[starts[i] + j] = values[i]`, byte by byte modulo 256.
    ///
    /// `values` is `rows x size` bytes in row order; the solution, `slots x size` bytes, is written to `slots`. Free slots are 0,
    /// so the solution is unique and the same on every backend. Source: Dietzfelbinger and Walzer, "Efficient Gauss elimination
    /// for near-quadratic matrices with one short random block per row, with applications"; here over Z_2^8.
    ///
    /// # Errors
    /// [`OpsError::Singular`] if the rows are dependent; [`OpsError::Shape`] if a length is wrong.
    fn band_solve(
        &self,
        system: &BandSystem,
        values: &[u8],
        size: usize,
        slots: &mut [u8],
    ) -> Result<(), OpsError> {
        steps::band_solve::check(system, values, size, slots)?;
        self.run_band_solve(system, values, size, slots)
    }

    /// Runs [`FilterOps::band_solve`].
    fn run_band_solve(
        &self,
        system: &BandSystem,
        values: &[u8],
        size: usize,
        slots: &mut [u8],
    ) -> Result<(), OpsError>;

    /// Solves the system of [`FilterOps::band_solve`] word by word modulo 2^32. `values` is `rows x size` words; the solution,
    /// `slots x size` words, is written to `slots`. It is a solution modulo 2^k for every k <= 32 too. Source: that of
    /// [`FilterOps::band_solve`].
    ///
    /// # Errors
    /// [`OpsError::Singular`] if the rows are dependent, which does not depend on the modulus; [`OpsError::Shape`] if
    /// a length is wrong.
    fn band_solve_words(
        &self,
        system: &BandSystem,
        values: &[u32],
        size: usize,
        slots: &mut [u32],
    ) -> Result<(), OpsError> {
        steps::band_solve::check(system, values, size, slots)?;
        self.run_band_solve_words(system, values, size, slots)
    }

    /// Runs [`FilterOps::band_solve_words`].
    fn run_band_solve_words(
        &self,
        system: &BandSystem,
        values: &[u32],
        size: usize,
        slots: &mut [u32],
    ) -> Result<(), OpsError>;
}

impl FilterOps for Reference {
    fn run_band_solve(
        &self,
        system: &BandSystem,
        values: &[u8],
        size: usize,
        slots: &mut [u8],
    ) -> Result<(), OpsError> {
        steps::band_solve::reference(system, values, size, slots)
    }

    fn run_band_solve_words(
        &self,
        system: &BandSystem,
        values: &[u32],
        size: usize,
        slots: &mut [u32],
    ) -> Result<(), OpsError> {
        steps::band_solve::reference(system, values, size, slots)
    }
}
