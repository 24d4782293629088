//! (6) Fold the first dimension of ring elements.

use hush_math::modulus::Modulus;

use crate::{contract::RLWE_POLYS, ntt_tiling::NttTiledDb};

/// For every query `b`, `out[b][column][poly][limb][slot] = sum_k db[k][column] * selectors[b][k][poly]` at every limb
/// and slot, modulo the limb's prime. The selectors of a query are canonical residues in the order
/// `[row k][poly][limb][slot]`, where the polynomials are a, b of an RLWE ciphertext in NTT form.
///
/// # Panics
/// If there is not one modulus a limb, or a query has not a selector a row.
pub fn rlwe_fold(moduli: &[Modulus], db: &NttTiledDb, selectors: &[&[u32]]) -> Vec<Vec<u32>> {
    selectors.iter().map(|query| fold_query(moduli, db, query)).collect()
}

fn fold_query(moduli: &[Modulus], db: &NttTiledDb, selectors: &[u32]) -> Vec<u32> {
    let tiling = db.tiling();
    let mut out = Vec::with_capacity(tiling.columns() * RLWE_POLYS * tiling.poly_words());
    for column in 0..tiling.columns() {
        for poly in 0..RLWE_POLYS {
            for (limb, modulus) in moduli.iter().enumerate() {
                for slot in 0..tiling.degree() {
                    let mut sum = 0;
                    for k in 0..tiling.rows() {
                        let word = ((k * RLWE_POLYS + poly) * tiling.limbs() + limb) * tiling.degree() + slot;
                        sum = modulus.add(sum, modulus.mul(db.at(limb, slot, k, column), selectors[word]));
                    }
                    out.push(sum);
                }
            }
        }
    }
    out
}
