//! The evaluation keys of one client, laid out for products.

use std::ops::Range;

use hush_he::entities::{EvaluationKeys, KeySwitchKey, RingSwitchKey, RlweCiphertext};

use super::{
    gadget::gadget_rows::{self, GadgetRows, RowShape},
    tables::CpuRing,
};
use crate::buffer::AlignedBuffer;

/// The evaluation keys of one client, as the CPU backend holds them: in one allocation, so that it is on huge pages.
pub struct CpuKeys {
    words: AlignedBuffer<u32>,
    levels: Vec<KeyRows>,
    square: KeyRows,
    /// The key that packs pairs; `None` if pairs are not packed.
    pack: Option<KeyRows>,
    /// The ring switch key, as received; `None` in sets without a small ring.
    switch: Option<RingSwitchKey>,
    /// The keys of private key switching, as received; `None` in sets without TLWE words.
    private: Option<[Vec<RlweCiphertext>; 2]>,
}

/// The location of the rows of one key.
struct KeyRows {
    shape: RowShape,
    words: Range<usize>,
}

impl CpuKeys {
    pub(super) fn new(ring: &CpuRing, keys: EvaluationKeys) -> Self {
        let mut end = 0;
        let mut place = |ring, rows, polys| {
            let shape = RowShape { rows, polys };
            let start = end;
            end += shape.words(ring);
            KeyRows { shape, words: start..end }
        };
        let levels: Vec<_> =
            ring.levels.iter().map(|level| place(&ring.full, level.gadget.digits, 2)).collect();
        let square = place(&ring.full, ring.square.digits, 2);
        let pack = ring.pack.as_ref().map(|gadget| place(&ring.kept, 2 * gadget.digits, 3));
        let mut words = AlignedBuffer::zeroed(end);
        let mut switch = |place: &KeyRows, key: &KeySwitchKey| {
            gadget_rows::lay_out(&ring.full, place.shape, &mut words[place.words.clone()], |row, poly| {
                let row = &key.rows[row];
                [&row.a, &row.b][poly].words()
            });
        };
        levels.iter().zip(&keys.levels).for_each(|(place, key)| switch(place, key));
        switch(&square, &keys.square);
        if let Some(place) = &pack {
            let pairs: Vec<_> = keys.pack.iter().flatten().collect();
            gadget_rows::lay_out(&ring.kept, place.shape, &mut words[place.words.clone()], |row, poly| {
                [&pairs[row].a, &pairs[row].b[0], &pairs[row].b[1]][poly].words()
            });
        }
        Self { words, levels, square, pack, switch: keys.switch, private: keys.private }
    }

    /// Returns the rows of the key of a level of the expansion.
    pub(super) fn level(&self, level: usize) -> GadgetRows<'_> {
        self.rows(&self.levels[level])
    }

    /// Returns the rows of the key for s^2.
    pub(super) fn square(&self) -> GadgetRows<'_> {
        self.rows(&self.square)
    }

    /// Returns the rows that meet the first ciphertext of a pair, then those of the second; polynomials a, b_0, b_1. `None` if
    /// pairs are not packed.
    pub(super) fn pack(&self) -> Option<GadgetRows<'_>> {
        self.pack.as_ref().map(|place| self.rows(place))
    }

    /// Returns the key for the small ring of short answers.
    pub(crate) fn switch(&self) -> Option<&RingSwitchKey> {
        self.switch.as_ref()
    }

    /// Returns the keys of private key switching: for bottom rows, for top rows.
    pub(crate) fn private(&self) -> Option<&[Vec<RlweCiphertext>; 2]> {
        self.private.as_ref()
    }

    fn rows(&self, place: &KeyRows) -> GadgetRows<'_> {
        GadgetRows::new(place.shape, &self.words[place.words.clone()])
    }
}
