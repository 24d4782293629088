//! The hint of a unit of rows by transforms.
//!
//! ```text
//! for both primes p:  for every block j of columns, element k:  sums[k] += NTT(db_j) NTT(alpha_jk(1/X) 2^32 / d)
//!                     values[k] = unscaled inverse NTT(sums[k] / 2^32) mod p
//! hint += Garner(values mod p_0, values mod p_1) mod 2^32
//! ```

use std::ops::Range;

use super::{
    UNIT_ROWS, UnitRows,
    plan::{MAX_LAZY_BLOCKS, RingPlan, RingResidues},
    transform::{forward, inverse, mul_shoup, reduce_once},
};
use crate::{
    lanes::{LOAD_COLS, Lanes, VectorLoop},
    workspace::Workspace,
};
use hush_ops::tiling::TILE_COLS;

/// The number of elements of A that a transform is multiplied by while it is in a register.
const ELEMENTS: usize = 5;

/// The hint of a unit of rows, which is added to `out`.
pub(super) struct Unit<'a> {
    pub(super) plan: &'a RingPlan,
    pub(super) rows: &'a UnitRows<'a>,
    pub(super) workspace: &'a mut Workspace,
    /// Row-major; shorter for the last rows of a database.
    pub(super) out: &'a mut [u32],
}

impl VectorLoop for Unit<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: the caller has the instruction set.
        unsafe { unit::<L>(self.plan, self.rows, self.workspace, self.out) };
    }
}

/// Adds the hint of a unit of rows to `out`, row-major. `out` is shorter for the last rows of a database.
///
/// # Safety
/// The CPU must have the instruction set of `L`.
#[inline(always)]
unsafe fn unit<L: Lanes>(plan: &RingPlan, rows: &UnitRows<'_>, workspace: &mut Workspace, out: &mut [u32]) {
    let vector = plan.n * L::WIDTH;
    let buffer = workspace.words(plan.set_cols() * L::WIDTH + 4 * vector);
    let (transforms, rest) = buffer.split_at_mut(plan.set_cols() * L::WIDTH);
    let (sums, residues) = rest.split_at_mut(2 * vector);
    let (first, second) = residues.split_at_mut(vector);
    for row in (0..UNIT_ROWS).step_by(L::WIDTH) {
        let Some(out) = out.get_mut(row * plan.n..).filter(|out| !out.is_empty()) else { break };
        for segment in plan.segments() {
            // SAFETY: the caller has the instruction set; the buffers have the lengths that each needs.
            unsafe {
                for (residues, values) in plan.residues.iter().zip([&mut *first, &mut *second]) {
                    values.fill(0);
                    sums.fill(0);
                    let mut lazy_blocks = 0;
                    for set in segment.clone() {
                        if lazy_blocks + set.len() > MAX_LAZY_BLOCKS {
                            reduce_sums::<L>(residues, sums, values);
                            lazy_blocks = 0;
                        }
                        lazy_blocks += set.len();
                        load_set::<L>(plan, residues, rows, row, &set, transforms);
                        for block in transforms[..set.len() * plan.degree * L::WIDTH]
                            .chunks_exact_mut(plan.degree * L::WIDTH)
                        {
                            forward::<L>(&residues.ntt, block.as_mut_ptr());
                        }
                        multiply_set::<L>(plan, residues, &set, transforms, sums);
                    }
                    reduce_sums::<L>(residues, sums, values);
                    for element in values.chunks_exact_mut(plan.degree * L::WIDTH) {
                        inverse::<L>(&residues.ntt, element.as_mut_ptr());
                    }
                }
                join::<L>(plan, first, second, out);
            }
        }
    }
}

/// Loads the columns of a set as polynomials, column after column, with p added: values in `p - 128 .. p + 128`.
///
/// # Safety
/// The CPU must have the instruction set of `L`; `transforms` holds `set_cols` vectors.
#[inline(always)]
unsafe fn load_set<L: Lanes>(
    plan: &RingPlan,
    residues: &RingResidues,
    rows: &UnitRows<'_>,
    row: usize,
    set: &Range<usize>,
    transforms: &mut [u32],
) {
    let tiling = rows.db.tiling();
    let first_col = set.start * plan.degree;
    debug_assert!(transforms.len() >= set.len() * plan.degree * L::WIDTH);
    // SAFETY: the caller has the instruction set. Strips of 16 columns do not cross tiles, nor do the unit's rows
    // cross panels, so a strip that begins within the padded database is within it.
    unsafe {
        let p = L::splat(residues.ntt.modulus().value());
        for (index, strip) in transforms[..(set.len() * plan.degree).next_multiple_of(LOAD_COLS) * L::WIDTH]
            .chunks_exact_mut(LOAD_COLS * L::WIDTH)
            .enumerate()
        {
            let col = first_col + index * LOAD_COLS;
            if col >= tiling.padded_cols() {
                strip.fill(0);
                continue;
            }
            let from = &rows.db.bytes()[tiling.offset(rows.first + row, col)..];
            let columns = L::load_columns(from.as_ptr().cast(), TILE_COLS);
            for (i, column) in columns.into_iter().enumerate() {
                L::store(strip.as_mut_ptr().add(i * L::WIDTH), L::add(column, p));
            }
        }
    }
}

/// Adds the products of a set's transforms with A to `sums`, `[element][point]`.
///
/// # Safety
/// The CPU must have the instruction set of `L`; `transforms` holds the set's vectors and `sums` n sums.
#[inline(always)]
unsafe fn multiply_set<L: Lanes>(
    plan: &RingPlan,
    residues: &RingResidues,
    set: &Range<usize>,
    transforms: &[u32],
    sums: &mut [u32],
) {
    let rank = plan.n / plan.degree;
    let point_words = set.len() * rank;
    let alpha = plan.set_alpha(residues, set);
    debug_assert!(
        transforms.len() >= set.len() * plan.degree * L::WIDTH && sums.len() == 2 * plan.n * L::WIDTH
    );
    for (point, alpha) in alpha.chunks_exact(point_words).enumerate() {
        let mut element = 0;
        while element < rank {
            // SAFETY: the caller has the instruction set, and promises that the buffers are long enough.
            unsafe {
                if element + ELEMENTS <= rank {
                    multiply_point::<L, ELEMENTS>(plan, point, element, alpha, transforms, sums);
                    element += ELEMENTS;
                } else {
                    multiply_point::<L, 1>(plan, point, element, alpha, transforms, sums);
                    element += 1;
                }
            }
        }
    }
}

/// Multiplies `K` elements from `element` on, at one point.
///
/// # Safety
/// The conditions of [`multiply_set`] must hold; `alpha` holds the words of the point, `rank` a block.
#[inline(always)]
unsafe fn multiply_point<L: Lanes, const K: usize>(
    plan: &RingPlan,
    point: usize,
    element: usize,
    alpha: &[u32],
    transforms: &[u32],
    sums: &mut [u32],
) {
    let rank = plan.n / plan.degree;
    // SAFETY: the caller has the instruction set, and promises that the buffers are long enough.
    unsafe {
        let slot = |k: usize| ((element + k) * plan.degree + point) * 2 * L::WIDTH;
        let mut acc: [L::Wide; K] = std::array::from_fn(|k| L::load_wide(sums.as_ptr().add(slot(k))));
        for (block, alpha) in alpha.chunks_exact(rank).enumerate() {
            let value = L::load(transforms.as_ptr().add((block * plan.degree + point) * L::WIDTH));
            for (k, acc) in acc.iter_mut().enumerate() {
                *acc = L::mul_add(*acc, value, alpha[element + k]);
            }
        }
        for (k, acc) in acc.into_iter().enumerate() {
            L::store_wide(sums.as_mut_ptr().add(slot(k)), acc);
        }
    }
}

/// Adds `sums / 2^32 mod p` to `values`, which stay canonical, and clears the sums.
///
/// # Safety
/// The CPU must have the instruction set of `L`; there are as many values as sums, and every sum is below
/// 32 * 4 p^2 < 2^63.
#[inline(always)]
unsafe fn reduce_sums<L: Lanes>(residues: &RingResidues, sums: &mut [u32], values: &mut [u32]) {
    let p = residues.ntt.modulus().value();
    // SAFETY: the caller has the instruction set; the chunks are one vector, or its sums.
    unsafe {
        let modulus = L::splat(p);
        let inverse = L::splat(residues.montgomery);
        for (sum, value) in sums.chunks_exact_mut(2 * L::WIDTH).zip(values.chunks_exact_mut(L::WIDTH)) {
            let total = L::load_wide(sum.as_ptr());
            let quotient = L::mul_low(L::low(total), inverse);
            // The high word is below 8 p, so this is in 0..9p.
            let mut rest = L::add(L::sub(L::high(total), L::high(L::mul_splat(quotient, modulus))), modulus);
            for factor in [8, 4, 2, 1] {
                rest = reduce_once::<L>(rest, L::splat(factor * p));
            }
            let reduced = reduce_once::<L>(L::add(L::load(value.as_ptr()), rest), modulus);
            L::store(value.as_mut_ptr(), reduced);
            sum.fill(0);
        }
    }
}

/// Adds the numbers with the residues `first` and `second`, modulo 2^32, to the rows of `out`.
///
/// # Safety
/// The CPU must have the instruction set of `L`; both residues are canonical, n vectors each.
#[inline(always)]
unsafe fn join<L: Lanes>(plan: &RingPlan, first: &[u32], second: &[u32], out: &mut [u32]) {
    let [p0, p1] = [0, 1].map(|i| plan.residues[i].ntt.modulus().value());
    let [offset0, offset1] = [0, 1].map(|i| plan.residues[i].offset);
    // SAFETY: the caller has the instruction set; the chunks are one vector.
    unsafe {
        let lines = first.chunks(LOAD_COLS * L::WIDTH).zip(second.chunks(LOAD_COLS * L::WIDTH));
        for (line, (first, second)) in lines.enumerate() {
            // One cache line of each row at a time: rows are powers of two apart, and share the sets of a cache.
            let mut words = [0; LOAD_COLS * UNIT_ROWS];
            let vectors = first.chunks_exact(L::WIDTH).zip(second.chunks_exact(L::WIDTH));
            for ((first, second), words) in vectors.zip(words.chunks_exact_mut(L::WIDTH)) {
                // The offset makes the sum positive, and vanishes modulo 2^32.
                let low = L::add(L::load(first.as_ptr()), L::splat(offset0));
                let low = reduce_once::<L>(low, L::splat(p0));
                let high = L::add(L::load(second.as_ptr()), L::splat(offset1));
                // Above -p0 > -2 p1, as both primes are close to 2^28.
                let difference = L::add(L::sub(high, low), L::splat(2 * p1));
                let w = L::splat(plan.join.0);
                let w_shoup = L::splat(plan.join.1);
                let digit = mul_shoup::<L>(difference, w, w_shoup, L::splat(p1));
                let digit = reduce_once::<L>(digit, L::splat(p1));
                L::store(words.as_mut_ptr(), L::add(low, L::mul_low(digit, L::splat(p0))));
            }
            for (r, row) in out.chunks_exact_mut(plan.n).take(L::WIDTH).enumerate() {
                let row = row[line * LOAD_COLS..].iter_mut().take(LOAD_COLS);
                row.zip(words[r..].iter().step_by(L::WIDTH))
                    .for_each(|(out, &word)| *out = out.wrapping_add(word));
            }
        }
    }
}
