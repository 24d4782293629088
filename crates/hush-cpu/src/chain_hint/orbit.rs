//! The order of the slots in which automorphisms are rotations, as vectors of indices.

use hush_math::orbits::Orbits;

use crate::{
    Level,
    lanes::{Lanes, MAX_WIDTH},
    ring::vector_loop::{self, VectorLoop},
};

/// The tables of [`Orbits`], followed by zeros, as vectors of indices may be longer than vectors of words.
pub(super) struct OrbitTables {
    degree: usize,
    /// The slot of each place.
    slots: Vec<i32>,
    /// The place of each slot, in the first round.
    places: Vec<i32>,
}

impl OrbitTables {
    pub(super) fn new(orbits: &Orbits) -> Self {
        let table =
            |words: &[u32]| words.iter().map(|&word| word as i32).chain([0; MAX_WIDTH]).collect::<Vec<_>>();
        Self { degree: orbits.places().len(), slots: table(orbits.slots()), places: table(orbits.places()) }
    }

    /// Returns the place of a slot as [`Orbits::place`] does.
    pub(super) fn place(&self, slot: usize) -> (usize, usize) {
        let place = self.places[slot] as usize;
        (place / self.degree, place % self.degree)
    }

    /// Sets `to[k]` to the word of `row`, N words in slot order, at the slot of `(-1)^half g^(a + k)`.
    ///
    /// # Panics
    /// If `to` has not N/2 words, or half or a is out of range.
    pub(super) fn rotate(&self, level: Level, row: &[u32], (half, a): (usize, usize), to: &mut [u32]) {
        let round = self.degree / 2;
        assert!(row.len() == self.degree && to.len() == round && half < 2 && a < round);
        let index = &self.slots[half * self.degree + a..];
        // All slots are in the row.
        vector_loop::run(level, Gather { from: row, index, to });
    }

    /// Sets `row[slot]` to the word of `orbits` at the place of the slot. `orbits` is two halves N words apart, of N/2 words each.
    ///
    /// # Panics
    /// If `row` has not N words, or `orbits` ends before its second half does.
    pub(super) fn to_slots(&self, level: Level, orbits: &[u32], row: &mut [u32]) {
        assert!(orbits.len() >= self.degree + self.degree / 2 && row.len() == self.degree);
        vector_loop::run(level, Gather { from: orbits, index: &self.places, to: row });
    }

    /// Returns the places of the slots from `slot` on.
    #[inline(always)]
    pub(super) fn places(&self, slot: usize) -> &[i32; MAX_WIDTH] {
        vector_at(&self.places, slot)
    }
}

/// Returns the words of a table from `at` on.
#[inline(always)]
fn vector_at(table: &[i32], at: usize) -> &[i32; MAX_WIDTH] {
    table[at..].first_chunk().expect("tables have words behind them")
}

/// The loop `to[i] = from[index[i]]`, for indices of words of `from`.
struct Gather<'a> {
    from: &'a [u32],
    index: &'a [i32],
    to: &'a mut [u32],
}

impl VectorLoop for Gather<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        for (i, to) in self.to.chunks_exact_mut(L::WIDTH).enumerate() {
            let index = vector_at(self.index, i * L::WIDTH);
            // SAFETY: the caller has the instruction set; the maker of this promised valid indices; chunks are a vector.
            unsafe { L::store(to.as_mut_ptr(), L::gather(self.from.as_ptr(), index)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_there_and_back() {
        let degree = 64;
        let orbits = OrbitTables::new(&Orbits::new(degree, 5));
        let row: Vec<u32> = (0..degree as u32).map(|i| i.wrapping_mul(2_654_435_769)).collect();
        for level in Level::usable() {
            let mut halves = vec![0; 2 * degree];
            let mut back = vec![0; degree];
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
