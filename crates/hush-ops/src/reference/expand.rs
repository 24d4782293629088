//! Expansion of a query.

use hush_he::{
    algorithms::{drop_primes, key_switch, substitute},
    entities::{EvaluationKeys, RlweCiphertext},
    params::RingContext,
};
use hush_math::{
    poly::{Eval, Poly},
    ring::Ring,
};

use super::ciphertexts::{add, batch, sub};
use crate::contract::{Expanded, RlweBatch};

/// Tree, bottom rows, drop: see [`crate::contract::RingOps::expand`].
pub(super) fn expand(
    context: &RingContext,
    keys: &EvaluationKeys,
    query: &RlweCiphertext,
    rows: usize,
    folds: usize,
) -> Expanded {
    let gadget = context.params().fold_gadget();
    let leaves = tree(context, keys, query, context.params().leaves(rows, folds));
    let dropped = |ciphertexts: Vec<RlweCiphertext>| -> RlweBatch {
        batch(context.kept(), ciphertexts.into_iter().map(|ciphertext| drop_ciphertext(context, ciphertext)))
    };
    let bits = leaves[rows..].chunks_exact(gadget.digits).map(|top| {
        let bottom = top.iter().map(|leaf| bottom_row(context, keys, leaf));
        dropped(bottom.chain(top.iter().cloned()).collect())
    });
    Expanded { bits: bits.collect(), selectors: dropped(leaves[..rows].to_vec()) }
}

/// The first `leaves` leaves, modulo Q_e.
pub fn tree(
    context: &RingContext,
    keys: &EvaluationKeys,
    query: &RlweCiphertext,
    leaves: usize,
) -> Vec<RlweCiphertext> {
    let (params, ring) = (context.params(), context.full());
    let mut nodes = vec![query.clone()];
    for (level, (gadget, key)) in params.levels().iter().zip(&keys.levels).enumerate() {
        // Nodes of the next level that are above a wanted leaf.
        let needed = leaves.div_ceil(params.max_leaves() >> (level + 1));
        let monomial = inverse_monomial(ring, 1 << level);
        let mut children = Vec::with_capacity(needed + 1);
        for node in nodes {
            let image = substitute(ring, &node, params.level_exponent(level), key, *gadget);
            let mut even = node.clone();
            add(ring, &mut even, &image);
            children.push(even);
            if children.len() < needed {
                let mut odd = node;
                sub(ring, &mut odd, &image);
                ring.mul(&mut odd.a, &monomial);
                ring.mul(&mut odd.b, &monomial);
                children.push(odd);
            }
        }
        nodes = children;
    }
    nodes
}

/// `X^-power`, which is `-X^(N - power)`.
fn inverse_monomial(ring: &Ring, power: usize) -> Poly<Eval> {
    let mut coefficients = vec![0; ring.degree()];
    coefficients[ring.degree() - power] = u32::MAX;
    ring.forward(ring.from_signed(&coefficients))
}

/// From a leaf of phase m, a row of phase `m s`: `(a', b') = KS(a)` under the key for s^2, `a' += b`.
fn bottom_row(context: &RingContext, keys: &EvaluationKeys, leaf: &RlweCiphertext) -> RlweCiphertext {
    let ring = context.full();
    let mut row = key_switch(ring, &leaf.a, &keys.square, context.params().square_gadget());
    ring.add(&mut row.a, &leaf.b);
    row
}

fn drop_ciphertext(context: &RingContext, x: RlweCiphertext) -> RlweCiphertext {
    let drop = |half| drop_primes(context.full(), context.kept(), half);
    RlweCiphertext { a: drop(x.a), b: drop(x.b) }
}
