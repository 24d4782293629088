//! TLWE words to RLWE ciphertexts.

use hush_he::{
    algorithms::drop_primes,
    entities::{RlweCiphertext, TlweWords},
    params::{RingContext, Tlwe},
};
use hush_math::{
    poly::{Eval, Poly},
    ring::Ring,
};

use super::ciphertexts::batch;
use crate::contract::{Expanded, RlweBatch};

/// As [`crate::contract::TfheOps::private_key_switch`], for one query and the keys of its client, for bottom rows and for top rows.
pub fn private_key_switch(
    context: &RingContext,
    keys: &[Vec<RlweCiphertext>; 2],
    query: &TlweWords,
    rows: usize,
) -> Expanded {
    let digits = context.params().fold_gadget().digits;
    let dropped = |ciphertexts: Vec<RlweCiphertext>| -> RlweBatch {
        let drop = |half| drop_primes(context.full(), context.kept(), half);
        batch(context.kept(), ciphertexts.into_iter().map(|x| RlweCiphertext { a: drop(x.a), b: drop(x.b) }))
    };
    let row = |leaf, is_bottom| switched(context, keys, query, leaf, is_bottom);
    let folds = (rows..query.bodies.len()).step_by(digits);
    let bits = folds.map(|first| {
        let leaves = first..first + digits;
        let bottom = leaves.clone().map(|leaf| row(leaf, true));
        dropped(bottom.chain(leaves.map(|leaf| row(leaf, false))).collect())
    });
    Expanded { bits: bits.collect(), selectors: dropped((0..rows).map(|leaf| row(leaf, false)).collect()) }
}

/// A row of phase m, or of phase m s, modulo Q_e.
fn switched(
    context: &RingContext,
    [bottom, top]: &[Vec<RlweCiphertext>; 2],
    query: &TlweWords,
    leaf: usize,
    is_bottom: bool,
) -> RlweCiphertext {
    let (ring, tlwe) = (context.full(), context.params().tlwe().expect("a set of TLWE words"));
    let key = if is_bottom { bottom } else { top };
    let mut sum = RlweCiphertext { a: ring.zero(), b: ring.zero() };
    let masks = query.masks[leaf * tlwe.n()..][..tlwe.n()].iter();
    for (digit, key) in masks.flat_map(|&word| tlwe.digits(word)).zip(key) {
        add_times(ring, &mut sum.a, digit, &key.a);
        add_times(ring, &mut sum.b, digit, &key.b);
    }
    let body = if is_bottom { &mut sum.a } else { &mut sum.b };
    for (limb, p) in ring.moduli().iter().enumerate() {
        let value = constant(ring, tlwe, query.bodies[leaf], limb);
        // A constant is the same in every slot.
        body.limb_mut(limb).iter_mut().for_each(|word| *word = p.add(*word, value));
    }
    sum
}

/// What a word is worth modulo a prime: the sum of its digits times their units.
pub fn constant(ring: &Ring, tlwe: &Tlwe, word: u32, limb: usize) -> u32 {
    let (p, rns) = (ring.moduli()[limb], ring.rns());
    let terms = (0..).zip(tlwe.digits(word));
    terms.fold(0, |sum, (k, digit)| {
        let unit = rns.reduce(tlwe.unit(rns.product(), k), limb);
        p.add(sum, p.mul(unit, p.reduce_signed(digit)))
    })
}

/// `sum += factor x`.
fn add_times(ring: &Ring, sum: &mut Poly<Eval>, factor: i64, x: &Poly<Eval>) {
    for (limb, p) in ring.moduli().iter().enumerate() {
        let factor = p.reduce_signed(factor);
        let words = sum.limb_mut(limb).iter_mut().zip(x.limb(limb));
        words.for_each(|(sum, &word)| *sum = p.add(*sum, p.mul(word, factor)));
    }
}
