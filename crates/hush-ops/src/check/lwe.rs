//! Checks of [`crate::contract::LweOps`].

use std::ops::Range;

use hush_he::entities::PublicMatrix;

use crate::{
    OpsError,
    contract::{LweBatch, LweQueries, SentRows, WordStore},
    tiling::{GROUP_ROWS, Tiling},
};

/// `queries` are whole queries of one word a database column.
pub(crate) fn lwe_fold(tiling: Tiling, queries: &LweQueries) -> Result<(), OpsError> {
    let step = "lwe_fold";
    OpsError::check_shape(step, "query length", tiling.cols(), queries.cols)?;
    OpsError::check_shape(step, "words of all queries", queries.batch() * queries.cols, queries.words.len())
}

/// A has a row for every database column, and `rows` starts at a group and ends at one or at the last row.
pub(crate) fn lwe_hint(tiling: Tiling, a: &PublicMatrix, rows: &Range<usize>) -> Result<(), OpsError> {
    let step = "lwe_hint";
    OpsError::check_shape(step, "rows of A", tiling.cols(), a.cols())?;
    let end = rows.end.min(tiling.rows());
    OpsError::check_shape(step, "end of the row range", end, rows.end)?;
    let start = rows.start.min(end);
    OpsError::check_shape(step, "start of the row range", start / GROUP_ROWS * GROUP_ROWS, rows.start)?;
    let whole = if end == tiling.rows() { end } else { end / GROUP_ROWS * GROUP_ROWS };
    OpsError::check_shape(step, "end of the row range", whole, rows.end)
}

/// `words` words are whole columns of `items` words of each of some queries, and `digits` is 1..=4. Returns the number of columns.
pub(crate) fn reinterpret_lwe(
    words: usize,
    queries: usize,
    items: usize,
    digits: usize,
) -> Result<usize, OpsError> {
    let step = "reinterpret_lwe";
    OpsError::check_shape(step, "digits", digits.clamp(1, 4), digits)?;
    OpsError::check_shape(step, "queries", queries.max(1), queries)?;
    let cols = words.checked_div(queries * items).unwrap_or(0);
    OpsError::check_shape(step, "number of words", cols * queries * items, words)?;
    Ok(cols)
}

/// `words` are whole queries, every piece is some of their rows, and its width 1..=32.
pub(crate) fn send_words<W: WordStore>(words: &LweBatch<W>, sent: &[SentRows]) -> Result<(), OpsError> {
    let step = "send_words";
    OpsError::check_shape(step, "words of all queries", words.batch() * words.rows, words.words.len())?;
    sent.iter().try_for_each(|SentRows { rows, bits }| {
        OpsError::check_shape(step, "end of the rows", rows.end.min(words.rows), rows.end)?;
        OpsError::check_shape(step, "start of the rows", rows.start.min(rows.end), rows.start)?;
        OpsError::check_shape(step, "bits", (*bits).clamp(1, u32::BITS) as usize, *bits as usize)
    })
}

#[cfg(test)]
mod tests {
    use hush_he::entities::{MatrixDomain, MatrixShape, MatrixStructure, PublicSeed};

    use super::*;
    use crate::contract::BatchWords;

    #[test]
    fn queries_of_another_length_are_refused() {
        let tiling = Tiling::new(10, 100);
        let queries = |cols, words| LweQueries { cols, words: vec![0; words] };
        assert!(lwe_fold(tiling, &queries(100, 300)).is_ok());
        assert!(lwe_fold(tiling, &queries(100, 0)).is_ok());
        assert!(lwe_fold(tiling, &queries(99, 99)).is_err());
        assert!(lwe_fold(tiling, &queries(100, 150)).is_err());
    }

    #[test]
    fn row_ranges_are_whole_groups() {
        let tiling = Tiling::new(1300, 100);
        let shape = |cols| MatrixShape::new(MatrixDomain::First, MatrixStructure::Plain, cols, 8);
        let matrix = |cols| PublicMatrix::new(PublicSeed([1; 32]), shape(cols));
        for good in [0..512, 512..1024, 0..1300, 1024..1300, 0..0, 512..512, 1024..1024] {
            assert!(lwe_hint(tiling, &matrix(100), &good).is_ok(), "{good:?}");
        }
        for (start, end) in [(1, 512), (0, 511), (0, 1301), (512, 2048), (512, 0), (1536, 1300), (2048, 2048)]
        {
            let bad = start..end;
            assert!(lwe_hint(tiling, &matrix(100), &bad).is_err(), "{bad:?}");
        }
        assert!(lwe_hint(tiling, &matrix(99), &(0..512)).is_err());
    }

    #[test]
    fn rows_that_are_sent_are_there() {
        let words = |words: usize| LweBatch { rows: 4, words: BatchWords::from(vec![0; words]) };
        let sent = |start, end, bits| [SentRows { rows: start..end, bits }];
        for good in [sent(0, 4, 1), sent(4, 4, 32), sent(1, 3, 18)] {
            assert!(send_words(&words(8), &good).is_ok(), "{good:?}");
        }
        assert!(send_words(&words(0), &sent(0, 4, 1)).is_ok());
        assert!(send_words(&words(6), &sent(0, 4, 1)).is_err());
        for bad in [sent(0, 5, 1), sent(3, 2, 1), sent(0, 4, 0), sent(0, 4, 33)] {
            assert!(send_words(&words(8), &bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn digits_and_columns_are_whole() {
        assert_eq!(reinterpret_lwe(12, 1, 4, 2), Ok(3));
        assert_eq!(reinterpret_lwe(12, 3, 2, 2), Ok(2));
        assert_eq!(reinterpret_lwe(0, 2, 4, 4), Ok(0));
        for (words, queries, items, digits) in
            [(12, 1, 5, 1), (12, 1, 4, 0), (12, 1, 4, 5), (12, 1, 0, 1), (12, 2, 4, 1), (0, 0, 4, 1)]
        {
            assert!(reinterpret_lwe(words, queries, items, digits).is_err());
        }
    }
}
