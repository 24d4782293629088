//! The step `ntt_db` (5): plaintexts to evaluation form.

use super::*;

/// Checks that `symbols` are whole plaintexts.
pub(crate) fn check(ring: &RingContext, symbols: &[u32]) -> Result<(), OpsError> {
    let degree = ring.params().degree();
    OpsError::check_shape("ntt_db", "symbols", symbols.len() / degree * degree, symbols.len())
}

/// Lifts symbols to `-t/2..t/2`, and transforms them plaintext by plaintext.
pub(crate) fn reference(ring: &RingContext, symbols: &[u32]) -> Vec<u32> {
    let bits = ring.params().plaintext_bits();
    let plaintexts = symbols.chunks_exact(ring.params().degree());
    let transformed = plaintexts.flat_map(|plaintext| {
        let lifted: Vec<u32> = plaintext
            .iter()
            .map(|&symbol: &u32| (((symbol << (32 - bits)) as i32) >> (32 - bits)) as u32)
            .collect();
        ring.kept().forward(ring.kept().from_signed(&lifted)).into_words()
    });
    transformed.collect()
}
