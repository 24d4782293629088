//! The files of column packing, written one plaintext at a time.

use std::ops::Range;

use hush_he::{codec::packed_bytes, params::RingParams};
use hush_ops::{
    contract::ChainedHint,
    pack_shape::PackShape,
    path::{Content, pack_columns_tiling},
};
use hush_store::{
    snapshot::{CHAIN_FILE, COLUMNS_FILE, HINT_FILE, MappedOutput},
    tiles::TileWriter,
};

use super::pieces::Pieces;
use crate::builder::BuildError;

/// The files of the pack columns and of the chain's polynomials. The second holds the digits of all plaintexts, then the masks;
/// or the masks, rounded, are a third file, which clients download.
pub(in crate::builder) struct PlaintextFiles<'a> {
    shape: &'a PackShape,
    /// The bytes of a digit, which is a polynomial.
    digit: usize,
    /// The bytes of a mask.
    mask: usize,
    /// The place of the first mask in its file.
    masks: usize,
    columns: TileWriter<'a>,
    chain: &'a MappedOutput,
    /// The file of the masks.
    masked: &'a MappedOutput,
}

impl<'a> PlaintextFiles<'a> {
    /// Returns the names of the files, with their sizes in bytes. `mask_bits` is the bits of a coefficient of a mask, if clients
    /// download them.
    pub(in crate::builder) fn sizes(
        ring: &RingParams,
        shape: &PackShape,
        mask_bits: Option<u32>,
    ) -> Vec<(&'static str, usize)> {
        let chain = Content::Chain { ring: *ring, shape: *shape, folds: mask_bits.is_none() };
        let columns = pack_columns_tiling(ring, shape.rows());
        let masks = mask_bits.map(|bits| (HINT_FILE, shape.plaintexts() * packed_bytes(ring.degree(), bits)));
        let files = [(COLUMNS_FILE, columns.bytes()), (CHAIN_FILE, chain.bytes() as usize)];
        files.into_iter().chain(masks).collect()
    }

    /// Creates the writer of the files of [`PlaintextFiles::sizes`], in this order.
    pub(in crate::builder) fn new(
        ring: &RingParams,
        shape: &'a PackShape,
        mask_bits: Option<u32>,
        files: &'a mut [MappedOutput],
    ) -> Self {
        let (columns, chain) = files.split_first_mut().expect("the pack columns");
        let tiling = pack_columns_tiling(ring, shape.rows());
        let digit = size_of::<u32>() * ring.kept_limbs() * ring.degree();
        let (mask, masks) = match mask_bits {
            Some(bits) => (packed_bytes(ring.degree(), bits), 0),
            None => (digit, digit * shape.plaintexts()),
        };
        let columns = TileWriter::new(tiling, columns.bytes());
        Self { shape, digit, mask, masks, columns, chain: &chain[0], masked: &chain[chain.len() - 1] }
    }

    fn rows(&self, plaintext: usize) -> Range<usize> {
        self.shape.plaintext_rows(plaintext)
    }

    /// Returns the places of a plaintext's digit and mask, with their files.
    fn polys(&self, plaintext: usize) -> [(&MappedOutput, Range<usize>); 2] {
        let place = |first: usize, bytes: usize| first + plaintext * bytes..first + (plaintext + 1) * bytes;
        [(self.chain, place(0, self.digit)), (self.masked, place(self.masks, self.mask))]
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
        self.columns.tiling().cols() * self.rows(plaintext).len() + self.digit + self.mask
    }

    fn write(&self, plaintext: usize, content: &[u8]) -> Result<(), BuildError> {
        let (columns, mut polys) = content.split_at(content.len() - self.digit - self.mask);
        self.columns.write_rows(self.rows(plaintext).start, columns);
        for (file, place) in self.polys(plaintext) {
            let own;
            (own, polys) = polys.split_at(place.len());
            file.write_at(place.start, own)?;
        }
        Ok(())
    }

    fn read(&self, plaintext: usize, take: &mut dyn FnMut(&[u8])) {
        take(&self.columns.read_rows(self.rows(plaintext)));
        self.polys(plaintext).into_iter().for_each(|(file, place)| take(&file.as_bytes()[place]));
    }
}

/// Returns the content of a plaintext's piece: its rows of pack columns, its digit, and its mask, or `rounded` in its place.
pub(in crate::builder) fn content(chained: ChainedHint, rounded: Option<&[u8]>) -> Vec<u8> {
    let ChainedHint { columns: mut content, digit, mask } = chained;
    let own = if rounded.is_some() { &[] } else { &mask[..] };
    content.extend(digit.iter().chain(own).flat_map(|word| word.to_le_bytes()));
    content.extend(rounded.unwrap_or_default());
    content
}
