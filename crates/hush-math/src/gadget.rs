//! Gadget decomposition: a value modulo Q as a short sum of small digits times powers of two.

/// A gadget of `digits` balanced digits of `width` bits; the low `dropped` bits of a value are rounded away.
///
/// With `g_k = 2^(dropped + width k)`, a centred x is `sum_k digit_k g_k + rest`, where `|rest| <= 2^(dropped - 1)` and
/// `-2^(width-1) <= digit_k < 2^(width-1)`.
///
/// The digits represent the *centred* value and are *balanced*, including the top one. Digits with a mean other than zero
/// would add up coherently over structured data (three to five bits of noise).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gadget {
    /// The bits of a digit.
    pub width: u32,
    /// The number of digits l.
    pub digits: usize,
    /// The number of low bits that are rounded away.
    pub dropped: u32,
}

impl Gadget {
    /// A gadget without digits, for parameter sets that do not use this gadget.
    pub const NONE: Gadget = Gadget::new(0, 0, 0);

    /// Creates a gadget.
    pub const fn new(width: u32, digits: usize, dropped: u32) -> Self {
        Self { width, digits, dropped }
    }

    /// Returns log2 of `g_k`.
    pub fn log2_factor(&self, k: usize) -> u32 {
        self.dropped + self.width * k as u32
    }

    /// Returns whether the digits can represent every centred value modulo `product`. They need about one bit more than `product`
    /// has.
    pub fn covers(&self, product: u128) -> bool {
        let top = self.log2_factor(self.digits);
        self.width >= 2
            && self.width < 32
            && (1..=16).contains(&self.digits)
            && top < 127
            && product / 2 + self.offset() < 1 << top
    }

    /// Returns the offset that makes all digits of a value non-negative: half a unit for the rounding, and half a
    /// base for every digit.
    ///
    /// The `width` bits of `x + offset` from bit `log2_factor(k)` on are `digit_k + 2^(width - 1)`.
    pub fn offset(&self) -> u128 {
        let halves = (0..self.digits).map(|k| 1u128 << (self.log2_factor(k) + self.width - 1));
        let rounding = if self.dropped == 0 { 0 } else { 1u128 << (self.dropped - 1) };
        rounding + halves.sum::<u128>()
    }

    /// Returns digit `k` of the centred value `x`.
    #[inline]
    pub fn digit(&self, x: i128, k: usize) -> i32 {
        let shifted = (x.wrapping_add(self.offset() as i128) as u128) >> self.log2_factor(k);
        (shifted as u32 & ((1 << self.width) - 1)) as i32 - (1 << (self.width - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csprng::Csprng;

    #[test]
    fn digits_are_balanced_and_add_up() {
        let mut rng = Csprng::insecure_from_seed(3);
        for (gadget, bits) in
            [(Gadget::new(19, 4, 18), 93), (Gadget::new(7, 3, 12), 32), (Gadget::new(8, 4, 0), 31)]
        {
            let product = (1u128 << bits) - 12_345;
            assert!(gadget.covers(product) && !gadget.covers(product << 2));
            let half = (product / 2) as i128;
            let random = (0..500).map(|_| {
                let wide = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
                (wide % product) as i128 - half
            });
            let mut sums = vec![0f64; gadget.digits];
            for x in random.chain([0, 1, -1, half, -half]) {
                let mut sum = 0i128;
                for (k, total) in sums.iter_mut().enumerate() {
                    let digit = gadget.digit(x, k);
                    assert!((-(1 << (gadget.width - 1))..1 << (gadget.width - 1)).contains(&digit));
                    *total += f64::from(digit);
                    sum += i128::from(digit) << gadget.log2_factor(k);
                }
                let limit = if gadget.dropped == 0 { 0 } else { 1i128 << (gadget.dropped - 1) };
                assert!((x - sum).abs() <= limit, "{x} {sum}");
            }
            for total in sums {
                let std = 2f64.powi(gadget.width as i32) / 12f64.sqrt() * 505f64.sqrt();
                assert!(total.abs() < 5.0 * std, "the digits have mean zero");
            }
        }
    }
}
