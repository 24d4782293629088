//! Comparison without a branch, so that neither time nor address depends on a secret.

/// All ones if `x == y`, else zero.
#[inline]
pub fn equal_mask(x: u32, y: u32) -> u32 {
    let difference = x ^ y;
    (((difference | difference.wrapping_neg()) >> 31) ^ 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

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
