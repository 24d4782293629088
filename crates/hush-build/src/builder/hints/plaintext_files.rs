//! The files of column packing, written one plaintext at a time.

use std::ops::Range;

use hush_he::params::RingParams;
use hush_ops::{
    contract::ChainedHint,
    pack_shape::PackShape,
    path::{Content, pack_columns_tiling},
};
use hush_store::{
    snapshot::{CHAIN_FILE, COLUMNS_FILE, MappedOutput},
    tiles::TileWriter,
};

use super::pieces::Pieces;
use crate::builder::BuildError;

/// The files of the pack columns and of the chain's polynomials. The second holds the digits of all plaintexts, then the masks.
pub(in crate::builder) struct PlaintextFiles<'a> {
    shape: &'a PackShape,
    /// The bytes of a polynomial.
    poly: usize,
    columns: TileWriter<'a>,
    chain: &'a MappedOutput,
}

impl<'a> PlaintextFiles<'a> {
    /// Returns the names of the files, with their sizes in bytes.
    pub(in crate::builder) fn sizes(ring: &RingParams, shape: &PackShape) -> [(&'static str, usize); 2] {
        let chain = Content::Chain { ring: *ring, shape: *shape, folds: true };
        let columns = pack_columns_tiling(ring, shape.rows());
        [(COLUMNS_FILE, columns.bytes()), (CHAIN_FILE, chain.bytes() as usize)]
    }

    pub(in crate::builder) fn new(
        ring: &RingParams,
        shape: &'a PackShape,
        columns: &'a mut MappedOutput,
        chain: &'a MappedOutput,
    ) -> Self {
        let poly = size_of::<u32>() * ring.kept_limbs() * ring.degree();
        let tiling = pack_columns_tiling(ring, shape.rows());
        Self { shape, poly, columns: TileWriter::new(tiling, columns.bytes()), chain }
    }

    fn rows(&self, plaintext: usize) -> Range<usize> {
        self.shape.plaintext_rows(plaintext)
    }

    /// Returns the byte ranges of a plaintext's digit and mask in the file of the chain.
    fn polys(&self, plaintext: usize) -> [Range<usize>; 2] {
        let bytes = self.poly;
        let half = self.poly * self.shape.plaintexts();
        [0, half].map(|first| first + plaintext * bytes..first + (plaintext + 1) * bytes)
    }
}

impl Pieces for PlaintextFiles<'_> {
    fn count(&self) -> usize {
        self.shape.plaintexts()
    }

    fn units(&self, _: usize) -> u64 {
        1
    }

    fn bytes(&self, plaintext: usize) -> usize {
        self.columns.tiling().cols() * self.rows(plaintext).len() + 2 * self.poly
    }

    fn write(&self, plaintext: usize, content: &[u8]) -> Result<(), BuildError> {
        let [digit, mask] = self.polys(plaintext);
        let (columns, polys) = content.split_at(content.len() - digit.len() - mask.len());
        self.columns.write_rows(self.rows(plaintext).start, columns);
        self.chain.write_at(digit.start, &polys[..digit.len()])?;
        self.chain.write_at(mask.start, &polys[digit.len()..])?;
        Ok(())
    }

    fn read(&self, plaintext: usize, take: &mut dyn FnMut(&[u8])) {
        take(&self.columns.read_rows(self.rows(plaintext)));
        self.polys(plaintext).into_iter().for_each(|bytes| take(&self.chain.as_bytes()[bytes]));
    }
}

/// Returns the content of a plaintext's piece: its rows of pack columns, its digit, and its mask.
pub(in crate::builder) fn content(chained: ChainedHint) -> Vec<u8> {
    let ChainedHint { columns: mut content, digit, mask } = chained;
    content.extend(digit.iter().chain(&mask).flat_map(|word| word.to_le_bytes()));
    content
}
