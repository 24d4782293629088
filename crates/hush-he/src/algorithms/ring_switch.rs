//! Ring switching: from a large ring to a small one.

use hush_math::{
    poly::{Coeff, Eval, Poly},
    ring::Ring,
};
use zeroize::Zeroizing;

use super::{
    decompose,
    decrypt_response::{rounded_phase, times_secret},
    switch_to_power_of_two,
};
use crate::{
    entities::{RingSecrets, RingSwitchKey},
    params::RingContext,
};

/// Switches a ciphertext (a, b) modulo Q_1 in evaluation form to the small ring, which keeps the coefficients `j N / degree` of
/// its message. Returns `rank` polynomials of the mask, then the body, each switched to its width of
/// [`crate::params::RingSwitch::response_bits`].
///
/// With Y = X^parts, `a = sum_i a_i(Y) X^i` and s likewise, the part of `b + a s` in Y alone is
/// `b_0 + a_0 s_0 + Y sum_(i > 0) a_(parts - i) s_i`. Both halves are rescaled to Q_s first; products with s_i are key switches.
///
/// Error: [`crate::params::RingNoise::ring_switched`]. Cost: `parts l + rank + 1` small transforms. Source: Gentry, Halevi,
/// Peikert, Smart, Ring Switching (2012), section 3, to a module.
///
/// # Panics
/// If the set does not have a small ring.
pub fn ring_switch(context: &RingContext, key: &RingSwitchKey, a: Vec<u32>, b: Vec<u32>) -> Vec<Vec<u64>> {
    let small = context.switched().expect("a set whose answers are switched");
    let switch = context.params().switch().expect("a set whose answers are switched");
    let parts = context.params().degree() / switch.degree();
    let gadget = switch.gadget();
    let rank = switch.rank();
    let [a, b] = [a, b].map(|half| rescaled(context, Poly::from_words(half, context.kept().degree())));
    let mut sums: Vec<Poly<Eval>> = vec![small.zero(); rank + 1];
    for i in 0..parts {
        let mut part = part(small, &a, (parts - i) % parts, parts);
        if i > 0 {
            times_y(small, &mut part);
        }
        let digits = decompose(small, &small.forward(part), gadget);
        for (digit, row) in digits.iter().zip(&key.rows[i * gadget.digits..]) {
            sums.iter_mut().zip(row).for_each(|(sum, row)| small.mul_add(sum, digit, row));
        }
    }
    let mut sums: Vec<_> = sums.into_iter().map(|sum| small.inverse(sum)).collect();
    small.add(&mut sums[rank], &part(small, &b, 0, parts));
    let bits = switch.response_bits();
    let mut switched = Vec::with_capacity(sums.len());
    for (poly, sum) in sums.iter().enumerate() {
        let width = if poly < rank { bits.a } else { bits.b };
        switched.push(switch_to_power_of_two(small, sum, width));
    }
    switched
}

/// Decrypts symbols of `symbol_bits` bits from an answer that [`ring_switch`] made. `a` holds the polynomials of the mask; `b`
/// holds the coefficients at multiples of `stride` in the small ring, or the first of them.
///
/// Constant time in the secrets and the symbols.
///
/// # Panics
/// If the set does not have a small ring.
pub fn decrypt_switched(
    context: &RingContext,
    secrets: &RingSecrets,
    a: &[Vec<u64>],
    b: &[u64],
    stride: usize,
    symbol_bits: u32,
) -> Zeroizing<Vec<u32>> {
    let ring = context.switched().expect("a set whose answers are switched");
    let bits = context.params().switch().expect("a set whose answers are switched").response_bits();
    let mut sum = Zeroizing::new(ring.zero());
    for (a, secret) in a.iter().zip(&secrets.switched) {
        // The sum over all secrets is below Q_s / 2 in size as an integer, too.
        ring.add(&mut sum, &times_secret(ring, secret, a, bits.a));
    }
    Zeroizing::new(
        b.iter()
            .enumerate()
            .map(|(i, &b): (usize, &u64)| {
                let product = ring.rns().lift_centred(|limb| sum.limb(limb)[i * stride]) as u64;
                rounded_phase(product, b, bits, symbol_bits)
            })
            .collect(),
    )
}

/// Returns `round(x Q_s / Q_1) mod Q_s` of every coefficient, half up.
fn rescaled(context: &RingContext, x: Poly<Eval>) -> Vec<u128> {
    let kept = context.kept();
    let x = context.kept().inverse(x);
    let from = kept.rns().product();
    let to = context.switched().map_or(1, |small| small.rns().product());
    (0..kept.degree())
        .map(|i: usize| (kept.rns().lift(|limb| x.limb(limb)[i]) * to + from / 2) / from % to)
        .collect()
}

/// Returns the coefficients `i + j parts` of x as a polynomial in Y.
fn part(small: &Ring, x: &[u128], i: usize, parts: usize) -> Poly<Coeff> {
    let mut part = small.zero();
    for (j, &value) in x.iter().skip(i).step_by(parts).enumerate() {
        for limb in 0..small.limbs() {
            part.limb_mut(limb)[j] = small.rns().reduce(value, limb);
        }
    }
    part
}

/// Multiplies x by Y: the last coefficient moves to the front with its sign changed.
fn times_y(small: &Ring, x: &mut Poly<Coeff>) {
    for (limb, p) in small.moduli().iter().enumerate() {
        let words = x.limb_mut(limb);
        words.rotate_right(1);
        words[0] = p.sub(0, words[0]);
    }
}
