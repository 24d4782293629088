//! Hints of which an entry of the pack columns has more than four balanced digits.
//!
//! Under masks of zeros the chain adds nothing up: `x_c = A_e`. So a hint whose only word is `h_(r,j)` has digits
//! `d X^(r - j e)`, `d = digit(v)` for `v = h_(r,j) Q / 2^32 / N`, and the entry of row r for coefficient j is the sum of
//! N - 2 of them, all with one sign. No hint does it for N = 256: (N - 2) 2^23 still fits.

use std::sync::Arc;

use hush_he::{
    entities::ColumnMasks,
    params::{ColumnParams, RingContext},
};
use hush_ops::{OpsError, contract::ColumnOps};

use super::Kept;

/// Where the entry is that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// In the one row that the hint has.
    Row,
    /// In rows behind those of the hint, whose bytes nobody asks for.
    ///
    /// Words at row 0, coefficient 0 and row N/4, coefficient N/4 meet in one place of the digits, with a sign that depends
    /// on e modulo 8: 2v for e = 1, 0 for e = 5. Linearly that leaves the rows N/2 and 3N/4 without entries; but 2v, above
    /// Q / 2, becomes 2v - Q, whose part of N/4 times Q is in all four rows, and in the first two meets 4v, which is Q.
    Behind,
}

/// A hint that no backend may accept.
pub struct ChainMisfit {
    misfit: Misfit,
    context: Arc<RingContext>,
    hint: Vec<u32>,
}

impl ChainMisfit {
    /// Creates a hint for `params`, whose degree is to be 2048.
    pub fn new(params: ColumnParams, misfit: Misfit) -> Self {
        let context = Arc::new(RingContext::new(*params.ring()));
        let degree = params.ring().degree();
        let hint = match misfit {
            Misfit::Row => {
                let mut hint = vec![0; degree];
                hint[3] = word_of(&context, 0.4..0.5);
                hint
            }
            Misfit::Behind => {
                let mut hint = vec![0; (degree / 4 + 1) * degree];
                let word = word_of(&context, 0.255..0.265);
                (hint[0], hint[degree / 4 * degree + degree / 4]) = (word, word);
                hint
            }
        };
        Self { misfit, context, hint }
    }

    /// Checks that `backend` refuses the hint for its entry.
    #[track_caller]
    pub fn check<B: ColumnOps>(&self, backend: &B) {
        let ring = backend.open_ring(self.context.clone()).expect("the backend holds the tables");
        let masks = ColumnMasks::insecure_zeros(&self.context);
        let plan = backend.open_masks(&ring, &masks).expect("the backend holds the masks");
        let refused = backend.chain_hint(&ring, &plan, &[&backend.kept(&self.hint)]).err();
        assert_eq!(refused, Some(OpsError::PackColumns), "{:?}", self.misfit);
    }
}

/// Returns a word h for which `h Q / 2^32 / N` modulo Q is a part of Q in `range`.
fn word_of(context: &RingContext, range: std::ops::Range<f64>) -> u32 {
    let q = context.kept().rns().product();
    let degree = context.kept().degree();
    for word in 1u32.. {
        let mut lifted = (u128::from(word) * q + (1 << 31)) >> 32;
        for _ in 0..degree.ilog2() {
            lifted = if lifted.is_multiple_of(2) { lifted / 2 } else { (lifted + q) / 2 };
        }
        if range.contains(&(lifted as f64 / q as f64)) {
            return word;
        }
    }
    unreachable!("every tenth or hundredth")
}
