//! (2) Make LWE words a new byte database.

use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{BatchWords, LweOps, LweQueries},
    reference::Reference,
};

use super::{Kept, assert_same_words};

/// Queries, items a column, and columns: padding in both directions, several groups and several chunks, queries that begin within
/// tiles and groups.
pub const REINTERPRET_SHAPES: [(usize, usize, usize); 8] =
    [(1, 1, 1), (1, 3, 65), (1, 8, 64), (1, 140, 3), (1, 300, 20), (1, 5, 600), (5, 1, 3), (3, 61, 70)];

/// Words at which rounding carries.
const EDGES: [u32; 8] =
    [0, u32::MAX, 0x007f_ffff, 0x0080_0000, 0x7f7f_8000, 0xffff_7fff, 0xffff_ff80, 0x8000_0000];

/// Checks `backend.reinterpret_lwe` against the reference. A backend's database is opaque, so its bytes are read by
/// folding it with unit vectors.
pub fn reinterpret_lwe<B: LweOps>(backend: &B) {
    reinterpret_lwe_of(backend, &REINTERPRET_SHAPES);
}

/// Checks [`reinterpret_lwe`] for some shapes (queries, items a column, and columns), for a backend that takes its
/// time.
pub fn reinterpret_lwe_of<B: LweOps>(backend: &B, shapes: &[(usize, usize, usize)]) {
    for &(queries, items, cols) in shapes {
        let mut words = vec![0; queries * items * cols];
        Csprng::insecure_from_seed(7).fill_u32(&mut words);
        for (word, edge) in words.iter_mut().step_by(3).zip(EDGES.into_iter().cycle()) {
            *word = edge;
        }
        let (words, kept) = (BatchWords::from(words.clone()), backend.kept(&words));
        for digits in 1..=4 {
            let rows = queries * items * digits;
            let expected = Reference.reinterpret_lwe(&words, queries, items, digits).expect("the shapes fit");
            let actual = backend.reinterpret_lwe(&kept, queries, items, digits).expect("the shapes fit");
            for first in (0..cols).step_by(64) {
                let units = units(cols, first..cols.min(first + 64));
                let expected = Reference.lwe_fold(&expected, &units).expect("the shapes fit").words;
                let actual = backend.lwe_fold(&actual, &units).expect("the shapes fit").words;
                let what = format!(
                    "reinterpret_lwe {queries} x {items} items x {cols}, {digits} digits (line = column - {first}, word = row)"
                );
                assert_same_words(&what, rows, &expected, &backend.result(&actual));
            }
        }
    }
    for (words, queries, items, digits) in
        [(12, 1, 5, 1), (12, 1, 4, 0), (12, 1, 4, 5), (12, 1, 0, 1), (12, 2, 4, 1), (0, 0, 4, 1)]
    {
        let refused = backend.reinterpret_lwe(&backend.kept(&vec![0; words]), queries, items, digits);
        assert!(
            matches!(refused, Err(OpsError::Shape { .. })),
            "{words} words, {queries} x {items} items, {digits} digits"
        );
    }
}

/// Returns the unit vectors of some columns.
fn units(cols: usize, selected: std::ops::Range<usize>) -> LweQueries {
    let mut words = vec![0; cols * selected.len()];
    for (b, c) in selected.enumerate() {
        words[b * cols + c] = 1;
    }
    LweQueries { cols, words }
}
