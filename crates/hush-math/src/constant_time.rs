//! Comparisons without a branch, so that neither time nor memory addresses depend on a secret.

/// Returns all ones if `x == y`, else zero.
#[inline]
pub fn equal_mask(x: u32, y: u32) -> u32 {
    let difference = x ^ y;
    (((difference | difference.wrapping_neg()) >> 31) ^ 1).wrapping_neg()
}

/// Returns whether two byte strings are equal, in a time that depends only on their lengths.
pub fn equal_bytes(x: &[u8], y: &[u8]) -> bool {
    let difference = x.iter().zip(y).fold(0, |difference, (x, y)| difference | (x ^ y));
    // Without `black_box` the compiler may stop at the first difference.
    x.len() == y.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_equal() {
        let bytes = [1u8, 2, 0x80, 0];
        assert!(equal_bytes(&[], &[]) && equal_bytes(&bytes, &bytes));
        assert!(!equal_bytes(&bytes, &bytes[..3]) && !equal_bytes(&[], &bytes));
        for place in 0..bytes.len() {
            let mut other = bytes;
            other[place] ^= 0x40;
            assert!(!equal_bytes(&bytes, &other), "{place}");
        }
    }

    #[test]
    fn masks_are_all_or_nothing() {
        let values = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX];
        for x in values {
            for y in values {
                assert_eq!(equal_mask(x, y), if x == y { u32::MAX } else { 0 });
            }
        }
    }
}
