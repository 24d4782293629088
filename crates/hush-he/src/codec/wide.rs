//! Words of up to 120 bits, packed little-endian at their bit width.

use crate::HeError;

/// The width of the widest word, in bits.
pub const MAX_WIDE_BITS: u32 = 120;

/// Appends `words`, each of `bits` bits (the bits above must be zero), to `out`, and pads the last byte with zeros.
///
/// # Panics
/// If `bits` is above [`MAX_WIDE_BITS`].
pub fn pack_wide(words: impl IntoIterator<Item = u128>, bits: u32, out: &mut Vec<u8>) {
    assert!(bits <= MAX_WIDE_BITS);
    // The number of bits written at once. With fewer bits than that left in the buffer, another word fits.
    let flushed = if bits <= u64::BITS { u64::BITS } else { u8::BITS };
    let mut buffer = 0u128;
    let mut filled = 0;
    for word in words {
        debug_assert_eq!(word >> bits, 0, "a word of {bits} bits");
        buffer |= word << filled;
        filled += bits;
        while filled >= flushed {
            out.extend_from_slice(&(buffer as u64).to_le_bytes()[..flushed as usize / 8]);
            buffer >>= flushed;
            filled -= flushed;
        }
    }
    out.extend_from_slice(&(buffer as u64).to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Returns the `count` words of `bits` bits in `bytes`.
///
/// # Errors
/// The errors of [`unpack_scaled`](super::unpack_scaled).
///
/// # Panics
/// If `bits` is above [`MAX_WIDE_BITS`].
pub fn unpack_wide(
    bytes: &[u8],
    count: usize,
    bits: u32,
) -> Result<impl Iterator<Item = u128> + '_, HeError> {
    assert!(bits <= MAX_WIDE_BITS);
    super::check(bytes, count, bits)?;
    Ok((0..count).map(move |index| {
        let bit = index * bits as usize;
        let tail = &bytes[bit / 8..];
        let sixteen = tail.first_chunk().copied().unwrap_or_else(|| {
            let mut last = [0; 16];
            last[..tail.len()].copy_from_slice(tail);
            last
        });
        (u128::from_le_bytes(sixteen) >> (bit % 8)) & ((1 << bits) - 1)
    }))
}

/// Returns the `count` words of `bits` bits, at most 64, in `bytes`. Compiled once for all pages, because browsers download it.
///
/// # Errors
/// The errors of [`unpack_scaled`](super::unpack_scaled).
///
/// # Panics
/// If `bits` is above [`MAX_WIDE_BITS`].
#[inline(never)]
pub fn unpack_words(bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u64>, HeError> {
    Ok(unpack_wide(bytes, count, bits)?.map(|word| word as u64).collect())
}

#[cfg(test)]
mod tests {
    use super::{super::packed_bytes, *};

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
