//! The order of the words in a half of the places ([`hush_math::orbits::Orbits`]) for `chain_switch`.

/// Returns the position, within its half, of the word of place `a`, a < N/2. Places that differ by two are neighbours.
pub(super) fn interleaved(degree: usize, a: usize) -> usize {
    a % 2 * (degree / 4) + a / 2
}

#[cfg(test)]
mod tests {
    use hush_he::algorithms::ROTATION;
    use hush_math::orbits::Orbits;

    use super::*;

    /// Checks that `chain_switch` has no bank conflicts: the slots of a warp have their words in different banks.
    #[test]
    fn slots_of_a_warp_have_different_banks() {
        let orbits = Orbits::new(2048, ROTATION);
        for first in (0..2048).step_by(32 * 16).flat_map(|warp| (0..16).map(move |i| warp + i)) {
            let places = (0..32).map(|lane| orbits.places()[first + 16 * lane] as usize);
            for k in [0, 1, 77, 1023] {
                let words = places.clone().map(|place| interleaved(2048, (place + k) % 1024));
                let banks: u64 = words.map(|word| 1 << (word % 32)).fold(0, |banks, bank| banks | bank);
                assert_eq!(banks.count_ones(), 32, "slot {first}, k = {k}");
            }
        }
    }
}
