//! Words modulo a power of two, packed little-endian at their true bit width.

use crate::HeError;

/// Bytes of `count` packed words of `bits` bits.
pub fn packed_bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Rounds a word modulo 2^32 to its top `bits` bits (1..=32), half up, modulo `2^bits`.
pub fn round_word(word: u32, bits: u32) -> u32 {
    if bits == 32 { word } else { word.wrapping_add(1 << (31 - bits)) >> (32 - bits) }
}

/// Packs `words`, each rounded to its top `bits` bits: word `i` takes the bits `i * bits ..` of the output.
pub fn pack_rounded(words: &[u32], bits: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(packed_bytes(words.len(), bits) + 8);
    let (mut buffer, mut filled) = (0u64, 0);
    for &word in words {
        buffer |= u64::from(round_word(word, bits)) << filled;
        filled += bits;
        while filled >= 8 {
            out.push(buffer as u8);
            buffer >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(buffer as u8);
    }
    out
}

/// Unpacks `count` words of `bits` bits and scales them back to modulo 2^32 (shifted up by `32 - bits`).
///
/// # Errors
/// [`HeError::PackedLength`] if `bytes` has not exactly [`packed_bytes`] bytes. Nothing is allocated then.
pub fn unpack_scaled(bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u32>, HeError> {
    let expected = packed_bytes(count, bits);
    if bytes.len() != expected {
        return Err(HeError::PackedLength { expected, actual: bytes.len() });
    }
    let mut out = Vec::with_capacity(count);
    let (mut buffer, mut filled, mut next) = (0u64, 0, bytes.iter());
    for _ in 0..count {
        while filled < bits {
            buffer |= u64::from(next.next().copied().unwrap_or(0)) << filled;
            filled += 8;
        }
        out.push((buffer << (32 - bits)) as u32);
        buffer >>= bits;
        filled -= bits;
    }
    Ok(out)
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
}
