//! The coefficient phase: factors a banded 0/1 system into `L` and `U` over Z_2^8 or Z_2^32.
//!
//! ```text
//! for col in 0..slots:
//!     start the rows whose first column is col
//!     pivot = the first active row, in order of arrival, whose entry in col is odd (none: the column is free)
//!     pivot *= pivot[col]^-1;  for every other active row: row -= row[col] pivot
//! ```
//!
//! A row that waits starts and ends behind the pivot, so clearing a column hardly lengthens it. No row reaches further than
//! `width` columns beyond the current one, as everything added to it comes from rows that have started. A window of `width` + 64
//! symbols a row, moved on every 64 columns, therefore holds every row however long it waits.
//!
//! `L` and `U` share the window, as in any in-place LU: a cleared entry is replaced by its multiplier.

use hush_ops::{OpsError, contract::BandSystem, symbol::Symbol};

use super::panels::{BLOCK, Panels, PanelsBuilder};
use crate::{
    Level,
    lanes::{
        Lanes,
        vector_loop::{self, VectorLoop},
    },
};

/// Columns by which the windows move.
const STEP: usize = 64;

/// The entry of [`Factors::rows`] for a free column.
pub(super) const FREE: u32 = u32::MAX;

/// The factors of a system: with `y` and `x` indexed by column, 0 where the column is free,
/// `lower y = scales * values[rows]` and `upper x = y`.
pub(super) struct Factors<S> {
    /// The row whose pivot is in this column, or [`FREE`].
    pub(super) rows: Vec<u32>,
    /// The inverse of the pivot, by which the row was scaled.
    pub(super) scales: Vec<S>,
    /// The unit lower triangular factor.
    pub(super) lower: Panels<S>,
    /// The unit upper triangular factor.
    pub(super) upper: Panels<S>,
}

/// Factors `system`, whose shapes have been checked. Running it on a machine without `level` is undefined behaviour: see
/// [`crate::Cpu`].
pub(super) fn factor<S: Symbol>(level: Level, system: &BandSystem) -> Result<Factors<S>, OpsError> {
    let mut factors = None;
    vector_loop::run(level, Factor { system, factors: &mut factors });
    factors.expect("the loop has run")
}

/// The factoring of a system, in plain Rust that the compiler vectorises.
struct Factor<'a, S> {
    system: &'a BandSystem,
    factors: &'a mut Option<Result<Factors<S>, OpsError>>,
}

impl<S: Symbol> VectorLoop for Factor<'_, S> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        *self.factors = Some(factor_width(self.system));
    }
}

#[inline(always)]
fn factor_width<S: Symbol>(system: &BandSystem) -> Result<Factors<S>, OpsError> {
    match system.width {
        ..=64 => Elimination::<S, 2>::new(system).run(),
        65..=128 => Elimination::<S, 3>::new(system).run(),
        129..=192 => Elimination::<S, 4>::new(system).run(),
        _ => Elimination::<S, 5>::new(system).run(),
    }
}

/// The entries of a row from column `base`: multipliers up to the current column, coefficients after it.
#[derive(Clone)]
#[repr(C, align(64))]
struct Window<S, const CHUNKS: usize>([[S; STEP]; CHUNKS]);

impl<S: Symbol, const CHUNKS: usize> Window<S, CHUNKS> {
    fn zero() -> Self {
        Self([[S::default(); STEP]; CHUNKS])
    }

    #[inline(always)]
    fn subtract_multiple(&mut self, factor: S, source: &Self, chunks: usize) {
        for (target, source) in self.0.iter_mut().zip(&source.0).take(chunks) {
            for (target, source) in target.iter_mut().zip(source) {
                *target = target.wrapping_sub(source.wrapping_mul(factor));
            }
        }
    }
}

/// An active row.
struct Active {
    row: u32,
    /// The index of its window and its multipliers.
    place: u32,
}

/// Returns the eight bits, lowest first, as bytes 0 or 1.
fn spread(bits: u8) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let own_bit = (u64::from(bits) * ONES) & 0x8040_2010_0804_0201;
    ((own_bit + 0x7f * ONES) >> 7 & ONES).to_le_bytes()
}

struct Elimination<'a, S, const CHUNKS: usize> {
    system: &'a BandSystem,
    /// The number of rows that have started so far.
    started: usize,
    /// The active rows in order of arrival.
    active: Vec<Active>,
    windows: Vec<Window<S, CHUNKS>>,
    /// The multipliers of the columns before the windows, by place.
    passed: Vec<Vec<S>>,
    vacant: Vec<u32>,
    rows: Vec<u32>,
    scales: Vec<S>,
    lower: PanelsBuilder<S>,
    upper: PanelsBuilder<S>,
}

impl<'a, S: Symbol, const CHUNKS: usize> Elimination<'a, S, CHUNKS> {
    fn new(system: &'a BandSystem) -> Self {
        Self {
            system,
            started: 0,
            active: Vec::new(),
            windows: Vec::new(),
            passed: Vec::new(),
            vacant: Vec::new(),
            rows: Vec::with_capacity(system.slots),
            scales: Vec::with_capacity(system.slots),
            lower: PanelsBuilder::new(system.slots),
            upper: PanelsBuilder::new(system.slots),
        }
    }

    #[inline(always)]
    fn run(mut self) -> Result<Factors<S>, OpsError> {
        for col in 0..self.system.slots {
            let at = col % STEP;
            if at == 0 && col > 0 {
                self.move_windows()?;
            }
            self.start_rows(col);
            match self.active.iter().position(|row| self.windows[row.place as usize].0[0][at].is_odd()) {
                Some(index) => self.eliminate(at, index),
                None => self.leave_free(at),
            }
        }
        if !self.active.is_empty() {
            return Err(OpsError::Singular);
        }
        Ok(Factors {
            rows: self.rows,
            scales: self.scales,
            lower: self.lower.finish(),
            upper: self.upper.finish(),
        })
    }

    /// Moves all windows on by [`STEP`] columns. Fails if a row is even from there on, as it can never be a pivot.
    fn move_windows(&mut self) -> Result<(), OpsError> {
        for row in &self.active {
            let window = &mut self.windows[row.place as usize];
            self.passed[row.place as usize].extend_from_slice(&window.0[0]);
            window.0.copy_within(1.., 0);
            window.0[CHUNKS - 1] = [S::default(); STEP];
            if !window.0.as_flattened().iter().any(|entry| entry.is_odd()) {
                return Err(OpsError::Singular);
            }
        }
        Ok(())
    }

    /// Adds the rows that start at `col`.
    fn start_rows(&mut self, col: usize) {
        while self.system.starts.get(self.started).is_some_and(|&start| start as usize == col) {
            let place = self.vacant.pop().unwrap_or_else(|| {
                self.windows.push(Window::zero());
                self.passed.push(Vec::new());
                self.windows.len() as u32 - 1
            });
            let window = &mut self.windows[place as usize];
            *window = Window::zero();
            self.passed[place as usize].clear();
            let coeff = &self.system.coeffs[self.started];
            let entries =
                &mut window.0.as_flattened_mut()[col % STEP..][..self.system.width.next_multiple_of(8)];
            for (octet, bits) in
                entries.as_chunks_mut().0.iter_mut().zip(coeff.iter().flat_map(|word| word.to_le_bytes()))
            {
                *octet = spread(bits).map(S::from);
            }
            self.active.push(Active { row: self.started as u32, place });
            self.started += 1;
        }
    }

    /// Leaves the column without a pivot. Its slot will be 0, so the entries of the active rows there do not matter.
    fn leave_free(&mut self, at: usize) {
        for row in &self.active {
            self.windows[row.place as usize].0[0][at] = S::default();
        }
        self.rows.push(FREE);
        self.scales.push(S::default());
        self.lower.push_row(std::iter::empty());
        self.upper.push_row(std::iter::empty());
    }

    /// Makes active row number `index` the pivot of the column at window position `at`.
    #[inline(always)]
    fn eliminate(&mut self, at: usize, index: usize) {
        let Active { row, place } = self.active.remove(index);
        let mut pivot = self.windows[place as usize].clone();
        let scale = pivot.0[0][at].inverse();
        pivot.0.as_flattened_mut().iter_mut().for_each(|entry| *entry = entry.wrapping_mul(scale));
        self.push_lower(place as usize, &pivot.0[0][..at], scale);
        // Cleared multipliers and a cleared own entry of the pivot leave those of the other rows unchanged.
        pivot.0[0][..=at].fill(S::default());
        let first = at / BLOCK * BLOCK;
        self.upper.push_row(pivot.0.as_flattened()[first..].as_chunks().0.iter().copied());
        // No entries lie beyond the last slot.
        let chunks = (self.system.slots - self.rows.len() + at).div_ceil(STEP);
        for target in &self.active {
            let window = &mut self.windows[target.place as usize];
            window.subtract_multiple(window.0[0][at], &pivot, chunks);
        }
        self.rows.push(row);
        self.scales.push(scale);
        self.vacant.push(place);
    }

    /// Adds the row of `lower`: the multipliers of the passed columns and of the `recent` ones (already scaled), from the
    /// column's group backwards.
    fn push_lower(&mut self, place: usize, recent: &[S], scale: S) {
        let mut near = [S::default(); STEP + BLOCK];
        near[..recent.len()].copy_from_slice(recent);
        let groups = recent.len() / BLOCK + 1;
        let near = near.as_chunks::<BLOCK>().0[..groups].iter().rev().copied();
        let far = self.passed[place].as_chunks::<BLOCK>().0.iter().rev();
        let far = far.map(|group| group.map(|entry| entry.wrapping_mul(scale)));
        self.lower.push_row(near.chain(far));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_spread_to_bytes() {
        for bits in 0..=255u8 {
            assert_eq!(spread(bits), std::array::from_fn(|bit| bits >> bit & 1));
        }
    }
}
