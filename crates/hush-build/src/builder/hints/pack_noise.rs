//! The noise of pack columns, checked as they are made.

use hush_he::params::RingParams;
use hush_ops::contract::{BALANCED_HALVES, PACK_BYTES};

/// Squares of a row above what is expected that are refused: twice the noise. Rows of most tables are within some per cent. Where
/// all other rows of a plaintext are zeros, both chains have the same digits, and the row has twice what is expected.
const MARGIN: f64 = 4.0;

/// Returns whether every row of pack columns (4 N bytes each) has the squares that [`hush_he::params::ColumnNoise`] reckons
/// with, or fewer: the errors of a rotation key grow by their root. Digits are as good as random for any table that does not
/// know the masks to its advantage; this does not have to be believed.
pub(in crate::builder) fn is_bounded(ring: &RingParams, columns: &[u8]) -> bool {
    let degree = ring.degree();
    let digit = 4f64.powi(ring.fold_gadget().width as i32) / 12.0;
    let limit = MARGIN * (degree * degree) as f64 * digit;
    columns.chunks_exact(PACK_BYTES * degree).all(|row| squares(row) <= limit)
}

/// Returns the sum of the squares of a row's entries.
fn squares(row: &[u8]) -> f64 {
    let entry = |bytes: &[u8; PACK_BYTES]| {
        let digits = u32::from_le_bytes(*bytes) ^ BALANCED_HALVES;
        f64::from(digits) - f64::from(BALANCED_HALVES)
    };
    // Several sums at once, which the compiler makes vectors of.
    let mut sums = [0.0; 8];
    for entries in row.as_chunks::<PACK_BYTES>().0.chunks(sums.len()) {
        for (sum, bytes) in sums.iter_mut().zip(entries) {
            *sum += entry(bytes).powi(2);
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use hush_he::params::INSECURE_COLPACK_N256;

    use super::*;

    #[test]
    fn rows_are_measured_by_their_entries() {
        let entries = [0i64, 1, -1, 127, 128, -128, -129, 0x7f7f_7f7f, -0x8080_8080, 1 << 30];
        let bytes: Vec<u8> = entries
            .iter()
            .flat_map(|entry| (((entry + i64::from(BALANCED_HALVES)) as u32) ^ BALANCED_HALVES).to_le_bytes())
            .collect();
        let expected: f64 = entries.iter().map(|&entry| (entry as f64).powi(2)).sum();
        assert_eq!(squares(&bytes), expected);
    }

    #[test]
    fn one_row_that_is_too_large_is_found() {
        let ring = INSECURE_COLPACK_N256.ring();
        let row = |entry: i64| {
            (((entry + i64::from(BALANCED_HALVES)) as u32) ^ BALANCED_HALVES).to_le_bytes().repeat(256)
        };
        // sqrt(N) times a digit's deviation, 1.9 times and 2.1 times that.
        let expected = (16.0 * 2f64.powi(24) / 12f64.sqrt()) as i64;
        assert!(is_bounded(ring, &[row(0), row(expected * 19 / 10), row(-expected)].concat()));
        assert!(!is_bounded(ring, &[row(0), row(expected * 21 / 10), row(0)].concat()));
    }
}
