//! The keys that travel with a query of column packing.

use hush_math::poly::{Coeff, Poly};

/// Keys under the secret of one query, good for its answer alone. Their masks are public ([`super::ColumnMasks`]).
///
/// Source: InsPIRe (its packing, InspiRING), put into columns of a fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnKeys {
    /// y = -s w + e + g s(X^5), its coefficients as fractions of Q: multiples of `2^(64 - bits)` modulo 2^64.
    pub rotation: Vec<u64>,
    /// z = -s v + e + g s(X^-1).
    pub conjugation: Poly<Coeff>,
    /// The RGSW ciphertext of the power of X that selects the entry, in protocols that fold: the halves b of the row
    /// that meets the digit of a, and of the one that meets the digit of b.
    pub power: Option<[Poly<Coeff>; 2]>,
}
