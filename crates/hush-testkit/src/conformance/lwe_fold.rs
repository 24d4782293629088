//! (1) Fold the first dimension.

use std::collections::BTreeSet;

use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{LweOps, LweQueries},
    reference::Reference,
    tiling::TiledDb,
};

use super::{Fill, Kept, assert_same_words};

/// Rows and columns: single ones, short panels and tiles, a short last chunk, a short last group.
pub const FOLD_SHAPES: [(usize, usize); 9] =
    [(1, 1), (1, 600), (31, 63), (32, 64), (33, 65), (70, 1100), (513, 130), (1100, 20), (128, 512)];

/// Batches at and beside the sizes at which kernels change.
pub const FOLD_BATCHES: [usize; 13] = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 33, 64, 65];

/// Query words at which limbs and halves are extreme.
const EDGES: [u32; 7] = [0, u32::MAX, 0x8000_0000, 0x7fff_ffff, 0x0000_8000, 0xffff_7fff, 0x8080_8080];

/// Checks `backend.lwe_fold` against the reference: shapes, extremes, and every batch against one and the same
/// result, so that an answer does not depend on what shares its batch.
pub fn lwe_fold<B: LweOps>(backend: &B) {
    lwe_fold_of(backend, &FOLD_SHAPES, &FOLD_BATCHES);
}

/// Checks [`lwe_fold`] for some shapes (rows and columns) and batches, for a backend that takes its time.
pub fn lwe_fold_of<B: LweOps>(backend: &B, shapes: &[(usize, usize)], batches: &[usize]) {
    for &(rows, cols) in shapes {
        for fill in Fill::ALL {
            let db = TiledDb::from_matrix(rows, cols, &fill.matrix(rows, cols));
            check(backend, db, batches, &format!("lwe_fold {rows} x {cols}, {fill:?}"));
        }
    }
    refuses_wrong_lengths(backend);
}

fn check<B: LweOps>(backend: &B, db: TiledDb, batches: &[usize], what: &str) {
    let rows = db.tiling().rows();
    let cols = db.tiling().cols();
    let all = queries(cols, batches.iter().copied().max().unwrap_or(0));
    let expected = Reference.lwe_fold(&db, &all).expect("the shapes fit").words;
    let db = backend.open_db(db).expect("the backend holds the database");
    for &batch in batches {
        let last = all.batch() - batch;
        for first in BTreeSet::from([0, last.min(3), last]) {
            let words = all.words[first * cols..(first + batch) * cols].to_vec();
            let answer = backend.lwe_fold(&db, &LweQueries { cols, words }).expect("the shapes fit");
            assert_eq!(answer.rows, rows, "{what}");
            let what = format_args!("{what}, queries {first}..{} (line = query, word = row)", first + batch);
            assert_same_words(
                &what,
                rows,
                &expected[first * rows..(first + batch) * rows],
                &backend.result(&answer.words),
            );
        }
    }
}

/// Random queries, every fourth one of a single extreme word, every fourth one of all of them in turn.
fn queries(cols: usize, batch: usize) -> LweQueries {
    let mut words = vec![0; cols * batch];
    Csprng::insecure_from_seed(cols as u64).fill_u32(&mut words);
    for (b, query) in words.chunks_exact_mut(cols).enumerate() {
        match b % 4 {
            1 => query.fill(EDGES[b / 4 % EDGES.len()]),
            3 => query.iter_mut().enumerate().for_each(|(c, word)| *word = EDGES[(b + c) % EDGES.len()]),
            _ => {}
        }
    }
    LweQueries { cols, words }
}

fn refuses_wrong_lengths<B: LweOps>(backend: &B) {
    let db =
        backend.open_db(TiledDb::from_matrix(4, 100, &[1; 400])).expect("the backend holds the database");
    for (cols, words) in [(99, 99), (101, 101), (100, 150)] {
        let refused = backend.lwe_fold(&db, &LweQueries { cols, words: vec![0; words] });
        assert!(matches!(refused, Err(OpsError::Shape { .. })), "{words} words of {cols} columns");
    }
    let empty = backend.lwe_fold(&db, &LweQueries { cols: 100, words: Vec::new() }).expect("the shapes fit");
    assert!(backend.result(&empty.words).is_empty());
}
