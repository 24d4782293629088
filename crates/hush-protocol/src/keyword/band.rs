//! The `band` filter: a banded linear system over Z_2^k.
//!
//! A key hashes to a start `s` and `w` random bits, of which the first is set. Its value is the sum, symbol by symbol, of
//! the slots `s + j` whose bit `j` is set. An LWE query can encrypt any vector, so about `w / 2` ones cost as little as a
//! single one, in noise and in bandwidth. A larger width saves space: at `w = 256` there are 2 % more slots than keys.
//!
//! Source: banded ("ribbon") retrieval, Dietzfelbinger and Walzer, "Efficient Gauss elimination for near-quadratic
//! matrices with one short random block per row" (ESA 2019); here over Z_2^k in place of F_2. A 0/1 system is
//! solvable over Z_2^k if it has full row rank modulo 2.

use hush_ops::{
    OpsError,
    contract::{BandSystem, FilterOps},
    symbol::Symbol,
};

use super::{
    KeyDigest,
    key_hash::{Block, scale},
};

/// Returns the width of the band, which is at most the number of slots.
fn effective_width(width: usize, slots: usize) -> usize {
    width.min(slots).max(1)
}

/// Returns the number of slots for `keys` keys. Most seeds work with it.
///
/// A block fails if too many rows start close together. The probability decreases exponentially in spare slots times width,
/// and grows with the size of the block. Hence the form of this formula; its constants are measured.
pub(super) fn slots_for(width: usize, keys: usize) -> usize {
    let offset = match width {
        ..=64 => 0,
        65..=128 => 3,
        129..=192 => 4,
        _ => 5,
    };
    match keys {
        0 | 1 => 1,
        _ => keys + 4 + keys * (keys.ilog2() as usize).saturating_sub(offset) / (3 * width),
    }
}

/// Returns a key's first slot, and its 0/1 coefficients as bits.
pub(super) fn locate(digest: &KeyDigest, block_seed: u8, width: usize, slots: usize) -> (u32, [u64; 4]) {
    let width = effective_width(width, slots);
    let [start, _, _, _, coeffs @ ..] = digest.positions(block_seed);
    let mut coeffs = std::array::from_fn(|word| {
        let bits = width.saturating_sub(64 * word).min(64) as u32;
        coeffs[word] & u64::MAX.checked_shr(64 - bits).unwrap_or(0)
    });
    coeffs[0] |= 1;
    (scale(start, slots + 1 - width) as u32, coeffs)
}

/// Returns all slots of the key's window with their coefficients, 0 or 1. The number of slots is constant, so the time of
/// an encryption does not depend on the key.
pub(super) fn support(digest: &KeyDigest, block_seed: u8, width: usize, slots: usize) -> Vec<(u32, u8)> {
    let (start, coeffs) = locate(digest, block_seed, width, slots);
    let slots = (0..width.min(slots) as u32).map(|bit| {
        let coeff = coeffs[bit as usize / 64] >> (bit % 64) & 1;
        (start + bit, coeff as u8)
    });
    slots.collect()
}

/// Solves the system for the slots, and writes them to `out`. Fails with [`OpsError::Singular`] if the rows are dependent
/// under this seed.
pub(super) fn build<S: Symbol>(
    block: &Block<'_, S>,
    block_seed: u8,
    width: usize,
    ops: &dyn FilterOps,
    out: &mut [S],
) -> Result<(), OpsError> {
    let &Block { digests, values, slot_size, slots } = block;
    let mut rows: Vec<(u32, u32, [u64; 4])> = (0u32..)
        .zip(digests)
        .map(|(key, digest)| {
            let (start, coeffs) = locate(digest, block_seed, width, slots);
            (start, key, coeffs)
        })
        .collect();
    rows.sort_unstable();
    let mut sorted_values = Vec::with_capacity(values.len());
    for (_, key, _) in &rows {
        sorted_values.extend_from_slice(&values[*key as usize * slot_size..][..slot_size]);
    }
    let system = BandSystem {
        slots,
        width: effective_width(width, slots),
        starts: rows.iter().map(|row| row.0).collect(),
        coeffs: rows.iter().map(|row| row.2).collect(),
    };
    drop(rows);
    S::band_solve(ops, &system, &sorted_values, slot_size, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All clients, whatever their version, must compute the same.
    #[test]
    fn the_numbers_of_slots_stay() {
        for (width, keys, slots) in [
            (64, 0, 1),
            (64, 1, 1),
            (64, 1000, 1050),
            (128, 1000, 1019),
            (192, 1000, 1012),
            (256, 1000, 1009),
            (256, 1 << 20, 1_069_060),
        ] {
            assert_eq!(slots_for(width, keys), slots, "{width} {keys}");
        }
    }
}
