//! The keys that travel with a query of column packing.

use hush_math::poly::{Coeff, Poly};

/// The keys under the secret of one query, good for its answer alone. Their masks are public ([`super::ColumnMasks`]).
///
/// Source: InsPIRe (its packing, InspiRING), with the keys' products as columns of a fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnKeys {
    /// y = -s w + e + g s(X^5). Its coefficients are fractions of Q: multiples of `2^(64 - bits)` modulo 2^64.
    pub rotation: Vec<u64>,
    /// The key z = -s v + e + g s(X^-1).
    pub conjugation: Poly<Coeff>,
    /// The RGSW ciphertext of the power of X that selects the entry; `None` in protocols that do not fold. It holds the halves b of
    /// two rows: the row multiplied by the digit of a, then the row multiplied by the digit of b.
    pub power: Option<[Poly<Coeff>; 2]>,
}
