//! Words modulo a power of two, packed little-endian at their true bit width.

mod wide;

pub use wide::{MAX_WIDE_BITS, pack_wide, unpack_wide};

use crate::HeError;

/// Returns the bytes of `count` packed words of `bits` bits; [`usize::MAX`] if there are more.
pub fn packed_bytes(count: usize, bits: u32) -> usize {
    let bits = bits as usize;
    (count / 8).saturating_mul(bits).saturating_add((count % 8 * bits).div_ceil(8))
}

/// Rounds a word modulo 2^32 to its top `bits` bits (1..=32), half to even, modulo `2^bits`.
///
/// Half up would add 1/2 to every word on average: over the columns of a row that sums to a bias of `D0 / 2` times the
/// row's mean, which passes the limit of decoding at some 10^5 columns. Half to even has mean error 0.
pub fn round_word(word: u32, bits: u32) -> u32 {
    if bits == 32 {
        return word;
    }
    let dropped = 32 - bits;
    let below_half = (1 << (dropped - 1)) - 1 + (word >> dropped & 1);
    // At least the top bit is kept, so the carry out of it is the reduction modulo 2^bits.
    word.wrapping_add(below_half) >> dropped
}

/// Packs `words`, each rounded to its top `bits` bits: word `i` takes the bits `i * bits ..` of the output.
pub fn pack_rounded(words: &[u32], bits: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(packed_bytes(words.len(), bits) + 4);
    let mut buffer = 0u64;
    let mut filled = 0;
    for &word in words {
        buffer |= u64::from(round_word(word, bits)) << filled;
        filled += bits;
        if filled >= 32 {
            out.extend((buffer as u32).to_le_bytes());
            buffer >>= 32;
            filled -= 32;
        }
    }
    out.extend(buffer.to_le_bytes());
    out.truncate(packed_bytes(words.len(), bits));
    out
}

/// Unpacks `count` words of `bits` bits and scales them back to modulo 2^32 (shifted up by `32 - bits`).
///
/// # Errors
/// [`HeError::PackedLength`] if `bytes` has not exactly [`packed_bytes`] bytes; [`HeError::PackedPadding`] if a bit behind the last
/// word is set. Nothing is allocated then.
pub fn unpack_scaled(bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u32>, HeError> {
    check(bytes, count, bits)?;
    let mut out = vec![0; count];
    unpack_scaled_into(bytes, bits, &mut out)?;
    Ok(out)
}

/// Unpacks as [`unpack_scaled`] does, into `out`, whose length is the number of words.
///
/// # Errors
/// The errors of [`unpack_scaled`].
pub fn unpack_scaled_into(bytes: &[u8], bits: u32, out: &mut [u32]) -> Result<(), HeError> {
    check(bytes, out.len(), bits)?;
    let scaled = |eight: [u8; 8], bit: usize| {
        // What lies above the word is shifted out at the top.
        (u64::from_le_bytes(eight) >> (bit % 8) << (32 - bits)) as u32
    };
    let step = bits as usize;
    // Words whose eight bytes all lie in the slice, then the rest with zeros behind the end.
    let whole = if bytes.len() < 8 { 0 } else { out.len().min(((bytes.len() - 8) * 8 + 7) / step + 1) };
    for (index, word) in out[..whole].iter_mut().enumerate() {
        let bit = index * step;
        *word = scaled(*bytes[bit / 8..].first_chunk().expect("eight bytes"), bit);
    }
    for (index, word) in out.iter_mut().enumerate().skip(whole) {
        let bit = index * step;
        let mut eight = [0; 8];
        let tail = &bytes[bit / 8..];
        let length = tail.len().min(8);
        eight[..length].copy_from_slice(&tail[..length]);
        *word = scaled(eight, bit);
    }
    Ok(())
}

/// Refuses bytes of another length than `count` words take, and bits behind the last word that are not zero.
fn check(bytes: &[u8], count: usize, bits: u32) -> Result<(), HeError> {
    let expected = packed_bytes(count, bits);
    let actual = bytes.len();
    if expected != actual {
        return Err(HeError::PackedLength { expected, actual });
    }
    // The bits that the last word takes of the last byte; 0 if it takes all of them.
    let taken = (count % 8) as u32 * bits % 8;
    match bytes.last() {
        Some(last) if taken != 0 && last >> taken != 0 => Err(HeError::PackedPadding),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_and_unpacks_every_width() {
        let words: Vec<u32> = (0..1000u32).map(|i| i.wrapping_mul(2_654_435_761) ^ (i << 29)).collect();
        for bits in 1..=32 {
            for count in [0, 1, 7, 8, 1000] {
                let packed = pack_rounded(&words[..count], bits);
                assert_eq!(packed.len(), packed_bytes(count, bits));
                let back = unpack_scaled(&packed, count, bits).unwrap();
                for (&word, &got) in words.iter().zip(&back) {
                    let error = got.wrapping_sub(word) as i32;
                    assert!(error.unsigned_abs() <= (1u64 << (32 - bits) >> 1) as u32, "{bits} bits");
                }
            }
        }
    }

    #[test]
    fn refuses_a_wrong_length() {
        assert_eq!(unpack_scaled(&[0; 5], 3, 12), Ok(vec![0; 3]));
        assert_eq!(unpack_scaled(&[0; 6], 3, 12), Err(HeError::PackedLength { expected: 5, actual: 6 }));
    }

    #[test]
    fn refuses_bits_behind_the_last_word() {
        for bits in 1..=32 {
            for count in 1..=9 {
                let used = count * bits as usize;
                let mut bytes = vec![0; packed_bytes(count, bits)];
                for bit in 0..8 * bytes.len() {
                    bytes[bit / 8] = 1 << (bit % 8);
                    let refused = bit >= used;
                    assert_eq!(
                        unpack_scaled(&bytes, count, bits).is_err(),
                        refused,
                        "{count} of {bits}: {bit}"
                    );
                    assert_eq!(
                        unpack_wide(&bytes, count, bits).is_err(),
                        refused,
                        "{count} of {bits}: {bit}"
                    );
                    bytes[bit / 8] = 0;
                }
            }
        }
        assert_eq!(unpack_scaled(&[0, 0, 0, 0, 0x10], 3, 12), Err(HeError::PackedPadding));
    }
}
