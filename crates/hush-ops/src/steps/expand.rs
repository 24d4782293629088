//! The step `expand`: expansion of a query.

use super::*;

/// The shape of `expand`: a packed query becomes selectors and RGSW ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expand {
    /// The RLWE set.
    pub ring: RingParams,
    /// The number of selectors.
    pub rows: usize,
    /// The number of RGSW ciphertexts.
    pub folds: usize,
}

impl StepKind for Expand {
    fn opens_queries(&self) -> bool {
        true
    }

    fn work(&self, batch: usize) -> Work {
        let Self { ring, rows, folds } = self;
        let queries = batch as f64;
        let limbs = ring.kept_limbs() + usize::from(ring.dropped_factor() > 1);
        let leaves = ring.leaves(*rows, *folds);
        // Counted from the leaves, level j has a node, and so a key switch, for every 2^(j + 1) leaves.
        let switch =
            |(level, digits)| leaves.div_ceil(1usize << (level + 1)) * switch_transforms(limbs, digits);
        let digits = ring.levels().iter().rev().map(|gadget| gadget.digits).enumerate();
        let bottoms =
            folds * ring.fold_gadget().digits * switch_transforms(limbs, ring.square_gadget().digits);
        let subs = digits.map(switch).sum::<usize>();
        Work {
            operand_bytes: ciphertext_bytes(ring, queries * *rows as f64),
            transforms: queries * (subs + bottoms) as f64,
            ..Work::default()
        }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let Self { rows, folds, .. } = *self;
        let &Maker { backend, batch, .. } = make;
        let on = make.open(&self.ring)?;
        let (secrets, keys) = on.key_material()?;
        let keys = backend.open_evaluation_keys(&on.ring, keys)?;
        let rng = &mut Csprng::insecure_from_seed(3);
        let query = encrypt_ring_query(&on.context, &secrets, &vec![1; rows], &vec![1; folds], rng);
        let queries = vec![open_ring_query(&on.context, rows, folds, &query)?; batch];
        Ok(Box::new(move || backend.expand(&on.ring, &vec![&keys; batch], &queries, rows, folds).map(drop)))
    }
}

/// Checks that there is a key for each query, that queries are modulo Q_e, and that the tree has enough leaves.
pub(crate) fn check(
    ring: &RingContext,
    keys: usize,
    queries: &[RlweCiphertext],
    rows: usize,
    folds: usize,
) -> Result<Expand, OpsError> {
    let step = "expand";
    OpsError::check_shape(step, "clients' keys", queries.len(), keys)?;
    let words = ring.full().limbs() * ring.full().degree();
    for query in queries {
        OpsError::check_shape(step, "words of a", words, query.a.words().len())?;
        OpsError::check_shape(step, "words of b", words, query.b.words().len())?;
    }
    OpsError::check_shape(step, "rows", rows.max(1), rows)?;
    let leaves = ring.params().leaves(rows, folds);
    OpsError::check_shape(step, "leaves", leaves.min(ring.params().max_leaves()), leaves)?;
    Ok(Expand { ring: *ring.params(), rows, folds })
}

/// Expands a query: tree, bottom rows, drop.
pub(crate) fn reference(
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

/// Returns the first `leaves` leaves of the tree, modulo Q_e.
pub fn tree(
    context: &RingContext,
    keys: &EvaluationKeys,
    query: &RlweCiphertext,
    leaves: usize,
) -> Vec<RlweCiphertext> {
    let params = context.params();
    let ring = context.full();
    let mut nodes = vec![query.clone()];
    for (level, (gadget, key)) in params.levels().iter().zip(&keys.levels).enumerate() {
        // The number of nodes of the next level that are above a wanted leaf.
        let needed = leaves.div_ceil(params.max_leaves() >> (level + 1));
        let monomial = ring.inverse_monomial(1 << level);
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

/// Makes a row of phase `m s` from a leaf of phase m: `(a', b') = KS(a)` under the key for s^2, `a' += b`.
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
