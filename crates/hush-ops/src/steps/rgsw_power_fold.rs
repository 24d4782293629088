//! The step `rgsw_power_fold` (7h): a single RGSW ciphertext folds the entries to one.

use super::*;

/// The shape of `rgsw_power_fold` (7h).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RgswPowerFold {
    /// The RLWE set.
    pub ring: RingParams,
    /// The entries and their planes.
    pub shape: PackShape,
}

impl StepKind for RgswPowerFold {
    /// Counts the terms, which are rotated words, and the masks, which all queries share.
    fn work(&self, batch: usize) -> Work {
        let Self { ring, shape } = self;
        let queries = batch as f64;
        let folds = shape.planes() * (shape.entries().next_power_of_two() - 1);
        let keys = Work { transforms: queries * 2.0 * ring.kept_limbs() as f64, ..Work::default() };
        let words = queries * (size_of::<u32>() * shape.rows()) as f64;
        let masks = (shape.plaintexts() * poly_bytes(ring)) as f64;
        let products = external_products(ring, queries * folds as f64);
        Work { operand_bytes: words + masks, ..products } + keys
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let shape = self.shape;
        let &Maker { backend, batch, .. } = make;
        let on = make.open(&self.ring)?;
        let mut rng = Csprng::insecure_from_seed(2);
        let polys = || residues(&on.context, shape.plaintexts());
        let chain = backend.open_chain(&on.ring, &shape, ChainPolys { digits: polys(), masks: polys() })?;
        let packed = make.folded(shape.rows(), batch)?;
        let masks: [Poly<Eval>; 2] = [(); 2].map(|()| on.context.kept().expand_uniform(&mut rng));
        let body: [Poly<Coeff>; 2] = [(); 2].map(|()| on.context.kept().expand_uniform(&mut rng));
        Ok(Box::new(move || {
            let bodies = vec![(shape.entries() > 1).then_some(&body); batch];
            let powers = PowerKeys { masks: &masks, bodies: &bodies };
            backend.rgsw_power_fold(&on.ring, &chain, &packed, powers).map(drop)
        }))
    }
}

/// Checks that packed words and RGSW ciphertexts fit one shape and the same number of queries, and that the chain has masks.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    shape: &PackShape,
    has_masks: bool,
    packed: &LweBatch<W>,
    powers: PowerKeys<'_>,
) -> Result<RgswPowerFold, OpsError> {
    let step = "rgsw_power_fold";
    OpsError::check_shape(step, "chains with masks", 1, usize::from(has_masks))?;
    let rows = if shape.entries() > 1 { 2 } else { 0 };
    for &body in powers.bodies {
        let body = body.map_or(&[][..], |body| body);
        OpsError::check_shape(step, "rows of an RGSW ciphertext", rows, body.len())?;
        for poly in powers.masks[..rows].iter().map(Poly::words).chain(body.iter().map(Poly::words)) {
            let what = "words of an RGSW ciphertext's polynomial";
            OpsError::check_shape(step, what, poly_words(ring), poly.len())?;
        }
    }
    check_rows(step, shape, packed, powers.bodies.len())?;
    Ok(RgswPowerFold { ring: *ring.params(), shape: *shape })
}

/// Folds the entries of all queries.
pub(crate) fn reference(
    ring: &RingContext,
    (shape, polys): &(PackShape, ChainPolys),
    packed: &LweBatch,
    powers: PowerKeys<'_>,
) -> RlweBatch {
    let gadget = ring.params().fold_gadget();
    let queries = packed.words.chunks_exact(shape.rows()).zip(powers.bodies);
    let folded = queries.flat_map(|(words, &bodies)| {
        let power = bodies.map(|bodies| rgsw(ring.kept(), powers.masks, bodies));
        (0..shape.planes()).map(move |plane| {
            let entries = entries(ring, shape, polys, words, plane);
            let mut terms = spectrum(ring.kept(), &entries).into_iter().rev();
            let mut sum = terms.next().expect("at least one entry");
            for term in terms {
                let power = power.as_ref().expect("several entries have one");
                sum = external_product(ring.kept(), power, &sum, gadget);
                add(ring.kept(), &mut sum, &term);
            }
            sum
        })
    });
    batch(ring.kept(), folded)
}

/// Returns the RGSW ciphertext of rows `(mask, body)`.
fn rgsw(ring: &Ring, masks: &[Poly<Eval>; 2], bodies: &[Poly<Coeff>; 2]) -> RgswCiphertext {
    let row = |i: usize| vec![RlweCiphertext { a: masks[i].clone(), b: ring.forward(bodies[i].clone()) }];
    RgswCiphertext { bottom: row(0), top: row(1) }
}

/// Returns the ciphertexts of one plane of every entry.
fn entries(
    ring: &RingContext,
    shape: &PackShape,
    polys: &ChainPolys,
    words: &[u32],
    plane: usize,
) -> Vec<RlweCiphertext> {
    let kept = ring.kept();
    let poly = poly_words(ring);
    let columns = (plane..shape.plaintexts()).step_by(shape.planes());
    columns
        .map(|column: usize| RlweCiphertext {
            a: Poly::from_words(polys.masks[column * poly..][..poly].to_vec(), kept.degree()),
            b: kept.forward(lift_words(kept, &words[shape.plaintext_rows(column)])),
        })
        .collect()
}

/// Returns `c_k = 1/T sum_j X^(-2N j k / T) entry_j` for k < T, where T is the least power of two not below the number of entries.
fn spectrum(ring: &Ring, entries: &[RlweCiphertext]) -> Vec<RlweCiphertext> {
    let count = entries.len().next_power_of_two();
    let step = 2 * ring.degree() / count;
    let mut terms = Vec::with_capacity(count);
    for k in 0..count {
        let mut sum = RlweCiphertext { a: ring.zero(), b: ring.zero() };
        for (j, entry) in entries.iter().enumerate() {
            let factor = scaled_monomial(
                ring,
                (2 * ring.degree() - step * (j * k % count)) % (2 * ring.degree()),
                count,
            );
            ring.mul_add(&mut sum.a, &factor, &entry.a);
            ring.mul_add(&mut sum.b, &factor, &entry.b);
        }
        terms.push(sum);
    }
    terms
}

/// Returns `X^power / divisor`.
fn scaled_monomial(ring: &Ring, power: usize, divisor: usize) -> Poly<Eval> {
    let mut poly: Poly<Coeff> = ring.zero();
    for (limb, p) in ring.moduli().iter().enumerate() {
        let inverse = p.inverse(p.reduce(divisor as u64));
        let coefficient = if power < ring.degree() { inverse } else { p.neg(inverse) };
        poly.limb_mut(limb)[power % ring.degree()] = coefficient;
    }
    ring.forward(poly)
}
