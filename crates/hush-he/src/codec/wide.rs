//! Words of up to 120 bits, packed little-endian at their bit width.

use super::packed_bytes;
use crate::HeError;

/// Widest word.
pub const MAX_WIDE_BITS: u32 = 120;

/// Appends `words`, each of `bits` bits (the bits above must be zero), to `out`; ends at a whole byte.
///
/// # Panics
/// If `bits` is above [`MAX_WIDE_BITS`].
pub fn pack_wide(words: impl IntoIterator<Item = u128>, bits: u32, out: &mut Vec<u8>) {
    assert!(bits <= MAX_WIDE_BITS);
    let (mut buffer, mut filled) = (0u128, 0);
    for word in words {
        debug_assert_eq!(word >> bits, 0, "a word of {bits} bits");
        buffer |= word << filled;
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
}

/// The `count` words of `bits` bits in `bytes`.
///
/// # Errors
/// [`HeError::PackedLength`] if `bytes` has not exactly [`packed_bytes`] bytes.
///
/// # Panics
/// If `bits` is above [`MAX_WIDE_BITS`].
pub fn unpack_wide(
    bytes: &[u8],
    count: usize,
    bits: u32,
) -> Result<impl Iterator<Item = u128> + '_, HeError> {
    assert!(bits <= MAX_WIDE_BITS);
    let (expected, actual) = (packed_bytes(count, bits), bytes.len());
    if expected != actual {
        return Err(HeError::PackedLength { expected, actual });
    }
    Ok((0..count).map(move |index| {
        let bit = index * bits as usize;
        let tail = &bytes[bit / 8..];
        let mut sixteen = [0; 16];
        let length = tail.len().min(16);
        sixteen[..length].copy_from_slice(&tail[..length]);
        (u128::from_le_bytes(sixteen) >> (bit % 8)) & ((1 << bits) - 1)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_round_trips() {
        for bits in 1..=MAX_WIDE_BITS {
            for count in [0usize, 1, 5, 64] {
                let mask = (1u128 << bits) - 1;
                let words: Vec<u128> =
                    (0..count as u128).map(|i| (u128::MAX / 7).wrapping_mul(i * i + 3) & mask).collect();
                let mut packed = vec![0xaa];
                pack_wide(words.iter().copied(), bits, &mut packed);
                assert_eq!(packed.len(), 1 + packed_bytes(count, bits));
                assert_eq!(unpack_wide(&packed[1..], count, bits).unwrap().collect::<Vec<_>>(), words);
            }
        }
        assert!(unpack_wide(&[0; 5], 3, 16).is_err());
    }
}
