//! The work of a step as counts, and the counts that several steps share.

use std::ops::Add;

use hush_he::params::RingParams;

use crate::{ntt_tiling::NttTiling, tiling::Tiling};

/// The work of a step, as counts of operations and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// The bytes read of databases and hints, once for a batch.
    pub bytes: f64,
    /// The bytes of all other words and polynomials that are read or written, each counted once.
    pub operand_bytes: f64,
    /// The multiply-adds of an s8 and a word modulo 2^32.
    pub multiply_adds: f64,
    /// The products of words modulo a prime, without those of transforms.
    pub products: f64,
    /// The products with a word of a database as a factor, which a matrix unit can compute. `products` includes them.
    pub database_products: f64,
    /// The sums of `products`, each of which is reduced once.
    pub sums: f64,
    /// The transforms (NTT) of a polynomial modulo one prime.
    pub transforms: f64,
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            operand_bytes: self.operand_bytes + other.operand_bytes,
            multiply_adds: self.multiply_adds + other.multiply_adds,
            products: self.products + other.products,
            database_products: self.database_products + other.database_products,
            sums: self.sums + other.sums,
            transforms: self.transforms + other.transforms,
        }
    }
}

/// Returns the work of a fold of `db` by `vectors` vectors.
pub(super) fn fold(db: Tiling, vectors: f64) -> Work {
    let multiply_adds = vectors * db.rows() as f64 * db.cols() as f64;
    let operand_bytes = vectors * (size_of::<u32>() * (db.rows() + db.cols())) as f64;
    Work { bytes: db.bytes() as f64, operand_bytes, multiply_adds, ..Work::default() }
}

/// Returns the work of external products modulo Q_1. Both halves are decomposed, and each half of the result is a sum of 2 l
/// products in every slot.
pub(super) fn external_products(ring: &RingParams, count: f64) -> Work {
    let limbs = ring.kept_limbs();
    let digits = ring.fold_gadget().digits;
    let sums = count * (2 * limbs * ring.degree()) as f64;
    Work {
        // Two ciphertexts are read, one is written.
        operand_bytes: ciphertext_bytes(ring, 3.0 * count),
        transforms: count * 2.0 * switch_transforms(limbs, digits) as f64,
        products: sums * (2 * digits) as f64,
        sums,
        ..Work::default()
    }
}

/// Returns the transforms of a polynomial that is decomposed into `digits` digits: an inverse one for each of `limbs` limbs, and
/// for every digit a forward one for each limb.
pub(super) fn switch_transforms(limbs: usize, digits: usize) -> usize {
    limbs * (1 + digits)
}

/// Returns the work of folding `db`, each entry times both halves of a selector, for `queries` queries.
pub(super) fn selected(db: NttTiling, queries: f64) -> Work {
    let sums = 2.0 * queries * (db.columns() * db.poly_words()) as f64;
    let products = sums * db.rows() as f64;
    let ciphertexts = queries * (db.rows() + db.columns()) as f64;
    let operand_bytes = ciphertexts * (2 * size_of::<u32>() * db.poly_words()) as f64;
    Work { operand_bytes, products, database_products: products, sums, ..Work::default() }
}

/// Returns the work of switching polynomials to the widths of an answer: an inverse transform of each limb, and limbs - 1
/// products a coefficient to combine the limbs.
pub(super) fn switches(ring: &RingParams, polys: f64) -> Work {
    let products = polys * ((ring.kept_limbs() - 1) * ring.degree()) as f64;
    Work {
        operand_bytes: polys * (poly_bytes(ring) + size_of::<u32>() * ring.degree()) as f64,
        transforms: polys * ring.kept_limbs() as f64,
        products,
        sums: products,
        ..Work::default()
    }
}

/// Returns the bytes of `count` ciphertexts.
pub(super) fn ciphertext_bytes(ring: &RingParams, count: f64) -> f64 {
    count * (2 * poly_bytes(ring)) as f64
}

/// Returns the bytes of a polynomial modulo Q_1.
pub fn poly_bytes(ring: &RingParams) -> usize {
    size_of::<u32>() * ring.kept_limbs() * ring.degree()
}
