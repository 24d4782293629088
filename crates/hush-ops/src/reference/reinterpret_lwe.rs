//! (2) Make LWE words a new byte database.

use crate::tiling::TiledDb;

/// Byte `k` of the rounded word `c * items + i` of query b goes to row `(b * items + i) * digits + k`, column `c`.
pub(super) fn reinterpret_lwe(
    words: &[u32],
    queries: usize,
    items: usize,
    digits: usize,
    cols: usize,
) -> TiledDb {
    let rows = queries * items * digits;
    let mut matrix = vec![0u8; rows * cols];
    for (at, &word) in words.iter().enumerate() {
        let (b, c, i) = (at / items / cols, at / items % cols, at % items);
        let rounded = round_to_digits(word, digits);
        for k in 0..digits {
            matrix[((b * items + i) * digits + k) * cols + c] = (rounded >> (8 * k)) as u8;
        }
    }
    TiledDb::from_matrix(rows, cols, &matrix)
}

/// `word` rounded to its top `8 * digits` bits, modulo `2^(8 digits)`. With 4 digits nothing is rounded off.
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
        let db = reinterpret_lwe(&words, 1, 2, 4, 2);
        assert_eq!(db.tiling(), crate::tiling::Tiling::new(8, 2));
        let column = |c: usize| (0..8).map(|r| db.at(r, c)).collect::<Vec<_>>();
        assert_eq!(column(0), [0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11]);
        assert_eq!(column(1), [0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31]);
        // Of two queries: a word a column.
        let db = reinterpret_lwe(&words, 2, 1, 4, 2);
        let column = |c: usize| (0..8).map(|r| db.at(r, c)).collect::<Vec<_>>();
        assert_eq!(column(0), [0x04, 0x03, 0x02, 0x01, 0x24, 0x23, 0x22, 0x21]);
        assert_eq!(column(1), [0x14, 0x13, 0x12, 0x11, 0x34, 0x33, 0x32, 0x31]);
    }
}
