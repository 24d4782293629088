//! Whitening: a table over rings is stored with a pseudo-random symbol added to every symbol, modulo t.
//!
//! The noise of the first dimension is a sum over database polynomials. If these are alike, errors add up in one frequency
//! of the ring and depend on the secret alone: a constant table comes within a few standard deviations of failing
//! (`docs/explanation/protocols/onion.md`). With whitening the database is uniform, whatever its content. Whitening hides
//! nothing, because its seed is public, in the descriptor. The seed is drawn when the table is built, so the content cannot
//! be chosen for it.

use hush_he::{codec::packed_bytes, params::RingParams};
use hush_math::csprng::Csprng;
use zeroize::Zeroizing;

use crate::symbols::to_symbols;

/// The whitening of one table's plaintexts.
#[derive(Clone, Copy, Debug)]
pub struct Whitening {
    seed: [u8; 32],
    degree: usize,
    bits: u32,
}

impl Whitening {
    /// Creates the whitening of a table from its public seed.
    pub fn new(ring: &RingParams, seed: [u8; 32]) -> Self {
        Self { seed, degree: ring.degree(), bits: ring.plaintext_bits() }
    }

    /// Returns the N symbols that are added to the plaintext of `row` in database column `column`. They are wiped when
    /// dropped, because a client computes them for the rows that it looks up.
    pub fn symbols(&self, row: usize, column: usize) -> Zeroizing<Vec<u32>> {
        let stream = (column as u64) << 32 | row as u64;
        let mut bytes = Zeroizing::new(vec![0; packed_bytes(self.degree, self.bits)]);
        Csprng::public("hushdb v1 2026 whitening", &self.seed, stream).fill_bytes(&mut bytes);
        let mut symbols = Zeroizing::new(vec![0; self.degree]);
        to_symbols(&bytes, self.bits, &mut symbols);
        symbols
    }

    /// Adds the whitening to the plaintext of `row` and `column`.
    pub fn add_to(&self, row: usize, column: usize, plaintext: &mut [u32]) {
        for (symbol, &white) in plaintext.iter_mut().zip(self.symbols(row, column).iter()) {
            *symbol = symbol.wrapping_add(white) & self.mask();
        }
    }

    /// Removes the whitening from a sum of `coefficient` times the plaintext of each row in `rows`.
    pub fn remove_from(&self, rows: &[(u32, u8)], column: usize, sum: &mut [u32]) {
        for &(row, coefficient) in rows {
            for (symbol, &white) in sum.iter_mut().zip(self.symbols(row as usize, column).iter()) {
                *symbol = symbol.wrapping_sub(white.wrapping_mul(u32::from(coefficient)));
            }
        }
        sum.iter_mut().for_each(|symbol| *symbol &= self.mask());
    }

    fn mask(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }
}

#[cfg(test)]
mod tests {
    use hush_he::params::{ONION_M31, ONION_S};

    use super::*;

    #[test]
    fn constant_plaintexts_become_uniform() {
        for ring in [ONION_M31, ONION_S] {
            let whitening = Whitening::new(&ring, [3; 32]);
            let t = 2f64.powi(ring.plaintext_bits() as i32);
            for constant in [0, 1, (t as u32) - 1] {
                let mut plaintext = vec![constant; ring.degree()];
                whitening.add_to(5, 7, &mut plaintext);
                let mean = plaintext.iter().map(|&x| f64::from(x) / t).sum::<f64>() / plaintext.len() as f64;
                let var = plaintext.iter().map(|&x| (f64::from(x) / t - mean).powi(2)).sum::<f64>();
                assert!((mean - 0.5).abs() < 0.03, "{mean}");
                assert!((12.0 * var / plaintext.len() as f64 - 1.0).abs() < 0.06, "{var}");
                assert!(plaintext.iter().all(|&x| f64::from(x) < t));
            }
        }
    }

    #[test]
    fn every_place_and_seed_has_its_own() {
        let whitening = Whitening::new(&ONION_S, [3; 32]);
        let here = whitening.symbols(1, 2);
        assert_eq!(here, whitening.symbols(1, 2));
        assert_ne!(here, whitening.symbols(2, 1));
        assert_ne!(here, whitening.symbols(1, 3));
        assert_ne!(here, Whitening::new(&ONION_S, [4; 32]).symbols(1, 2));
    }

    #[test]
    fn it_comes_off_weighted_sums() {
        let whitening = Whitening::new(&ONION_M31, [3; 32]);
        let rows = [(0u32, 1u8), (9, 0), (255, 3)];
        let mask = u32::MAX >> (32 - ONION_M31.plaintext_bits());
        let mut sum = vec![0u32; ONION_M31.degree()];
        for (row, coefficient) in rows {
            let mut plaintext = vec![row + 1; ONION_M31.degree()];
            whitening.add_to(row as usize, 4, &mut plaintext);
            for (sum, symbol) in sum.iter_mut().zip(plaintext) {
                *sum = sum.wrapping_add(symbol * u32::from(coefficient)) & mask;
            }
        }
        whitening.remove_from(&rows, 4, &mut sum);
        assert!(sum.iter().all(|&symbol| symbol == 1 + 3 * 256));
    }
}
