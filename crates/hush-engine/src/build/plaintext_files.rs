//! The files of column packing, a plaintext at a time.

use std::ops::Range;

use hush_ops::{
    OpsError,
    contract::{ChainPolys, ChainedHint},
};
use hush_protocol::column_table::ColumnTable;
use hush_store::{snapshot::MappedOutput, tiles::TileWriter};

use super::BuildError;

/// The pack columns and the polynomials of the chain: digits of all plaintexts, then masks.
pub(super) struct PlaintextFiles<'a> {
    table: &'a ColumnTable,
    columns: TileWriter<'a>,
    chain: &'a MappedOutput,
}

impl<'a> PlaintextFiles<'a> {
    pub(super) fn new(
        table: &'a ColumnTable,
        columns: &'a mut MappedOutput,
        chain: &'a MappedOutput,
    ) -> Self {
        Self { table, columns: TileWriter::new(table.columns_tiling(), columns.bytes()), chain }
    }

    /// Writes the [`content`] of a plaintext. From any thread.
    pub(super) fn write(&self, plaintext: usize, content: &[u8]) -> Result<(), BuildError> {
        let [digit, mask] = self.polys(plaintext);
        let (columns, polys) = content.split_at(content.len() - digit.len() - mask.len());
        self.columns.write_rows(self.rows(plaintext).start, columns);
        self.chain.write_at(digit.start, &polys[..digit.len()])?;
        self.chain.write_at(mask.start, &polys[digit.len()..])?;
        Ok(())
    }

    /// The [`content`] of a plaintext as it was written.
    pub(super) fn read(&self, plaintext: usize) -> Vec<u8> {
        let mut content = self.columns.read_rows(self.rows(plaintext));
        self.polys(plaintext).into_iter().for_each(|bytes| content.extend(&self.chain.as_bytes()[bytes]));
        content
    }

    fn rows(&self, plaintext: usize) -> Range<usize> {
        self.table.pack_shape().plaintext_rows(plaintext)
    }

    /// Where digit and mask of a plaintext are in the file.
    fn polys(&self, plaintext: usize) -> [Range<usize>; 2] {
        let half = size_of::<u32>() * self.table.chain_words() / 2;
        let bytes = half / self.table.pack_shape().plaintexts();
        [0, half].map(|first| first + plaintext * bytes..first + (plaintext + 1) * bytes)
    }
}

/// What the files hold of a plaintext: its rows of pack columns, digit and mask.
pub(super) fn content(chained: ChainedHint) -> Vec<u8> {
    let ChainedHint { columns: mut content, digit, mask } = chained;
    content.extend(digit.iter().chain(&mask).flat_map(|word| word.to_le_bytes()));
    content
}

/// What the file of the chain's polynomials holds.
///
/// # Errors
/// [`OpsError::Shape`] if it is not as long as the table's is.
pub fn chain_polys(table: &ColumnTable, bytes: &[u8]) -> Result<ChainPolys, OpsError> {
    let expected = size_of::<u32>() * table.chain_words();
    OpsError::check_shape("open_chain", "bytes of the chain", expected, bytes.len())?;
    let words = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let (digits, masks) = bytes.split_at(expected / 2);
    Ok(ChainPolys { digits: words(digits), masks: words(masks) })
}
