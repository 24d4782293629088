//! Arithmetic modulo a prime of at most 32 bits.

/// The exclusive upper bound of a modulus: 2^32 - 2^20. A result of a vector kernel that exceeds p by p / 2^14 still fits a
/// 32-bit lane.
pub const MODULUS_LIMIT: u32 = u32::MAX - (1 << 20) + 1;

/// A prime `p <` [`MODULUS_LIMIT`] with the constant that reduces modulo it without a division.
///
/// All operands and results are canonical, that is in `0..p`, unless a method says otherwise. No method branches on an
/// operand, except [`Modulus::pow`] on its exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    value: u32,
    /// floor((2^64 - 1) / p), for Barrett reduction.
    barrett: u64,
}

impl Modulus {
    /// Creates the modulus `value`.
    ///
    /// # Panics
    /// If `value` is not an odd prime below [`MODULUS_LIMIT`].
    pub fn new(value: u32) -> Self {
        let fits = value < MODULUS_LIMIT && value > 2 && is_prime(value);
        assert!(fits, "{value} is not an odd prime below {MODULUS_LIMIT}");
        Self { value, barrett: u64::MAX / u64::from(value) }
    }

    /// Returns the prime p.
    pub fn value(&self) -> u32 {
        self.value
    }

    /// Returns the bits of a canonical residue.
    pub fn bits(&self) -> u32 {
        u32::BITS - self.value.leading_zeros()
    }

    /// Returns `x mod p` for any `x`.
    #[inline]
    pub fn reduce(&self, x: u64) -> u32 {
        // Barrett reduction: the estimate of the quotient is at most 1 too small.
        let quotient = ((u128::from(x) * u128::from(self.barrett)) >> 64) as u64;
        let rest = x.wrapping_sub(quotient.wrapping_mul(u64::from(self.value)));
        rest.min(rest.wrapping_sub(u64::from(self.value))) as u32
    }

    /// Returns `x mod p` for a signed `x`.
    #[inline]
    pub fn reduce_signed(&self, x: i64) -> u32 {
        let negative = (x >> 63) as u32;
        let magnitude = self.reduce(x.unsigned_abs());
        // The negative of m is p - m, and 0 for m = 0.
        (magnitude & !negative) | (self.neg(magnitude) & negative)
    }

    /// Returns `a + b mod p`.
    #[inline]
    pub fn add(&self, a: u32, b: u32) -> u32 {
        let sum = u64::from(a) + u64::from(b);
        sum.min(sum.wrapping_sub(u64::from(self.value))) as u32
    }

    /// Returns `a - b mod p`.
    #[inline]
    pub fn sub(&self, a: u32, b: u32) -> u32 {
        let difference = u64::from(a).wrapping_sub(u64::from(b));
        difference.min(difference.wrapping_add(u64::from(self.value))) as u32
    }

    /// Returns `-a mod p`.
    #[inline]
    pub fn neg(&self, a: u32) -> u32 {
        self.sub(0, a)
    }

    /// Returns `a * b mod p`.
    #[inline]
    pub fn mul(&self, a: u32, b: u32) -> u32 {
        self.reduce(u64::from(a) * u64::from(b))
    }

    /// Returns `base^exponent mod p`.
    pub fn pow(&self, base: u32, mut exponent: u64) -> u32 {
        let mut square = base;
        let mut result = 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.mul(result, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        result
    }

    /// Returns `1 / a mod p`, and 0 for `a = 0`.
    pub fn inverse(&self, a: u32) -> u32 {
        self.pow(a, u64::from(self.value) - 2)
    }

    /// Returns `floor(w * 2^32 / p)`, the companion of `w` in [`Modulus::mul_shoup`].
    pub fn shoup(&self, w: u32) -> u32 {
        ((u64::from(w) << 32) / u64::from(self.value)) as u32
    }

    /// Returns `a * w mod p` for any `a` and a canonical `w` with its companion from [`Modulus::shoup`].
    ///
    /// Source: Harvey, "Faster arithmetic for number-theoretic transforms", section 3 (Shoup's trick).
    #[inline]
    pub fn mul_shoup(&self, a: u32, w: u32, w_shoup: u32) -> u32 {
        let a = u64::from(a);
        let p = u64::from(self.value);
        let quotient = (a * u64::from(w_shoup)) >> 32;
        let lazy = a * u64::from(w) - quotient * p; // below 2p
        lazy.min(lazy.wrapping_sub(p)) as u32
    }

    /// Returns the primitive `order`-th root of unity that the smallest possible base gives, for a power of two `order`.
    ///
    /// # Panics
    /// If `order` is not a power of two of at least 2 that divides `p - 1`.
    pub fn primitive_root(&self, order: usize) -> u32 {
        let group = u64::from(self.value) - 1;
        let order = order as u64;
        assert!(
            order.is_power_of_two() && order >= 2 && group.is_multiple_of(order),
            "{order} does not divide p - 1"
        );
        (2..self.value)
            .map(|base| self.pow(base, group / order))
            .find(|&root| self.pow(root, order / 2) == self.value - 1)
            .expect("half of all bases give a primitive root of a power-of-two order")
    }
}

/// Returns the `count` largest primes below `2^bits` (and [`MODULUS_LIMIT`]) that are 1 modulo `2 * degree`, in descending
/// order: the moduli of negacyclic NTTs of that degree. Returns fewer if fewer exist.
///
/// # Panics
/// If `bits > 32` or `degree` is not a power of two.
pub fn find_primes(degree: usize, bits: u32, count: usize) -> Vec<u32> {
    assert!(bits <= 32 && degree.is_power_of_two(), "{bits} bits, degree {degree}");
    let step = 2 * degree as u64;
    let limit = (1 << bits).min(u64::from(MODULUS_LIMIT));
    (1..=(1u64 << bits) / step)
        .rev()
        .map(|k| k * step + 1)
        .filter(|&candidate| candidate < limit && is_prime(candidate as u32))
        .take(count)
        .map(|prime| prime as u32)
        .collect()
}

/// Returns whether `n` is prime, by Miller-Rabin with the bases 2, 7 and 61: exact below 4,759,123,141 (Jaeschke 1993).
pub fn is_prime(n: u32) -> bool {
    const SMALL: [u32; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 61];
    if n < 2 || SMALL.contains(&n) {
        return n >= 2;
    }
    if SMALL.iter().any(|&p| n.is_multiple_of(p)) {
        return false;
    }
    let n = u64::from(n);
    let twos = (n - 1).trailing_zeros();
    let odd = (n - 1) >> twos;
    [2, 7, 61].into_iter().all(|base: u64| {
        let mut x = 1;
        let mut square = base;
        let mut exponent = odd;
        while exponent > 0 {
            if exponent & 1 == 1 {
                x = x * square % n;
            }
            square = square * square % n;
            exponent >>= 1;
        }
        x == 1
            || (0..twos).any(|_| {
                let found = x == n - 1;
                x = x * x % n;
                found
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIMES: [u32; 7] = [3, 7681, 65537, 1_073_479_681, 2_013_265_921, 2_147_483_647, 4_293_918_689];

    #[test]
    fn primality_matches_a_sieve() {
        let limit = 20_000;
        let mut composite = vec![false; limit];
        for p in 2..limit {
            for multiple in (2 * p..limit).step_by(p) {
                composite[multiple] = true;
            }
            assert_eq!(is_prime(p as u32), !composite[p], "{p}");
        }
        assert!(!is_prime(0) && !is_prime(1));
        assert!(is_prime(4_294_967_291) && !is_prime(4_294_967_295));
        assert!(!is_prime(3_215_031_751), "a strong pseudoprime to 2, 3, 5 and 7");
    }

    #[test]
    fn products_match_wide_division() {
        for p in PRIMES {
            let modulus = Modulus::new(p);
            let edge = [0, 1, 2, p / 2, p - 2, p - 1];
            let mixed = (0..200u32).map(|i| i.wrapping_mul(2_654_435_769) % p);
            for a in edge.into_iter().chain(mixed) {
                for b in edge {
                    let expected = (u64::from(a) * u64::from(b) % u64::from(p)) as u32;
                    assert_eq!(modulus.mul(a, b), expected, "{a} * {b} mod {p}");
                    assert_eq!(modulus.mul_shoup(a, b, modulus.shoup(b)), expected, "{a} * {b} mod {p}");
                    assert_eq!(u64::from(modulus.add(a, b)), (u64::from(a) + u64::from(b)) % u64::from(p));
                    assert_eq!(modulus.add(modulus.sub(a, b), b), a);
                }
                assert_eq!(modulus.mul(a, modulus.inverse(a)), u32::from(a != 0));
            }
            assert_eq!(modulus.reduce_signed(-1), p - 1);
            for x in [0, 1, -1, i64::MAX, i64::MIN, -i64::from(p), i64::from(p) - 1, -987_654_321_987] {
                assert_eq!(i64::from(modulus.reduce_signed(x)), x.rem_euclid(i64::from(p)), "{x} mod {p}");
            }
            for x in [u64::MAX, u64::MAX - 1, 1 << 63, u64::from(p) * u64::from(p), u64::from(p) - 1] {
                assert_eq!(u64::from(modulus.reduce(x)), x % u64::from(p), "{x} mod {p}");
            }
        }
    }

    #[test]
    fn found_primes_fit_the_degree() {
        for (degree, bits) in [(256, 30), (2048, 32), (4096, 31), (1, 3)] {
            let primes = find_primes(degree, bits, 3);
            assert!(!primes.is_empty());
            assert!(primes.windows(2).all(|pair| pair[0] > pair[1]));
            for p in primes {
                assert!(is_prime(p) && u64::from(p) < 1 << bits && p % (2 * degree as u32) == 1);
                let root = Modulus::new(p).primitive_root(2 * degree);
                assert_eq!(Modulus::new(p).pow(root, degree as u64), p - 1);
            }
        }
        assert_eq!(find_primes(1, 3, 9), [7, 5, 3]);
    }
}
