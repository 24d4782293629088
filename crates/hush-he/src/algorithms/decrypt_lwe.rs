//! Decryption of a folded answer.

use super::encrypt_lwe::inner_product;
use crate::entities::LweDecryptionKey;

/// Returns the phase `b + <a, s> mod 2^32` of one answer word `b`, where `a` is its row of the hint (`n` words).
///
/// Source: SimplePIR section 4; VIPIR appendix A.1.
pub fn phase(b: u32, a: &[u32], key: &LweDecryptionKey) -> u32 {
    b.wrapping_add(inner_product(a, key.words()))
}

/// Returns the message byte nearest to a phase: `round(phase / 2^24) mod 256`. Source: the same as of [`phase`].
pub fn decrypt_byte(phase: u32) -> u8 {
    (phase.wrapping_add(1 << 23) >> 24) as u8
}
