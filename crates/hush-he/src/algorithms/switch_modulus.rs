//! Modulus switching.

use hush_math::{
    poly::{Coeff, Eval, Poly},
    ring::Ring,
    rns::Rns,
};

/// Returns `round(x / P)` modulo Q_1, for x modulo Q_1 P. `to` has the first limbs of `from`, and P is the product of the others.
/// The primes are dropped one after another, each by the centred residue modulo it.
///
/// Error: `sqrt(N / 18)` in a ciphertext for each prime. Source: OnionPIRv2 section 3.4 (modulus switching).
pub fn drop_primes(from: &Ring, to: &Ring, mut x: Poly<Eval>) -> Poly<Eval> {
    for last in (to.limbs()..from.limbs()).rev() {
        x = drop_last(from, last, &x);
    }
    x
}

/// Returns `round(x / p)` modulo the limbs before `last`, where p is the prime of `last` and x has no limbs after it.
fn drop_last(ring: &Ring, last: usize, x: &Poly<Eval>) -> Poly<Eval> {
    let dropped = ring.moduli()[last];
    let mut rest = x.limb(last).to_vec();
    ring.plans()[last].inverse(&mut rest);
    let mut out = Poly::zero(last, ring.degree());
    for (limb, (p, plan)) in ring.moduli().iter().zip(ring.plans()).take(last).enumerate() {
        let dropped_residue = p.reduce(u64::from(dropped.value()));
        let inverse = p.inverse(dropped_residue);
        let mut centred: Vec<u32> = Vec::with_capacity(rest.len());
        for &r in &rest {
            let above = (u64::from(dropped.value() / 2).wrapping_sub(u64::from(r)) >> 63) as u32;
            centred.push(p.sub(p.reduce(u64::from(r)), dropped_residue & above.wrapping_neg()));
        }
        plan.forward(&mut centred);
        for ((out, &word), &r) in out.limb_mut(limb).iter_mut().zip(x.limb(limb)).zip(&centred) {
            *out = p.mul(p.sub(word, r), inverse);
        }
    }
    out
}

/// Returns `round(c 2^bits / Q) mod 2^bits` for every coefficient c, half up; `bits <= 48`.
///
/// Source: OnionPIRv2 section 3.4 (modulus switching), VIPIR appendix D.5; a power of two in place of a prime.
pub fn switch_to_power_of_two(ring: &Ring, poly: &Poly<Coeff>, bits: u32) -> Vec<u64> {
    let rns = ring.rns();
    (0..ring.degree())
        .map(|i: usize| switch_integer(rns, rns.lift(|limb| poly.limb(limb)[i]), bits))
        .collect()
}

/// Computes `floor((value 2^bits + Q / 2) / Q) mod 2^bits` by binary long division.
fn switch_integer(rns: &Rns, value: u128, bits: u32) -> u64 {
    let mut rest = value;
    let mut quotient = 0;
    for _ in 0..bits {
        rest <<= 1;
        let fits = std::hint::black_box(u64::from(rest >= rns.product()));
        rest -= rns.product() * u128::from(fits);
        quotient = quotient << 1 | fits;
    }
    let up = u64::from(rest >= rns.product().div_ceil(2));
    (quotient + up) & (u64::MAX >> (64 - bits))
}

#[cfg(test)]
mod tests {
    use hush_math::{csprng::Csprng, modulus::find_primes};

    use super::*;

    fn rings() -> [Ring; 3] {
        let primes = [find_primes(64, 31, 2), find_primes(64, 21, 1)].concat();
        [3, 2, 1].map(|limbs| Ring::new(64, &primes[..limbs]))
    }

    #[test]
    fn primes_are_dropped_with_rounding() {
        let [three, two, one] = rings();
        let x: Poly<Coeff> = three.expand_uniform(&mut Csprng::insecure_from_seed(4));
        for to in [&two, &one] {
            let out = to.inverse(drop_primes(&three, to, three.forward(x.clone())));
            let q = three.rns().product() as i128;
            let factor = q / to.rns().product() as i128;
            for i in 0..64 {
                let value = three.rns().lift_centred(|limb| x.limb(limb)[i]);
                let got = to.rns().lift_centred(|limb| out.limb(limb)[i]);
                let rest = (value - got * factor).rem_euclid(q);
                // The error is half a step, and a little for the prime that was rounded first.
                assert!(100 * rest.min(q - rest) <= 51 * factor, "{value} {got}");
            }
        }
    }

    #[test]
    fn powers_of_two_are_rounded_half_up() {
        for ring in rings() {
            let q = ring.rns().product();
            let values = [0, 1, q / 2, q / 2 + 1, q - 1, q / 3, q / 4096, q / 8192, q / 8192 + 1];
            let words = (0..ring.limbs()).flat_map(|limb: usize| (0..64).map(move |i| (limb, i)));
            let words = words.map(|(limb, i)| ring.rns().reduce(values[i % values.len()], limb)).collect();
            let poly = Poly::from_words(words, 64);
            for bits in [12, 20, 31, 48] {
                let switched = switch_to_power_of_two(&ring, &poly, bits);
                for (i, &word) in switched.iter().enumerate() {
                    // By long division in two halves, since value * 2^bits is wider than 128 bits.
                    let value = values[i % values.len()];
                    let mut rest = value;
                    let mut quotient = 0u128;
                    for _ in 0..bits / 4 {
                        rest <<= 4;
                        quotient = (quotient << 4) | (rest / q);
                        rest %= q;
                    }
                    for _ in 0..bits % 4 {
                        rest <<= 1;
                        quotient = (quotient << 1) | (rest / q);
                        rest %= q;
                    }
                    let rounded = (quotient + u128::from(2 * rest >= q)) & ((1 << bits) - 1);
                    assert_eq!(u128::from(word), rounded, "{value} to {bits} bits");
                }
            }
        }
    }
}
