//! The step `chain_hint`: a hint becomes pack columns, by the chain of key switches applied to masks alone.

use hush_he::{
    algorithms::{ROTATION, decompose},
    entities::ColumnMasks,
    params::RingContext,
};
use hush_math::{
    poly::{Eval, Poly},
    ring::{Ring, slot_permutation},
};

use crate::{
    OpsError,
    contract::{BALANCED_HALVES, ChainPolys, ChainedHint, PACK_BYTES, poly_words},
    pack_shape::PackShape,
};

/// Checks that a hint of `words` words has 1 to N rows of N words, and that the gadget has one digit.
pub(crate) fn check(ring: &RingContext, words: usize) -> Result<(), OpsError> {
    let step = "chain_hint";
    let degree = ring.kept().degree();
    OpsError::check_shape(step, "digits of the gadget", 1, ring.params().fold_gadget().digits)?;
    let rows = (words / degree).clamp(1, degree);
    OpsError::check_shape(step, "words of the hint", rows * degree, words)
}

/// Checks that every plaintext has its polynomials, that words are canonical, and that there are enough powers of X for the
/// entries.
pub(crate) fn check_polys(ring: &RingContext, shape: &PackShape, polys: &ChainPolys) -> Result<(), OpsError> {
    let step = "open_chain";
    OpsError::check_shape(step, "degree", ring.kept().degree(), shape.degree())?;
    let entries = shape.entries();
    let words = shape.plaintexts() * poly_words(ring);
    OpsError::check_shape(step, "words of digits", words, polys.digits.len())?;
    if !polys.masks.is_empty() {
        OpsError::check_shape(step, "entries", entries.min(2 * shape.degree()), entries)?;
        OpsError::check_shape(step, "words of masks", words, polys.masks.len())?;
    }
    residues(ring, step, "words of digits below their primes", &polys.digits)?;
    residues(ring, step, "words of masks below their primes", &polys.masks)
}

/// Checks that all words of polynomials are below their primes.
///
/// # Errors
/// [`OpsError::Shape`] for `what` if some words are not, with the number of those that are.
fn residues(
    ring: &RingContext,
    step: &'static str,
    what: &'static str,
    words: &[u32],
) -> Result<(), OpsError> {
    let limbs = words.chunks(ring.kept().degree()).zip(ring.kept().moduli().iter().cycle());
    let canonical = limbs.map(|(limb, p)| limb.iter().filter(|&&word| word < p.value()).count()).sum();
    OpsError::check_shape(step, what, words.len(), canonical)
}

/// Switches the hint of one plaintext.
///
/// # Errors
/// [`OpsError::PackColumns`] if an entry does not fit into [`PACK_BYTES`] balanced digits.
pub(crate) fn reference(
    context: &RingContext,
    masks: &ColumnMasks,
    hint: &[u32],
) -> Result<ChainedHint, OpsError> {
    let ring = context.kept();
    let gadget = context.params().fold_gadget();
    let images = Images::new(ring, hint);
    let exponents = exponents(ring.degree());
    let last = exponents.len() - 1;
    let mut sums = exponents[last].map(|exponent| images.image(ring, exponent));
    let mut switched = Switched::new(ring);
    for exponents in exponents[..last].iter().rev() {
        for (sum, &exponent) in sums.iter_mut().zip(exponents) {
            let digit = decompose(ring, sum, gadget).remove(0);
            switched.record(ring, &digit, exponent);
            *sum = images.image(ring, exponent);
            ring.mul_add(sum, &digit, &ring.automorphism(masks.rotation(), exponent));
        }
    }
    let [mut mask, conjugate] = sums;
    let digit = decompose(ring, &conjugate, gadget).remove(0);
    ring.mul_add(&mut mask, &digit, masks.conjugation());
    let columns = balanced_bytes(&switched.matrix(ring), hint.len())?;
    Ok(ChainedHint { columns, digit: digit.into_words(), mask: mask.into_words() })
}

/// Returns the odd numbers modulo 2N as pairs `[g_k, -g_k]`, g_k = 5^k, k < N/2.
fn exponents(degree: usize) -> Vec<[usize; 2]> {
    let powers = std::iter::successors(Some(1), |power| Some(power * ROTATION % (2 * degree)));
    powers.take(degree / 2).map(|power| [power, 2 * degree - power]).collect()
}

/// The hint's polynomials under all automorphisms: for each limb an N x N matrix B with
/// `A_e[v] = B[slot of e e_v][v]`, where slot v holds values at psi^(e_v).
struct Images {
    values: Vec<Vec<u32>>,
}

impl Images {
    fn new(ring: &Ring, hint: &[u32]) -> Self {
        let degree = ring.degree();
        let q = ring.rns().product();
        // round(h Q / 2^32)
        let lifted: Vec<u128> = hint.iter().map(|&h| (u128::from(h) * q + (1 << 31)) >> 32).collect();
        let values = ring.plans().iter().enumerate().map(|(limb, plan)| {
            let p = plan.modulus();
            let mut values = vec![0; degree * degree];
            for (row, values) in lifted.chunks_exact(degree).zip(values.chunks_exact_mut(degree)) {
                for (j, &h) in row.iter().enumerate() {
                    // X^-j is -X^(N - j).
                    let residue = ring.rns().reduce(h, limb);
                    values[(degree - j) % degree] = if j == 0 { residue } else { p.neg(residue) };
                }
                plan.forward(values);
            }
            let mut values = transposed(&values, degree);
            let (scale, _) = plan.inverse_scale();
            for values in values.chunks_exact_mut(degree) {
                plan.forward(values);
                values.iter_mut().for_each(|value| *value = p.mul(*value, scale));
            }
            values
        });
        Self { values: values.collect() }
    }

    /// Returns A_e for e = `exponent`.
    fn image(&self, ring: &Ring, exponent: usize) -> Poly<Eval> {
        let from = slot_permutation(ring.degree(), exponent);
        let mut words = Vec::with_capacity(self.values.len() * ring.degree());
        for values in &self.values {
            words.extend((0..ring.degree()).map(|v| values[from[v] as usize * ring.degree() + v]));
        }
        Poly::from_words(words, ring.degree())
    }
}

/// The sum of all `t y(X^e)` as a matrix over the slots of y: for each limb N x N words, `[slot of the sum][slot of y]`.
struct Switched {
    factors: Vec<Vec<u32>>,
}

impl Switched {
    fn new(ring: &Ring) -> Self {
        Self { factors: vec![vec![0; ring.degree() * ring.degree()]; ring.limbs()] }
    }

    /// Adds `digit y(X^exponent)`. Two exponents never set the same entry, so it is stored, not added.
    fn record(&mut self, ring: &Ring, digit: &Poly<Eval>, exponent: usize) {
        let from = slot_permutation(ring.degree(), exponent);
        for (limb, factors) in self.factors.iter_mut().enumerate() {
            for (v, &digit) in digit.limb(limb).iter().enumerate() {
                factors[v * ring.degree() + from[v] as usize] = digit;
            }
        }
    }

    /// Returns the matrix over coefficients, as centred integers modulo Q:
    /// `[coefficient of the sum][coefficient of y]`.
    fn matrix(self, ring: &Ring) -> Vec<i128> {
        let degree = ring.degree();
        let residues: Vec<Vec<u32>> = self
            .factors
            .into_iter()
            .zip(ring.plans())
            .map(|(mut factors, plan)| {
                let p = plan.modulus();
                for row in factors.chunks_exact_mut(degree) {
                    // This is the transposed evaluation: sum_u row[u] psi^(e_u c) is N times coefficient -c of the inverse
                    // transform.
                    plan.inverse(row);
                    let values = (0..degree).map(|c| {
                        let value = if c == 0 { row[0] } else { p.neg(row[degree - c]) };
                        p.mul(value, p.reduce(degree as u64))
                    });
                    let values: Vec<u32> = values.collect();
                    row.copy_from_slice(&values);
                }
                let mut columns = transposed(&factors, degree);
                columns.chunks_exact_mut(degree).for_each(|column| plan.inverse(column));
                transposed(&columns, degree)
            })
            .collect();
        (0..degree * degree).map(|at| ring.rns().lift_centred(|limb| residues[limb][at])).collect()
    }
}

/// Returns the balanced digits of the first `count` entries, four bytes each.
///
/// # Errors
/// [`OpsError::PackColumns`] if any of the entries does not fit.
fn balanced_bytes(entries: &[i128], count: usize) -> Result<Vec<u8>, OpsError> {
    let lowest = -i128::from(BALANCED_HALVES);
    let highest = i128::from(u32::MAX) + lowest;
    let mut bytes = Vec::with_capacity(PACK_BYTES * count);
    for &entry in entries {
        if !(lowest..=highest).contains(&entry) {
            return Err(OpsError::PackColumns);
        }
    }
    for &entry in &entries[..count] {
        let digits = ((entry - lowest) as u32) ^ BALANCED_HALVES;
        bytes.extend(digits.to_le_bytes());
    }
    Ok(bytes)
}

fn transposed(matrix: &[u32], degree: usize) -> Vec<u32> {
    (0..degree * degree).map(|at| matrix[at % degree * degree + at / degree]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_bytes_are_digits_in_base_256() {
        let entries = [0, 1, -1, 127, 128, -128, -129, 0x7f7f_7f7f, -0x8080_8080, 1 << 30];
        let bytes = balanced_bytes(&entries, entries.len()).unwrap();
        for (digits, entry) in bytes.chunks_exact(4).zip(entries) {
            let sum: i128 = (0..4).map(|i| i128::from(digits[i] as i8) << (8 * i)).sum();
            assert_eq!(sum, entry);
        }
        assert_eq!(balanced_bytes(&[0x7f7f_7f80], 0), Err(OpsError::PackColumns));
        assert_eq!(balanced_bytes(&[-0x8080_8081], 1), Err(OpsError::PackColumns));
    }
}
