//! Words modulo a power of two, packed little-endian at their true bit width.

mod wide;

pub use wide::{MAX_WIDE_BITS, pack_wide, unpack_wide, unpack_words};

use crate::HeError;

/// Returns the number of bytes that `count` packed words of `bits` bits take, or [`usize::MAX`] on overflow.
pub fn packed_bytes(count: usize, bits: u32) -> usize {
    let bits = bits as usize;
    (count / 8).saturating_mul(bits).saturating_add((count % 8 * bits).div_ceil(8))
}

/// Rounds a word modulo 2^32 to its top `bits` bits (1..=32), half to even, modulo `2^bits`.
///
/// Rounding half up would add 1/2 to every word on average. Over the columns of a row, that sums to a bias of
/// `D0 / 2` times the row's mean, which exceeds the limit of decoding at some 10^5 columns. Rounding half to even
/// has mean error 0.
pub fn round_word(word: u32, bits: u32) -> u32 {
    if bits == 32 {
        return word;
    }
    let dropped = 32 - bits;
    let below_half = (1 << (dropped - 1)) - 1 + (word >> dropped & 1);
    // At least the top bit is kept, so dropping the carry out of it is the reduction modulo 2^bits.
    word.wrapping_add(below_half) >> dropped
}

/// Rounds each of `words` to its top `bits` bits and packs them: word `i` takes the bits `i * bits ..` of the output.
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
/// [`HeError::PackedLength`] if `bytes` does not have exactly [`packed_bytes`] bytes; [`HeError::PackedPadding`] if a bit
/// after the last word is set. Nothing is allocated in either case.
pub fn unpack_scaled(bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u32>, HeError> {
    check(bytes, count, bits)?;
    let mut out = vec![0; count];
    unpack_scaled_into(bytes, bits, &mut out)?;
    Ok(out)
}

/// Unpacks `out.len()` words into `out`, in the way of [`unpack_scaled`].
///
/// # Errors
/// The errors of [`unpack_scaled`].
pub fn unpack_scaled_into(bytes: &[u8], bits: u32, out: &mut [u32]) -> Result<(), HeError> {
    check(bytes, out.len(), bits)?;
    let scaled = |eight: [u8; 8], bit: usize| {
        // The bits above the word are shifted out at the top.
        (u64::from_le_bytes(eight) >> (bit % 8) << (32 - bits)) as u32
    };
    let step = bits as usize;
    // `whole` counts the words whose eight bytes all lie in the slice. The loop after it pads the others with zeros.
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

/// Returns an error if `bytes` is not as long as `count` packed words, or if a bit after the last word is set.
fn check(bytes: &[u8], count: usize, bits: u32) -> Result<(), HeError> {
    let expected = packed_bytes(count, bits);
    let actual = bytes.len();
    if expected != actual {
        return Err(HeError::PackedLength { expected, actual });
    }
    // The number of bits of the last byte that the last word uses; 0 if it uses all of them.
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

    /// The error of rounding follows from the dropped bits and the lowest kept one: all of these are tried, up to 20.
    #[test]
    fn every_rounding_is_to_the_nearest_and_has_mean_error_0() {
        for dropped in 1..=20 {
            let bits = 32 - dropped;
            let mut sum = 0;
            for low in 0..1u32 << (dropped + 1) {
                // The kept bits above are all 0, or all 1: the carry leaves the word.
                for word in [low, low | u32::MAX << (dropped + 1)] {
                    let error = (round_word(word, bits) << dropped).wrapping_sub(word) as i32;
                    assert!(error.unsigned_abs() <= 1 << (dropped - 1), "{word:x} to {bits} bits");
                    sum += i64::from(error);
                }
            }
            assert_eq!(sum, 0, "{bits} bits");
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
