//! One client's evaluation keys, laid out for products.

use hush_he::entities::{EvaluationKeys, KeySwitchKey};

use super::{
    gadget_rows::{GadgetRows, RowShape},
    mod_ring::ModRing,
    tables::{CpuRing, GadgetTables},
};
use crate::buffer::AlignedBuffer;

/// Rows in memory of their own.
type KeyRows = GadgetRows<AlignedBuffer<u32>>;

/// The evaluation keys of one client, as the CPU backend holds them.
pub struct CpuKeys {
    /// For each level of the expansion, the rows of its key.
    pub(super) levels: Vec<KeyRows>,
    pub(super) square: KeyRows,
    /// The rows that meet the first ciphertext of a pair, then those of the second; polynomials a, b_0, b_1.
    pub(super) pack: KeyRows,
}

impl CpuKeys {
    pub(super) fn new(ring: &CpuRing, keys: &EvaluationKeys) -> Self {
        let switch = |key: &KeySwitchKey, gadget: &GadgetTables| {
            key_rows(&ring.full, RowShape { rows: gadget.digits, polys: 2 }, |row, poly| {
                let row = &key.rows[row];
                [&row.a, &row.b][poly].words()
            })
        };
        let levels = keys.levels.iter().zip(&ring.levels);
        let digits = ring.pack.digits;
        Self {
            levels: levels.map(|(key, level)| switch(key, &level.gadget)).collect(),
            square: switch(&keys.square, &ring.square),
            pack: key_rows(&ring.kept, RowShape { rows: 2 * digits, polys: 3 }, |row, poly| {
                let row = &keys.pack[row / digits][row % digits];
                [&row.a, &row.b[0], &row.b[1]][poly].words()
            }),
        }
    }
}

fn key_rows<'a>(ring: &ModRing, shape: RowShape, poly: impl Fn(usize, usize) -> &'a [u32]) -> KeyRows {
    GadgetRows::new(ring, shape, AlignedBuffer::zeroed(shape.words(ring)), poly)
}
