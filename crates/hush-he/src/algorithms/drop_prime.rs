//! Modulus switching.

use hush_math::{
    poly::{Coeff, Eval, Poly},
    ring::Ring,
    rns::Rns,
};

use crate::params::RingContext;

/// `round(x / P)` modulo Q_1, from x modulo Q_e = Q_1 P, by the centred residue modulo P.
///
/// Error: `sqrt(N / 18)` over a ciphertext. Without a dropped prime x is returned. Source: PROTOCOLS.md section 8.
pub fn drop_prime(context: &RingContext, x: Poly<Eval>) -> Poly<Eval> {
    let (full, kept) = (context.full(), context.kept());
    if full.limbs() == kept.limbs() {
        return x;
    }
    let last = kept.limbs();
    let dropped = full.moduli()[last];
    let mut rest = x.limb(last).to_vec();
    full.plans()[last].inverse(&mut rest);
    let mut out = Poly::zero(last, full.degree());
    for (limb, (p, plan)) in kept.moduli().iter().zip(kept.plans()).enumerate() {
        let dropped_residue = p.reduce(u64::from(dropped.value()));
        let inverse = p.inverse(dropped_residue);
        let centre = |r: u32| {
            let above = (u64::from(dropped.value() / 2).wrapping_sub(u64::from(r)) >> 63) as u32;
            p.sub(p.reduce(u64::from(r)), dropped_residue & above.wrapping_neg())
        };
        let mut centred: Vec<u32> = rest.iter().map(|&r| centre(r)).collect();
        plan.forward(&mut centred);
        for ((out, &word), &r) in out.limb_mut(limb).iter_mut().zip(x.limb(limb)).zip(&centred) {
            *out = p.mul(p.sub(word, r), inverse);
        }
    }
    out
}

/// `round(c 2^bits / Q) mod 2^bits` of every coefficient, half up; `bits <= 48`.
pub fn switch_to_power_of_two(ring: &Ring, poly: &Poly<Coeff>, bits: u32) -> Vec<u64> {
    let rns = ring.rns();
    let switched = |i: usize| switch_integer(rns, rns.lift(|limb| poly.limb(limb)[i]), bits);
    (0..ring.degree()).map(switched).collect()
}

/// `floor((value 2^bits + Q / 2) / Q) mod 2^bits`, bit by bit, as one would on paper.
fn switch_integer(rns: &Rns, value: u128, bits: u32) -> u64 {
    let (mut rest, mut quotient) = (value, 0);
    for _ in 0..bits {
        rest <<= 1;
        let fits = u128::from(rest >= rns.product());
        rest -= rns.product() * fits;
        quotient = quotient << 1 | fits as u64;
    }
    let up = u64::from(rest >= rns.product().div_ceil(2));
    (quotient + up) & (u64::MAX >> (64 - bits))
}
