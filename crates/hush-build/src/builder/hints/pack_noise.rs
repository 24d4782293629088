//! The noise of pack columns, checked as soon as they are computed.

use hush_he::params::RingParams;
use hush_ops::contract::{BALANCED_HALVES, PACK_BYTES};

/// A row is refused if the sum of its squares exceeds the expected sum by this factor: twice the noise. Rows of most tables are
/// within some per cent of it. If all other rows of a plaintext are zeros, both chains have the same digits, and the sum is twice
/// the expected one.
const MARGIN: f64 = 4.0;

/// Returns whether in every row of pack columns (4 N bytes each) the sum of squares is at most `MARGIN` times the sum that
/// [`hush_he::params::ColumnNoise`] expects. A rotation key's error grows with the square root of this sum. The digits are as
/// good as random unless a table was made with knowledge of the masks; the check makes that assumption unnecessary.
pub(in crate::builder) fn is_bounded(ring: &RingParams, columns: &[u8]) -> bool {
    let degree = ring.degree();
    let digit = 4f64.powi(ring.fold_gadget().width as i32) / 12.0;
    let limit = MARGIN * (degree * degree) as f64 * digit;
    columns.chunks_exact(PACK_BYTES * degree).all(|row| squares(row) <= limit)
}

/// Returns the sum of the squares of a row's entries.
fn squares(row: &[u8]) -> f64 {
    // Several independent sums, so that the compiler can use vector instructions.
    let mut sums = [0.0; 8];
    for entries in row.as_chunks::<PACK_BYTES>().0.chunks(sums.len()) {
        for (sum, bytes) in sums.iter_mut().zip(entries) {
            let digits = u32::from_le_bytes(*bytes) ^ BALANCED_HALVES;
            let entry = f64::from(digits) - f64::from(BALANCED_HALVES);
            *sum += entry.powi(2);
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
        // The expected entry is sqrt(N) times the deviation of a digit. The entries are 1.9 times and 2.1 times that.
        let expected = (16.0 * 2f64.powi(24) / 12f64.sqrt()) as i64;
        assert!(is_bounded(ring, &[row(0), row(expected * 19 / 10), row(-expected)].concat()));
        assert!(!is_bounded(ring, &[row(0), row(expected * 21 / 10), row(0)].concat()));
    }
}
