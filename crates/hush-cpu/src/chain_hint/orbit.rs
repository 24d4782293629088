//! The order of the slots in which automorphisms are rotations.
//!
//! Every odd number modulo 2N is `(-1)^h g^a`, with g = [`ROTATION`], h < 2 and a < N/2. Where slots are ordered by (h, a) of
//! their exponents, `X -> X^(g^k)` rotates both halves by k, and `X -> X^-1` swaps them.

use hush_he::algorithms::ROTATION;

use crate::{
    Level,
    lanes::MAX_WIDTH,
    ring::{
        WideLanes,
        vector_loop::{self, VectorLoop},
    },
};

/// Both ways between the slots (slot `i` holds the value at psi^(2 reverse(i) + 1)) and their places in the orbits of g. The
/// place of `(-1)^h g^a` is `h N + a`: a half has room for two rounds, so that a rotation of it is a part.
///
/// Tables have words of 0 behind them, as vectors of indices may be longer than those of words.
pub(super) struct Orbits {
    degree: usize,
    /// The slot of each place.
    slots: Vec<i32>,
    /// The place of each slot, in the first round.
    places: Vec<i32>,
}

impl Orbits {
    /// # Panics
    /// If N is not a power of two of at least 4.
    pub(super) fn new(degree: usize) -> Self {
        assert!(degree.is_power_of_two() && degree >= 4, "degree {degree}");
        let reverse = |i: usize| i.reverse_bits() >> (usize::BITS - degree.trailing_zeros());
        let mut slots = vec![0; 2 * degree + MAX_WIDTH];
        let mut places = vec![0; degree + MAX_WIDTH];
        let mut power = 1;
        for a in 0..degree {
            for (half, exponent) in [power, 2 * degree - power].into_iter().enumerate() {
                let (slot, place) = (reverse(exponent / 2), half * degree + a);
                slots[place] = slot as i32;
                if a < degree / 2 {
                    places[slot] = place as i32;
                }
            }
            power = power * ROTATION % (2 * degree);
        }
        Self { degree, slots, places }
    }

    /// (h, a) of the exponent of `slot`.
    pub(super) fn place(&self, slot: usize) -> (usize, usize) {
        let place = self.places[slot] as usize;
        (place / self.degree, place % self.degree)
    }

    /// The slot of `(-1)^half g^a`, for a below N.
    pub(super) fn slot(&self, half: usize, a: usize) -> usize {
        self.slots[half * self.degree + a] as usize
    }

    /// `to[k]` becomes the word of `row`, N words in slot order, at the slot of `(-1)^half g^(a + k)`.
    ///
    /// # Panics
    /// If `to` has not N/2 words, or half or a is none of a place.
    pub(super) fn rotate(&self, level: Level, row: &[u32], (half, a): (usize, usize), to: &mut [u32]) {
        let round = self.degree / 2;
        assert!(row.len() == self.degree && to.len() == round && half < 2 && a < round);
        let index = &self.slots[half * self.degree + a..];
        // All slots are in the row.
        vector_loop::run(level, Gather { from: row, index, to });
    }

    /// `row[slot]` becomes the word of `orbits` at the place of the slot: of two halves N words apart, the first N/2 each.
    ///
    /// # Panics
    /// If `row` has not N words, or `orbits` ends before its second half does.
    pub(super) fn to_slots(&self, level: Level, orbits: &[u32], row: &mut [u32]) {
        assert!(orbits.len() >= self.degree + self.degree / 2 && row.len() == self.degree);
        vector_loop::run(level, Gather { from: orbits, index: &self.places, to: row });
    }

    /// The places of the slots from `slot` on.
    #[inline(always)]
    pub(super) fn places(&self, slot: usize) -> &[i32; MAX_WIDTH] {
        vector_at(&self.places, slot)
    }
}

/// The words of a table from `at` on.
#[inline(always)]
fn vector_at(table: &[i32], at: usize) -> &[i32; MAX_WIDTH] {
    table[at..].first_chunk().expect("tables have words behind them")
}

/// `to[i] = from[index[i]]`, for indices of words of `from`.
struct Gather<'a> {
    from: &'a [u32],
    index: &'a [i32],
    to: &'a mut [u32],
}

impl VectorLoop for Gather<'_> {
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        for (i, to) in self.to.chunks_exact_mut(L::WIDTH).enumerate() {
            let index = vector_at(self.index, i * L::WIDTH);
            // SAFETY: the caller has the instruction set; who made this says so of the indices, and chunks are a vector.
            unsafe { L::store(to.as_mut_ptr(), L::gather(self.from.as_ptr(), index)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use hush_math::ring::slot_permutation;

    use super::*;

    #[test]
    fn automorphisms_are_rotations() {
        for degree in [4, 16, 64, 2048] {
            let orbits = Orbits::new(degree);
            let steps = if degree < 100 { 0..degree / 2 } else { 77..79 };
            for (k, negative) in steps.flat_map(|k| [(k, 0), (k, 1)]) {
                let power = (0..k).fold(1, |power, _| power * ROTATION % (2 * degree));
                let exponent = if negative == 1 { 2 * degree - power } else { power };
                for (slot, &from) in slot_permutation(degree, exponent).iter().enumerate() {
                    let (half, a) = orbits.place(slot);
                    assert_eq!(orbits.slot(half ^ negative, a + k), from as usize);
                }
            }
        }
    }

    #[test]
    fn rows_go_there_and_back() {
        let degree = 64;
        let orbits = Orbits::new(degree);
        let row: Vec<u32> = (0..degree as u32).map(|i| i.wrapping_mul(2_654_435_769)).collect();
        for level in Level::ALL.into_iter().filter(|level| level.require().is_ok()) {
            let (mut halves, mut back) = (vec![0; 2 * degree], vec![0; degree]);
            for half in 0..2 {
                orbits.rotate(level, &row, (half, 0), &mut halves[half * degree..][..degree / 2]);
            }
            orbits.to_slots(level, &halves, &mut back);
            assert!(back == row, "{level}");
            orbits.rotate(level, &row, (1, 5), &mut back[..degree / 2]);
            for k in 0..degree / 2 {
                assert_eq!(back[k], halves[degree + (k + 5) % (degree / 2)], "{level}");
            }
        }
    }
}
