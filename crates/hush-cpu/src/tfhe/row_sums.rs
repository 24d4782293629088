//! Sums of products of residues over some rows, 64 bits each, reduced before they might overflow.

use crate::{
    Level,
    lanes::Lanes,
    ring::{Montgomery, Residues, VectorLoop, run},
};

/// The number of rows whose products are added up in registers.
pub(super) const ROWS: usize = 4;

/// Returns the number of rows whose products modulo a prime of `bits` bits fit a sum of 64 bits: a multiple of [`ROWS`] up to 31
/// bits.
pub(super) fn most_rows(bits: u32) -> usize {
    1 << (u64::BITS - 2 * bits).min(usize::BITS - 1)
}

/// Adds up the products of at most [`ROWS`] rows, one after another in `values`: `sums[i] += values[0][i] selectors[0][i] + ..`,
/// for both halves of the selectors. `sums` has two words for each, in an internal order.
pub(super) fn multiply_rows(level: Level, values: &[u32], selectors: &[[&[u32]; 2]], sums: [&mut [u32]; 2]) {
    run(level, MultiplyRows { values, selectors, sums });
}

/// Computes `sums[i] += rows[0][i] digits[0] + ..` for at most [`ROWS`] rows. `sums` has the order of [`multiply_rows`].
pub(super) fn multiply_rows_by_words(level: Level, rows: &[&[u32]], digits: &[u32], sums: &mut [u32]) {
    run(level, MultiplyByWords { rows, digits, sums });
}

/// Computes `out += sums` modulo p, and clears `sums`.
pub(super) fn reduce(level: Level, montgomery: Montgomery, sums: &mut [u32], out: &mut [u32]) {
    run(level, Reduce { montgomery, sums, out });
    sums.fill(0);
}

struct MultiplyRows<'a> {
    values: &'a [u32],
    selectors: &'a [[&'a [u32]; 2]],
    sums: [&'a mut [u32]; 2],
}

impl MultiplyRows<'_> {
    #[inline(always)]
    unsafe fn rows<L: Lanes, const COUNT: usize>(self) {
        let Self { values, selectors, sums: [a, b] } = self;
        let degree = a.len() / 2;
        let selectors: [[&[u32]; 2]; COUNT] = selectors.try_into().expect("as many rows");
        assert!(
            values.len() == COUNT * degree
                && b.len() == a.len()
                && selectors.iter().all(|row: &[&[u32]; 2]| row.iter().all(|half| half.len() == degree))
        );
        for at in (0..degree).step_by(L::WIDTH) {
            // SAFETY: the caller has the instruction set; all slices have a vector there.
            unsafe {
                let to_a = a.as_mut_ptr().add(2 * at);
                let to_b = b.as_mut_ptr().add(2 * at);
                let mut sum_a = L::load_wide(to_a);
                let mut sum_b = L::load_wide(to_b);
                for (row, [selector_a, selector_b]) in selectors.iter().enumerate() {
                    let value = L::load(values.as_ptr().add(row * degree + at));
                    sum_a = L::mul_add_words(sum_a, value, L::load(selector_a.as_ptr().add(at)));
                    sum_b = L::mul_add_words(sum_b, value, L::load(selector_b.as_ptr().add(at)));
                }
                L::store_wide(to_a, sum_a);
                L::store_wide(to_b, sum_b);
            }
        }
    }
}

impl VectorLoop for MultiplyRows<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: the caller has the instruction set.
        unsafe {
            match self.selectors.len() {
                1 => self.rows::<L, 1>(),
                2 => self.rows::<L, 2>(),
                3 => self.rows::<L, 3>(),
                _ => self.rows::<L, ROWS>(),
            }
        }
    }
}

struct MultiplyByWords<'a> {
    rows: &'a [&'a [u32]],
    digits: &'a [u32],
    sums: &'a mut [u32],
}

impl VectorLoop for MultiplyByWords<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Self { rows, digits, sums } = self;
        let degree = sums.len() / 2;
        assert!(rows.len() == digits.len() && rows.iter().all(|row| row.len() == degree));
        for at in (0..degree).step_by(L::WIDTH) {
            // SAFETY: the caller has the instruction set; all slices have a vector there.
            unsafe {
                let to = sums.as_mut_ptr().add(2 * at);
                let mut sum = L::load_wide(to);
                for (row, &digit) in rows.iter().zip(digits) {
                    sum = L::mul_add(sum, L::load(row.as_ptr().add(at)), digit);
                }
                L::store_wide(to, sum);
            }
        }
    }
}

struct Reduce<'a> {
    montgomery: Montgomery,
    sums: &'a [u32],
    out: &'a mut [u32],
}

impl VectorLoop for Reduce<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Self { montgomery, sums, out } = self;
        for (sums, out) in sums.chunks_exact(2 * L::WIDTH).zip(out.chunks_exact_mut(L::WIDTH)) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(montgomery);
                let sum = L::load_wide(sums.as_ptr());
                let high = residues.mul(L::high(sum), L::splat(montgomery.square()));
                let low = residues.mul(L::low(sum), L::splat(montgomery.form(1)));
                let sum = residues.add(residues.add(high, low), L::load(out.as_ptr()));
                L::store(out.as_mut_ptr(), sum);
            }
        }
    }
}
