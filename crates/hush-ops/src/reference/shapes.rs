//! What the steps refuse: one place, so that all backends refuse alike.

use std::ops::Range;

use hush_he::entities::PublicMatrix;
use hush_math::modulus::Modulus;

use crate::{
    OpsError,
    contract::LweQueries,
    ntt_tiling::NttTiling,
    reference::rlwe_fold::RLWE_POLYS,
    tiling::{GROUP_ROWS, Tiling},
};

/// Checks that `queries` are whole queries of one word a database column.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_fold(tiling: Tiling, queries: &LweQueries) -> Result<(), OpsError> {
    let step = "lwe_fold";
    OpsError::check_shape(step, "query length", tiling.cols(), queries.cols)?;
    OpsError::check_shape(step, "words of all queries", queries.batch() * queries.cols, queries.words.len())
}

/// Checks that A has a row for every database column, and that `rows` starts at a group and ends at one or at the
/// last row.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_hint(tiling: Tiling, a: &PublicMatrix, rows: &Range<usize>) -> Result<(), OpsError> {
    let step = "lwe_hint";
    OpsError::check_shape(step, "rows of A", tiling.cols(), a.cols())?;
    let end = rows.end.min(tiling.rows());
    OpsError::check_shape(step, "end of the row range", end, rows.end)?;
    let start = rows.start.min(end);
    OpsError::check_shape(step, "start of the row range", start / GROUP_ROWS * GROUP_ROWS, rows.start)?;
    let whole = if end == tiling.rows() { end } else { end / GROUP_ROWS * GROUP_ROWS };
    OpsError::check_shape(step, "end of the row range", whole, rows.end)
}

/// Checks that `words` words are whole columns of `items` words; returns the number of columns.
///
/// # Errors
/// [`OpsError::Shape`] if not, or if `digits` is not 1..=4.
pub fn check_reinterpret(words: usize, items: usize, digits: usize) -> Result<usize, OpsError> {
    let step = "reinterpret_lwe";
    OpsError::check_shape(step, "digits", digits.clamp(1, 4), digits)?;
    let cols = words.checked_div(items).unwrap_or(0);
    OpsError::check_shape(step, "number of words", cols * items, words)?;
    Ok(cols)
}

/// Fewest bits of a modulus of [`check_rlwe_fold`]: the kernels' quotient estimates ignore 12 bits of a sum.
pub const MIN_MODULUS_BITS: u32 = 20;

/// Checks that there is one modulus a limb, of at least [`MIN_MODULUS_BITS`], and that every query has one selector
/// (two polynomials) a row: `selectors` are their numbers of words.
///
/// # Errors
/// [`OpsError::Shape`] if not.
pub fn check_rlwe_fold(tiling: NttTiling, moduli: &[Modulus], selectors: &[usize]) -> Result<(), OpsError> {
    let step = "rlwe_fold";
    OpsError::check_shape(step, "number of moduli", tiling.limbs(), moduli.len())?;
    for bits in moduli.iter().map(Modulus::bits) {
        let enough = bits.max(MIN_MODULUS_BITS);
        OpsError::check_shape(step, "bits of a modulus", enough as usize, bits as usize)?;
    }
    let words = tiling.rows() * RLWE_POLYS * tiling.poly_words();
    selectors
        .iter()
        .try_for_each(|&query| OpsError::check_shape(step, "words of a query's selectors", words, query))
}

#[cfg(test)]
mod tests {
    use hush_he::entities::{MatrixDomain, MatrixStructure};

    use super::*;

    #[test]
    fn queries_of_another_length_are_refused() {
        let tiling = Tiling::new(10, 100);
        let queries = |cols, words| LweQueries { cols, words: vec![0; words] };
        assert!(check_fold(tiling, &queries(100, 300)).is_ok());
        assert!(check_fold(tiling, &queries(100, 0)).is_ok());
        assert!(check_fold(tiling, &queries(99, 99)).is_err());
        assert!(check_fold(tiling, &queries(100, 150)).is_err());
    }

    #[test]
    fn row_ranges_are_whole_groups() {
        let tiling = Tiling::new(1300, 100);
        let matrix = |cols| PublicMatrix::new(MatrixDomain::First, MatrixStructure::Plain, cols, 8);
        for good in [0..512, 512..1024, 0..1300, 1024..1300, 0..0, 512..512, 1024..1024] {
            assert!(check_hint(tiling, &matrix(100), &good).is_ok(), "{good:?}");
        }
        for (start, end) in [(1, 512), (0, 511), (0, 1301), (512, 2048), (512, 0), (1536, 1300), (2048, 2048)]
        {
            let bad = start..end;
            assert!(check_hint(tiling, &matrix(100), &bad).is_err(), "{bad:?}");
        }
        assert!(check_hint(tiling, &matrix(99), &(0..512)).is_err());
    }

    #[test]
    fn digits_and_columns_are_whole() {
        assert_eq!(check_reinterpret(12, 4, 2), Ok(3));
        assert_eq!(check_reinterpret(0, 4, 4), Ok(0));
        for (words, items, digits) in [(12, 5, 1), (12, 4, 0), (12, 4, 5), (12, 0, 1)] {
            assert!(check_reinterpret(words, items, digits).is_err());
        }
    }
}
