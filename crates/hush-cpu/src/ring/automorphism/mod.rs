//! Automorphisms X -> X^k of polynomials in evaluation form: permutations of the slots.

mod avx512;

use hush_math::ring::slot_permutation;

use crate::{Level, kernels::by_level};

/// The number of slots that move together.
const GROUP: usize = 16;

/// The permutation of the slots that is X -> X^k.
///
/// Slot `i` holds the value at psi^e with e = 2 reverse(i) + 1. The low bits of k e depend on the low bits of e alone.
/// So the slots of an aligned group come from one group, in one of at most 16 orders.
pub(super) struct Automorphism {
    level: Level,
    /// For each group, the group that it comes from and the number of its order.
    groups: Vec<(u32, u32)>,
    /// The orders: slot `j` of a group comes from slot `order[j]`.
    orders: Vec<[u32; GROUP]>,
}

impl Automorphism {
    /// Creates X -> X^`exponent` modulo X^`degree` + 1, for an odd exponent.
    ///
    /// # Panics
    /// If the degree is not a multiple of 16.
    pub(super) fn new(level: Level, degree: usize, exponent: usize) -> Self {
        assert!(degree.is_multiple_of(GROUP));
        let mut orders: Vec<[u32; GROUP]> = Vec::new();
        let permutation = slot_permutation(degree, exponent);
        let (sources, _) = permutation.as_chunks::<GROUP>();
        let groups = sources.iter().map(|slots| {
            let order = slots.map(|slot| slot % GROUP as u32);
            let number = orders.iter().position(|known| *known == order).unwrap_or_else(|| {
                orders.push(order);
                orders.len() - 1
            });
            (slots[0] / GROUP as u32, number as u32)
        });
        Self { level, groups: groups.collect(), orders }
    }

    /// Writes the image of `from`, one limb, to `to`.
    ///
    /// # Panics
    /// If one of them is not as long as the degree.
    pub(super) fn apply(&self, from: &[u32], to: &mut [u32]) {
        let degree = self.groups.len() * GROUP;
        assert!(from.len() == degree && to.len() == degree);
        let (from, _) = from.as_chunks::<GROUP>();
        let (to, _) = to.as_chunks_mut::<GROUP>();
        by_level!(self.level, {
            portable: self.apply_words(from, to),
            x86: {
                Level::Avx2 => self.apply_words(from, to),
                // SAFETY: the maker of the backend promised that the machine has the level.
                Level::Avx512 | Level::Avx512Ifma | Level::Amx => unsafe { avx512::apply(self, from, to) },
            },
            arm: { Level::Neon | Level::Dotprod | Level::I8mm => self.apply_words(from, to) }
        });
    }

    fn apply_words(&self, from: &[[u32; GROUP]], to: &mut [[u32; GROUP]]) {
        for (to, &(group, order)) in to.iter_mut().zip(&self.groups) {
            let from = &from[group as usize];
            *to = self.orders[order as usize].map(|slot| from[slot as usize % GROUP]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_those_of_the_permutation() {
        for (degree, exponent) in [(16, 17), (64, 3), (256, 129), (2048, 9), (4096, 4097), (4096, 5)] {
            let from: Vec<u32> = (0..degree as u32).map(|i| i.wrapping_mul(2_654_435_769)).collect();
            let expected: Vec<u32> =
                slot_permutation(degree, exponent).iter().map(|&slot| from[slot as usize]).collect();
            for level in Level::usable() {
                let automorphism = Automorphism::new(level, degree, exponent);
                let mut to = vec![0; degree];
                automorphism.apply(&from, &mut to);
                assert!(to == expected && automorphism.orders.len() <= 16, "{level} {degree} {exponent}");
            }
        }
    }
}
