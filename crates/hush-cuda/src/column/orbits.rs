//! The order of the slots in which automorphisms are rotations.
//!
//! Every odd number modulo 2N is `(-1)^h g^a`, with g = [`ROTATION`], h < 2 and a < N/2. Where slots are ordered by (h, a) of
//! their exponents, `X -> X^(g^k)` rotates both halves by k, and `X -> X^-1` swaps them.

use hush_he::algorithms::ROTATION;

/// Both ways between the slots (slot `i` holds the value at psi^(2 reverse(i) + 1)) and their places: that of `(-1)^h g^a` is
/// `h N + a`. A half has room for two rounds, so that a rotation of it is a part.
pub(super) struct Orbits {
    degree: usize,
    /// The slot of each place.
    pub(super) slots: Vec<u32>,
    /// The place of each slot, in the first round.
    pub(super) places: Vec<u32>,
}

impl Orbits {
    /// For N = `degree`, a power of two of at least 4.
    pub(super) fn new(degree: usize) -> Self {
        let reverse = |i: usize| i.reverse_bits() >> (usize::BITS - degree.trailing_zeros());
        let (mut slots, mut places) = (vec![0; 2 * degree], vec![0; degree]);
        let mut power = 1;
        for a in 0..degree {
            for (half, exponent) in [power, 2 * degree - power].into_iter().enumerate() {
                let (slot, place) = (reverse(exponent / 2), half * degree + a);
                slots[place] = slot as u32;
                if a < degree / 2 {
                    places[slot] = place as u32;
                }
            }
            power = power * ROTATION % (2 * degree);
        }
        Self { degree, slots, places }
    }

    /// The slot of `(-1)^half g^a`, for a below N.
    pub(super) fn slot(&self, half: usize, a: usize) -> usize {
        self.slots[half * self.degree + a] as usize
    }
}

/// Where `chain_switch` has the word of place `a`, a < N/2, of a half: places that are two apart are neighbours.
pub(super) fn interleaved(degree: usize, a: usize) -> usize {
    a % 2 * (degree / 4) + a / 2
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
                    let place = orbits.places[slot] as usize;
                    let (half, a) = (place / degree, place % degree);
                    assert_eq!(orbits.slot(half ^ negative, a + k), from as usize);
                }
            }
        }
    }

    /// What keeps `chain_switch` from bank conflicts: the slots of a warp have their words in different banks.
    #[test]
    fn slots_of_a_warp_have_different_banks() {
        let orbits = Orbits::new(2048);
        for first in (0..2048).step_by(32 * 16).flat_map(|warp| (0..16).map(move |i| warp + i)) {
            let places = (0..32).map(|lane| orbits.places[first + 16 * lane] as usize);
            for k in [0, 1, 77, 1023] {
                let words = places.clone().map(|place| interleaved(2048, (place + k) % 1024));
                let banks: u64 = words.map(|word| 1 << (word % 32)).fold(0, |banks, bank| banks | bank);
                assert_eq!(banks.count_ones(), 32, "slot {first}, k = {k}");
            }
        }
    }
}
