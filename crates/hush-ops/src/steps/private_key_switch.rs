//! The step `private_key_switch`: from TLWE words to RLWE ciphertexts.

use super::*;

/// The shape of `private_key_switch`: TLWE words become selectors and RGSW ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivateKeySwitch {
    /// The RLWE set.
    pub ring: RingParams,
    /// The number of selectors.
    pub rows: usize,
    /// The number of RGSW ciphertexts.
    pub folds: usize,
}

impl StepKind for PrivateKeySwitch {
    fn opens_queries(&self) -> bool {
        true
    }

    fn work(&self, batch: usize) -> Work {
        let ring = &self.ring;
        let queries = batch as f64;
        let limbs = ring.kept_limbs() + usize::from(ring.dropped_factor() > 1);
        let switched = (self.rows + 2 * self.folds * ring.fold_gadget().digits) as f64;
        let sums = queries * switched * (2 * limbs * ring.degree()) as f64;
        let n = ring.tlwe().map_or(0, |tlwe| tlwe.key_rows()) as f64;
        // For both halves: one inverse transform of the dropped prime, and one forward transform modulo each kept prime.
        let transforms = 2.0 * queries * switched * limbs as f64;
        Work { products: sums * n, sums, transforms, ..Work::default() }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let Self { rows, folds, .. } = *self;
        let &Maker { backend, batch, .. } = make;
        let on = make.open(&self.ring)?;
        let (secrets, keys) = on.key_material()?;
        let keys = backend.open_evaluation_keys(&on.ring, keys)?;
        let rng = &mut Csprng::insecure_from_seed(3);
        let query = encrypt_tlwe_query(&on.context, &secrets, &vec![1; rows], &vec![1; folds], rng);
        let queries = vec![open_tlwe_query(&on.context, rows, folds, &query)?; batch];
        Ok(Box::new(move || {
            backend.private_key_switch(&on.ring, &vec![&keys; batch], &queries, rows, folds).map(drop)
        }))
    }
}

/// Checks that the set has TLWE words, that there is a key for each query, and that queries have words for all rows and digits.
pub(crate) fn check(
    ring: &RingContext,
    keys: usize,
    queries: &[TlweWords],
    rows: usize,
    folds: usize,
) -> Result<PrivateKeySwitch, OpsError> {
    let step = "private_key_switch";
    OpsError::check_shape(step, "TLWE parameters", 1, usize::from(ring.params().tlwe().is_some()))?;
    OpsError::check_shape(step, "clients' keys", queries.len(), keys)?;
    let n = ring.params().tlwe().map_or(0, |tlwe| tlwe.n());
    let leaves = ring.params().leaves(rows, folds);
    OpsError::check_shape(step, "words", leaves.min(ring.params().max_leaves()), leaves)?;
    for query in queries {
        OpsError::check_shape(step, "words of a query's bodies", leaves, query.bodies.len())?;
        OpsError::check_shape(step, "words of a query's masks", leaves * n, query.masks.len())?;
    }
    Ok(PrivateKeySwitch { ring: *ring.params(), rows, folds })
}

/// Switches one query by its client's keys for bottom rows and for top rows. This defines the step.
pub(crate) fn reference(
    context: &RingContext,
    keys: &[Vec<RlweCiphertext>; 2],
    query: &TlweWords,
    rows: usize,
) -> Expanded {
    let digits = context.params().fold_gadget().digits;
    let row = |leaf, is_bottom| private_key_switch(context, keys, query, leaf, is_bottom);
    let folds = (rows..query.bodies.len()).step_by(digits);
    let bits = folds.map(|first| {
        let leaves = first..first + digits;
        let bottom = leaves.clone().map(|leaf| row(leaf, true));
        batch(context.kept(), bottom.chain(leaves.map(|leaf| row(leaf, false))))
    });
    Expanded {
        bits: bits.collect(),
        selectors: batch(context.kept(), (0..rows).map(|leaf| row(leaf, false))),
    }
}
