//! The shape of tables of rows, which `ipir-sp` and `valar-ypir` take.

use hush_peers_common::Records;

/// The least number of rows: the degree of the ring.
pub(crate) const DEGREE: usize = 2048;
/// The bits of a word under the parameters that both peers have.
const WORD_BITS: usize = 14;

/// Records in rows. A row holds a whole number of records, and a look-up returns a row.
pub(crate) struct RowTable {
    pub(crate) records: Records,
    pub(crate) rows: usize,
    /// The bytes of the records of a row.
    pub(crate) row_bytes: usize,
}

impl RowTable {
    /// Creates a table of about `size` bytes, with about as many rows as words in a row. Without `record_bytes`, a record
    /// is a row.
    pub(crate) fn new(size: usize, record_bytes: Option<usize>) -> Self {
        let rows = (size * 8 / WORD_BITS).isqrt().next_power_of_two().max(DEGREE);
        let square_bytes = (size / rows).max(1);
        let record_bytes = record_bytes.unwrap_or(square_bytes);
        let row_records = (square_bytes / record_bytes).max(1);
        let row_bytes = row_records * record_bytes;
        let rows = if row_bytes > square_bytes { size.div_ceil(row_bytes).max(1) } else { rows };
        Self { records: Records::new(rows * row_records, record_bytes), rows, row_bytes }
    }

    /// Returns the row of a record.
    pub(crate) fn row(&self, index: usize) -> usize {
        index * self.records.record_bytes() / self.row_bytes
    }

    /// Returns the bits of a row, and at least those of a polynomial of words of `bits` bits.
    pub(crate) fn row_bits(&self, bits: usize) -> usize {
        (self.row_bytes * 8).max(DEGREE * bits)
    }

    /// Returns the words of a table of `rows` rows and `columns` columns, row by row.
    pub(crate) fn words(&self, rows: usize, columns: usize, bits: usize) -> impl Iterator<Item = u16> + '_ {
        self.records.words(rows, columns, bits, self.row_bytes)
    }

    /// Returns the record at `index` out of the words of its row.
    pub(crate) fn record(&self, index: usize, words: &[u64], bits: usize) -> Vec<u8> {
        self.records.record_of_words(index, words, bits, self.row_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_square() {
        for (size, rows, bytes) in
            [(64 << 20, 8192, 8192), (256 << 20, 16384, 16384), (1 << 30, 32768, 32768)]
        {
            let table = RowTable::new(size, Some(1024));
            assert_eq!((table.rows, table.row_bytes, table.records.count()), (rows, bytes, size >> 10));
        }
        let table = RowTable::new(4 << 20, None);
        assert_eq!((table.rows, table.records.record_bytes()), (2048, 2048));
        assert_eq!(table.row_bits(14), 2048 * 14);
    }
}
