//! Comparisons, choices and divisions whose time and memory addresses do not depend on a secret. A mask that stays the same in a
//! loop passes through `black_box`: the compiler would move it out of the loop, as a branch.

use std::hint::black_box;

use zeroize::Zeroizing;

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
    x.len() == y.len() && black_box(difference) == 0
}

/// Returns byte `index` of a public table. Reads every byte.
pub fn byte_at(table: &[u8], index: usize) -> u8 {
    (0u32..).zip(table).fold(0, |found, (at, byte)| found | byte & equal_mask(at, index as u32) as u8)
}

/// Returns chunk `index` of the chunks of `length` bytes. Reads every chunk.
pub fn chunk_at(chunks: &[u8], length: usize, index: usize) -> Zeroizing<Vec<u8>> {
    let mut chosen = Zeroizing::new(vec![0; length]);
    for (at, chunk) in (0u32..).zip(chunks.chunks_exact(length)) {
        let mask = black_box(equal_mask(at, index as u32) as u8);
        chosen.iter_mut().zip(chunk).for_each(|(sum, byte)| *sum |= byte & mask);
    }
    chosen
}

/// Returns the quotient and the remainder of `x` by a public `divisor`. Processors divide in a time that depends on `x`.
#[inline]
pub fn divide(x: u64, divisor: u64) -> (usize, usize) {
    // The estimate is at most 1 too small, as in `Modulus::reduce`.
    let estimate = ((u128::from(x) * u128::from(u64::MAX / divisor)) >> 64) as u64;
    let rest = x - estimate * divisor;
    let (reduced, is_exact) = rest.overflowing_sub(divisor);
    let exact = black_box(u64::from(is_exact)).wrapping_neg();
    ((estimate + 1 - (exact & 1)) as usize, (rest & exact | reduced & !exact) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_the_entries() {
        let table: Vec<u8> = (0..255).map(|byte| byte ^ 0xa5).collect();
        assert!((0..255).all(|index| byte_at(&table, index) == table[index]));
        assert!((0..51).all(|index| chunk_at(&table, 5, index)[..] == table[5 * index..][..5]));
    }

    #[test]
    fn quotients_are_those_of_the_machine() {
        let edges =
            [1, 2, 3, 7, 1000, 1 << 32, (1 << 32) + 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
        for divisor in edges {
            for x in edges
                .into_iter()
                .flat_map(|x| [x - 1, x, x.wrapping_mul(divisor), x.wrapping_mul(divisor).wrapping_sub(1)])
            {
                assert_eq!(
                    divide(x, divisor),
                    ((x / divisor) as usize, (x % divisor) as usize),
                    "{x} / {divisor}"
                );
            }
        }
    }

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
