//! One client's evaluation keys, laid out for products.

use hush_he::entities::{EvaluationKeys, KeySwitchKey};

use super::{
    gadget_rows::GadgetRows,
    tables::{CpuRing, GadgetTables},
};

/// The evaluation keys of one client, as the CPU backend holds them.
pub struct CpuKeys {
    /// For each level of the expansion, the rows of its key.
    pub(super) levels: Vec<GadgetRows>,
    pub(super) square: GadgetRows,
    /// The rows that meet the first ciphertext of a pair, then those of the second; polynomials a, b_0, b_1.
    pub(super) pack: GadgetRows,
}

impl CpuKeys {
    pub(super) fn new(ring: &CpuRing, keys: &EvaluationKeys) -> Self {
        let switch = |key: &KeySwitchKey, gadget: &GadgetTables| {
            GadgetRows::new(&ring.full, &gadget.offset, (gadget.digits, 2), |row, poly| {
                let row = &key.rows[row];
                [&row.a, &row.b][poly].words()
            })
        };
        let levels = keys.levels.iter().zip(&ring.levels);
        let digits = ring.pack.digits;
        Self {
            levels: levels.map(|(key, level)| switch(key, &level.gadget)).collect(),
            square: switch(&keys.square, &ring.square),
            pack: GadgetRows::new(&ring.kept, &ring.pack.offset, (2 * digits, 3), |row, poly| {
                let row = &keys.pack[row / digits][row % digits];
                [&row.a, &row.b[0], &row.b[1]][poly].words()
            }),
        }
    }
}
