//! Whitening: a table over rings is stored plus a pseudo-random symbol at every place, modulo t.
//!
//! The noise of the first dimension is a sum over database polynomials. Where these are alike, errors add up in one
//! frequency of the ring and depend on the secret alone (`docs/protocols/onion.md`: a constant table comes within a few
//! standard deviations of failing). With whitening the database is uniform whatever it holds. It hides nothing: the
//! seed is public, in the descriptor, drawn when the table is built so that its content cannot have been chosen for it.

use hush_he::{codec::packed_bytes, params::RingParams};
use hush_math::csprng::Csprng;

use crate::symbols::to_symbols;

/// Whitens the plaintexts of one table.
#[derive(Clone, Copy, Debug)]
pub struct Whitening {
    seed: [u8; 32],
    degree: usize,
    bits: u32,
}

impl Whitening {
    /// The whitening of a table by its public seed.
    pub fn new(ring: &RingParams, seed: [u8; 32]) -> Self {
        Self { seed, degree: ring.degree(), bits: ring.plaintext_bits() }
    }

    /// The symbols that are added to the plaintext of `row` in database column `column`, N of them.
    pub fn symbols(&self, row: usize, column: usize) -> Vec<u32> {
        let stream = (column as u64) << 32 | row as u64;
        let mut bytes = vec![0; packed_bytes(self.degree, self.bits)];
        Csprng::public("hushdb v1 2026 whitening", &self.seed, stream).fill_bytes(&mut bytes);
        let mut symbols = vec![0; self.degree];
        to_symbols(&bytes, self.bits, &mut symbols);
        symbols
    }

    /// Adds the whitening to a plaintext.
    pub fn add_to(&self, row: usize, column: usize, plaintext: &mut [u32]) {
        for (symbol, white) in plaintext.iter_mut().zip(self.symbols(row, column)) {
            *symbol = symbol.wrapping_add(white) & self.mask();
        }
    }

    /// Takes the whitening off a sum of `coefficient` times the plaintext of each row in `rows`.
    pub fn remove_from(&self, rows: &[(u32, u8)], column: usize, sum: &mut [u32]) {
        for &(row, coefficient) in rows {
            for (symbol, white) in sum.iter_mut().zip(self.symbols(row as usize, column)) {
                *symbol = symbol.wrapping_sub(white.wrapping_mul(u32::from(coefficient)));
            }
        }
        sum.iter_mut().for_each(|symbol| *symbol &= self.mask());
    }

    fn mask(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }
}
