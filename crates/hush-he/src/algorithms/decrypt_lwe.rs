//! Decryption of a folded answer.

use super::encrypt_lwe::inner_product;
use crate::entities::LweDecryptionKey;

/// The phase `b + <a, s> mod 2^32` of one answer word `b`, where `a` is its row of the hint (`n` words).
pub fn phase(b: u32, a: &[u32], key: &LweDecryptionKey) -> u32 {
    b.wrapping_add(inner_product(a, key.words()))
}

/// The message byte nearest to a phase: `round(phase / 2^24) mod 256`.
pub fn decrypt_byte(phase: u32) -> u8 {
    (phase.wrapping_add(1 << 23) >> 24) as u8
}
