//! Private key switching: from TLWE words to RLWE ciphertexts.

use hush_math::{
    poly::{Eval, Poly},
    ring::Ring,
};

use super::drop_primes;
use crate::{
    entities::{RlweCiphertext, TlweWords},
    params::RingContext,
};

/// Switches word `leaf` of a query to a ciphertext modulo Q_1. Its phase is m s if `is_bottom`, and m otherwise. The keys are
/// the client's keys for bottom rows and for top rows.
///
/// Source: PPIR algorithm 2, followed by the drop of P.
///
/// # Panics
/// If the set does not have TLWE words.
pub fn private_key_switch(
    context: &RingContext,
    [bottom, top]: &[Vec<RlweCiphertext>; 2],
    query: &TlweWords,
    leaf: usize,
    is_bottom: bool,
) -> RlweCiphertext {
    let ring = context.full();
    let tlwe = context.params().tlwe().expect("a set of TLWE words");
    let key = if is_bottom { bottom } else { top };
    let mut sum = RlweCiphertext { a: ring.zero(), b: ring.zero() };
    let masks = query.masks[leaf * tlwe.n()..][..tlwe.n()].iter();
    for (digit, key) in masks.flat_map(|&word| tlwe.digits(word)).zip(key) {
        add_times(ring, &mut sum.a, digit, &key.a);
        add_times(ring, &mut sum.b, digit, &key.b);
    }
    let body = if is_bottom { &mut sum.a } else { &mut sum.b };
    for (limb, p) in ring.moduli().iter().enumerate() {
        let value = tlwe.constant(ring, query.bodies[leaf], limb);
        // A constant is the same in every slot.
        body.limb_mut(limb).iter_mut().for_each(|word| *word = p.add(*word, value));
    }
    let drop = |half| drop_primes(ring, context.kept(), half);
    RlweCiphertext { a: drop(sum.a), b: drop(sum.b) }
}

/// Adds `factor x` to `sum`.
fn add_times(ring: &Ring, sum: &mut Poly<Eval>, factor: i64, x: &Poly<Eval>) {
    for (limb, p) in ring.moduli().iter().enumerate() {
        let factor = p.reduce_signed(factor);
        let words = sum.limb_mut(limb).iter_mut().zip(x.limb(limb));
        words.for_each(|(sum, &word)| *sum = p.add(*sum, p.mul(word, factor)));
    }
}
