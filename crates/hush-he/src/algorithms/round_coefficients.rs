//! Polynomials on the wire: coefficients as integers modulo Q without their low bits.

use hush_math::{
    poly::{Coeff, Poly},
    ring::Ring,
    rns::Rns,
};

use crate::{
    HeError,
    codec::{pack_wide, packed_bytes, unpack_wide},
};

/// Returns the bits of a coefficient modulo Q without its `dropped` low bits.
pub(super) fn rounded_bits(rns: &Rns, dropped: u32) -> u32 {
    rns.bits() - dropped
}

/// Returns the bytes of `count` coefficients without their `dropped` low bits.
pub(super) fn rounded_bytes(rns: &Rns, count: usize, dropped: u32) -> usize {
    packed_bytes(count, rounded_bits(rns, dropped))
}

/// Appends the coefficients of `poly` at `positions` to `out`, each rounded to a multiple of `2^dropped`.
///
/// The rounding error is at most `2^(dropped - 1)`. Every position is below N.
pub(super) fn round_coefficients(
    ring: &Ring,
    poly: &Poly<Coeff>,
    positions: impl IntoIterator<Item = usize>,
    dropped: u32,
    out: &mut Vec<u8>,
) {
    let half = (1u128 << dropped) >> 1;
    pack_wide(
        positions
            .into_iter()
            .map(|position: usize| (ring.rns().lift(|limb| poly.limb(limb)[position]) + half) >> dropped),
        rounded_bits(ring.rns(), dropped),
        out,
    );
}

/// Reads `count` coefficients from `bytes` into a polynomial, at `positions`; the others are 0.
///
/// # Errors
/// [`HeError::PackedLength`] if the length is wrong, [`HeError::Coefficient`] if a coefficient is not below Q.
pub(super) fn unround_coefficients(
    ring: &Ring,
    bytes: &[u8],
    positions: impl Iterator<Item = usize>,
    count: usize,
    dropped: u32,
) -> Result<Poly<Coeff>, HeError> {
    let rns = ring.rns();
    let highest = (rns.product() - 1 + ((1u128 << dropped) >> 1)) >> dropped;
    let words: Vec<u128> = unpack_wide(bytes, count, rounded_bits(rns, dropped))?.collect();
    if let Some(index) = words.iter().position(|&word| word > highest) {
        return Err(HeError::Coefficient { index });
    }
    let mut poly = ring.zero();
    // For most moduli, a rounded coefficient fits into one 64-bit word, which is faster to reduce.
    let is_word = highest.leading_zeros() >= u64::BITS + dropped;
    let positions: Vec<usize> = positions.collect();
    for (limb, p) in rns.moduli().iter().enumerate() {
        let residues = poly.limb_mut(limb);
        for (&word, &position) in words.iter().zip(&positions) {
            let rounded: u128 = word << dropped;
            residues[position] = if is_word { p.reduce(rounded as u64) } else { rns.reduce(rounded, limb) };
        }
    }
    Ok(poly)
}
