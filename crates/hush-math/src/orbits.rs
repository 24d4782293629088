//! The order of the slots in which automorphisms are rotations.

/// The permutation from slots to places, in which automorphisms rotate, and its inverse.
///
/// Every odd number modulo 2N is `(-1)^h g^a` for a generator g such as 5, h < 2 and a < N/2. Slot `i` holds the value at psi^e,
/// e = 2 reverse(i) + 1; for `e = (-1)^h g^a` its place is `h N + a`. Then `X -> X^(g^k)` rotates both halves by k, and `X -> X^-1`
/// swaps them. Each half lists its N/2 slots twice, so that a rotation of it is a contiguous part.
#[derive(Clone, Debug)]
pub struct Orbits {
    slots: Vec<u32>,
    places: Vec<u32>,
}

impl Orbits {
    /// Creates the orbits of degree N under a generator g.
    ///
    /// # Panics
    /// If N is not a power of two of at least 4, or the powers of g and their negatives are not all odd numbers modulo 2N.
    pub fn new(degree: usize, generator: usize) -> Self {
        assert!(degree.is_power_of_two() && degree >= 4, "degree {degree}");
        let mut slots = vec![0; 2 * degree];
        let mut places = vec![0; degree];
        let mut power = 1;
        for a in 0..degree {
            assert!(power % 2 == 1 && (power == 1) == (a % (degree / 2) == 0), "{generator} is no generator");
            for (half, exponent) in [power, 2 * degree - power].into_iter().enumerate() {
                let index: usize = exponent / 2;
                let slot = index.reverse_bits() >> (usize::BITS - degree.trailing_zeros());
                let place = half * degree + a;
                slots[place] = slot as u32;
                if a < degree / 2 {
                    places[slot] = place as u32;
                }
            }
            power = power * generator % (2 * degree);
        }
        Self { slots, places }
    }

    /// Returns the slot at each of the 2N places.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Returns the place of each of the N slots. Of its two places it is the first: in `0..N/2` or `N..N + N/2`.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// Returns the slot of the exponent `(-1)^half g^a`.
    ///
    /// # Panics
    /// If `half` is above 1 or `a` is not below N.
    pub fn slot(&self, half: usize, a: usize) -> usize {
        assert!(a < self.places.len(), "place {a} of {}", self.places.len());
        self.slots[half * self.places.len() + a] as usize
    }

    /// Returns (h, a) of the exponent of `slot`, with a below N/2.
    ///
    /// # Panics
    /// If `slot` is not below N.
    pub fn place(&self, slot: usize) -> (usize, usize) {
        let place = self.places[slot] as usize;
        let degree = self.places.len();
        (place / degree, place % degree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::slot_permutation;

    #[test]
    fn automorphisms_are_rotations() {
        for (degree, generator) in [(4, 5), (16, 5), (64, 3), (64, 5), (2048, 5)] {
            let orbits = Orbits::new(degree, generator);
            let steps = if degree < 100 { 0..degree / 2 } else { 77..79 };
            for (k, negative) in steps.flat_map(|k| [(k, 0), (k, 1)]) {
                let power = (0..k).fold(1, |power, _| power * generator % (2 * degree));
                let exponent = if negative == 1 { 2 * degree - power } else { power };
                for (slot, &from) in slot_permutation(degree, exponent).iter().enumerate() {
                    let (half, a) = orbits.place(slot);
                    assert_eq!(orbits.slot(half ^ negative, a + k), from as usize);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "9 is no generator")]
    fn powers_that_are_not_all_numbers_are_refused() {
        Orbits::new(16, 9);
    }
}
