//! The step `reinterpret_lwe` (2): LWE words become a new byte database.

use super::*;

/// The shape of `reinterpret_lwe` (2): words become a database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReinterpretLwe {
    /// The number of words.
    pub words: usize,
    /// The shape of the database that they become.
    pub db: Tiling,
}

impl StepKind for ReinterpretLwe {
    fn work(&self, batch: usize) -> Work {
        let bytes = (batch * (size_of::<u32>() * self.words + self.db.bytes())) as f64;
        Work { bytes, ..Work::default() }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let &Maker { backend, batch, .. } = make;
        let items = self.words / self.db.cols();
        let digits = self.db.rows() / items;
        let words = backend.keep(random_words(batch * self.words))?;
        Ok(Box::new(move || backend.reinterpret_lwe(&words, batch, items, digits).map(drop)))
    }
}

/// Checks that `words` is a whole number of columns of `items` words for each of the queries, and that `digits` is 1..=4.
pub(crate) fn check(
    words: usize,
    queries: usize,
    items: usize,
    digits: usize,
) -> Result<ReinterpretLwe, OpsError> {
    let step = "reinterpret_lwe";
    OpsError::check_shape(step, "digits", digits.clamp(1, 4), digits)?;
    OpsError::check_shape(step, "queries", queries.max(1), queries)?;
    let cols = words.checked_div(queries * items).unwrap_or(0);
    OpsError::check_shape(step, "number of words", cols * queries * items, words)?;
    Ok(ReinterpretLwe { words, db: Tiling::new(queries * items * digits, cols) })
}

/// Makes a database of words: byte `k` of the rounded word `c * items + i` of query b goes to row `(b * items + i) * digits + k`,
/// column `c`.
pub(crate) fn reference(words: &[u32], queries: usize, items: usize, digits: usize, cols: usize) -> TiledDb {
    let rows = queries * items * digits;
    let mut matrix = vec![0u8; rows * cols];
    for (at, &word) in words.iter().enumerate() {
        let b = at / items / cols;
        let c = at / items % cols;
        let i = at % items;
        let rounded = round_to_digits(word, digits);
        for k in 0..digits {
            matrix[((b * items + i) * digits + k) * cols + c] = (rounded >> (8 * k)) as u8;
        }
    }
    TiledDb::from_matrix(rows, cols, &matrix)
}

/// Returns `word` rounded to its top `8 * digits` bits, modulo `2^(8 digits)`. With 4 digits, nothing is rounded.
fn round_to_digits(word: u32, digits: usize) -> u32 {
    let dropped = 32 - 8 * digits as u32;
    let half = (1u64 << dropped) >> 1;
    (((u64::from(word) + half) >> dropped) & ((1u64 << (8 * digits)) - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_and_wraps() {
        assert_eq!(round_to_digits(0x0080_0000, 1), 1);
        assert_eq!(round_to_digits(0x007f_ffff, 1), 0);
        assert_eq!(round_to_digits(0xff80_0000, 1), 0);
        assert_eq!(round_to_digits(0x1234_8000, 2), 0x1235);
        assert_eq!(round_to_digits(0xffff_ff7f, 3), 0x00ff_ffff);
        assert_eq!(round_to_digits(0xffff_ffff, 4), 0xffff_ffff);
    }

    #[test]
    fn bytes_land_where_documented() {
        let words = [0x0102_0304, 0x1112_1314, 0x2122_2324, 0x3132_3334];
        let db = reference(&words, 1, 2, 4, 2);
        assert_eq!(db.tiling(), Tiling::new(8, 2));
        let column = |c: usize| (0..8).map(|r| db.at(r, c)).collect::<Vec<_>>();
        assert_eq!(column(0), [0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11]);
        assert_eq!(column(1), [0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31]);
        // The same words as those of two queries have one word a column.
        let db = reference(&words, 2, 1, 4, 2);
        let column = |c: usize| (0..8).map(|r| db.at(r, c)).collect::<Vec<_>>();
        assert_eq!(column(0), [0x04, 0x03, 0x02, 0x01, 0x24, 0x23, 0x22, 0x21]);
        assert_eq!(column(1), [0x14, 0x13, 0x12, 0x11, 0x34, 0x33, 0x32, 0x31]);
    }

    #[test]
    fn digits_and_columns_are_whole() {
        let columns =
            |words, queries, items, digits| check(words, queries, items, digits).map(|step| step.db.cols());
        assert_eq!(columns(12, 1, 4, 2), Ok(3));
        assert_eq!(columns(12, 3, 2, 2), Ok(2));
        assert_eq!(columns(0, 2, 4, 4), Ok(0));
        for (words, queries, items, digits) in
            [(12, 1, 5, 1), (12, 1, 4, 0), (12, 1, 4, 5), (12, 1, 0, 1), (12, 2, 4, 1), (0, 0, 4, 1)]
        {
            assert!(check(words, queries, items, digits).is_err());
        }
    }
}
