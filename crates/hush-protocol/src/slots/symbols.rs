//! The conversion of bytes to plaintext symbols of k bits, k from 1 to 32, and back. The bytes are a little-endian bit
//! stream, lowest bit of a byte first. Symbol `i` is bits `k i` to `k i + k - 1` of the stream, and the last symbol is
//! padded with zeros.

/// The widest symbol, in bits.
pub const MAX_SYMBOL_BITS: u32 = 32;

/// Returns the number of symbols of `bits` bits that hold `bytes` bytes.
///
/// # Panics
/// If `bits` is not 1 to [`MAX_SYMBOL_BITS`].
pub fn symbol_count(bytes: usize, bits: u32) -> usize {
    check_bits(bits);
    // 8 * bytes might overflow. So count whole groups of `bits` bytes, which are 8 symbols each, and the rest.
    let bits = bits as usize;
    bytes / bits * 8 + (bytes % bits * 8).div_ceil(bits)
}

/// Cuts `bytes` into symbols of `bits` bits.
///
/// # Panics
/// If `bits` is not 1 to [`MAX_SYMBOL_BITS`], or `out` is not [`symbol_count`] symbols long.
pub fn to_symbols(bytes: &[u8], bits: u32, out: &mut [u32]) {
    assert_eq!(
        out.len(),
        symbol_count(bytes.len(), bits),
        "symbols for {} bytes of {bits} bits",
        bytes.len()
    );
    let mask = mask(bits);
    let step = bits as usize;
    let symbol = |eight: [u8; 8], bit: usize| (u64::from_le_bytes(eight) >> (bit % 8)) as u32 & mask;
    // First the symbols whose eight bytes all lie in the slice, then the rest with zeros after the end.
    let whole = if bytes.len() < 8 { 0 } else { out.len().min(((bytes.len() - 8) * 8 + 7) / step + 1) };
    for (index, out) in out[..whole].iter_mut().enumerate() {
        let bit = index * step;
        *out = symbol(*bytes[bit / 8..].first_chunk().expect("eight bytes"), bit);
    }
    for (index, out) in out.iter_mut().enumerate().skip(whole) {
        let bit = index * step;
        let mut eight = [0; 8];
        let tail = &bytes[bit / 8..];
        let length = tail.len().min(8);
        eight[..length].copy_from_slice(&tail[..length]);
        *out = symbol(eight, bit);
    }
}

/// Joins symbols of `bits` bits to bytes. Ignores higher bits of the symbols, and bits of the last symbol beyond the bytes.
///
/// # Panics
/// If `bits` is not 1 to [`MAX_SYMBOL_BITS`], or `symbols` does not have [`symbol_count`] symbols for the bytes of `out`.
pub fn from_symbols(symbols: &[u32], bits: u32, out: &mut [u8]) {
    assert_eq!(
        symbols.len(),
        symbol_count(out.len(), bits),
        "symbols for {} bytes of {bits} bits",
        out.len()
    );
    let mask = mask(bits);
    let mut symbols = symbols.iter();
    let mut pending = 0u64;
    let mut filled = 0;
    let mut next_word = || {
        while filled < 32 {
            let symbol = symbols.next().map_or(0, |symbol| symbol & mask);
            pending |= u64::from(symbol) << filled;
            filled += bits;
        }
        let word = pending as u32;
        pending >>= 32;
        filled -= 32;
        word.to_le_bytes()
    };
    let (words, tail) = out.as_chunks_mut::<4>();
    words.iter_mut().for_each(|word| *word = next_word());
    let last = next_word();
    tail.copy_from_slice(&last[..tail.len()]);
}

fn mask(bits: u32) -> u32 {
    u32::MAX >> (MAX_SYMBOL_BITS - bits)
}

fn check_bits(bits: u32) {
    assert!((1..=MAX_SYMBOL_BITS).contains(&bits), "symbols of {bits} bits");
}

#[cfg(test)]
mod tests {
    use hush_math::csprng::Csprng;

    use super::*;

    fn random_bytes(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Csprng::insecure_from_seed(length as u64).fill_bytes(&mut bytes);
        bytes
    }

    /// Returns the symbols of `bytes`, computed bit by bit.
    fn expected(bytes: &[u8], bits: u32) -> Vec<u32> {
        let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| u32::from(byte >> (at % 8) & 1));
        let bits = bits as usize;
        (0..(8 * bytes.len()).div_ceil(bits))
            .map(|symbol| (0..bits).fold(0, |sum, at| sum | bit(symbol * bits + at) << at))
            .collect()
    }

    #[test]
    fn every_width_and_length() {
        for bits in 1..=MAX_SYMBOL_BITS {
            for length in (0..40).chain([255, 256, 1000]) {
                let bytes = random_bytes(length);
                let mut symbols = vec![7; symbol_count(length, bits)];
                to_symbols(&bytes, bits, &mut symbols);
                assert_eq!(symbols, expected(&bytes, bits), "{length} bytes, {bits} bits");

                let mut back = vec![7; length];
                from_symbols(&symbols, bits, &mut back);
                assert_eq!(back, bytes, "{bits} bits");
                symbols.iter_mut().for_each(|symbol| *symbol |= !mask(bits));
                from_symbols(&symbols, bits, &mut back);
                assert_eq!(back, bytes, "{bits} bits, high bits set");
            }
        }
    }

    #[test]
    fn counts_of_any_length() {
        assert_eq!([0, 1, 11, 12].map(|bytes| symbol_count(bytes, 22)), [0, 1, 4, 5]);
        assert_eq!(symbol_count(11 << 10, 22), 4096);
        assert_eq!(symbol_count(usize::MAX, 32), usize::MAX / 4 + 1);
    }

    #[test]
    #[should_panic(expected = "symbols of 33 bits")]
    fn wider_symbols_are_refused() {
        symbol_count(1, 33);
    }
}
