//! The hint of SimplePIR.

use hush_he::entities::{MatrixDomain, MatrixShape, MatrixStructure, PublicMatrix, PublicSeed};
use hush_ops::{OpsError, contract::LweOps, reference::Reference, tiling::TiledDb};

use super::{Fill, Kept, assert_same_words};

/// Rows, columns, structure and n.
pub type HintCase = (usize, usize, MatrixStructure, usize);

/// Structures, ring degrees, and sizes beside those of panels and groups.
pub const HINT_CASES: [HintCase; 12] = [
    (1, 1, MatrixStructure::Plain, 1),
    (33, 70, MatrixStructure::Plain, 65),
    (600, 30, MatrixStructure::Plain, 7),
    (1, 1, ring(1), 3),
    (17, 5, ring(2), 4),
    (40, 100, ring(8), 24),
    (1100, 20, ring(16), 32),
    (33, 300, ring(256), 1280),
    (50, 5000, ring(256), 256),
    (20, 2100, ring(2048), 2048),
    // More columns than one exact sum may have.
    (2, 70_000, ring(8), 16),
    (3, 10, MatrixStructure::Plain, 0),
];

const fn ring(degree: usize) -> MatrixStructure {
    MatrixStructure::Ring { degree }
}

/// Checks `backend.lwe_hint` against the reference: structures, ring degrees, extremes, and row ranges.
pub fn lwe_hint<B: LweOps>(backend: &B) {
    lwe_hint_of(backend, &HINT_CASES);
}

/// Checks [`lwe_hint`] for some cases, for a backend that takes its time.
pub fn lwe_hint_of<B: LweOps>(backend: &B, cases: &[HintCase]) {
    for &(rows, cols, structure, n) in cases {
        let a = first(structure, cols, n);
        for fill in [Fill::Random, Fill::All(-128)] {
            let db = TiledDb::from_matrix(rows, cols, &fill.matrix(rows, cols));
            let what = format!("lwe_hint {rows} x {cols}, {structure:?}, n = {n}, {fill:?}");
            check(backend, db, &a, &what);
        }
    }
    refuses_wrong_shapes(backend);
}

fn first(structure: MatrixStructure, cols: usize, n: usize) -> PublicMatrix {
    PublicMatrix::new(PublicSeed([1; 32]), MatrixShape::new(MatrixDomain::First, structure, cols, n))
}

fn check<B: LweOps>(backend: &B, db: TiledDb, a: &PublicMatrix, what: &str) {
    let rows = db.tiling().rows();
    let expected = Reference.lwe_hint(&db, a, 0..rows).expect("the shapes fit");
    let db = backend.open_db(db).expect("the backend holds the database");
    let ranges = [0..rows, 0..512.min(rows), 512..1024, 512..rows, 1024..rows, 0..0];
    for range in ranges.into_iter().filter(|range| range.start <= range.end && range.end <= rows) {
        let hint = backend.lwe_hint(&db, a, range.clone()).expect("the shapes fit");
        let what = format_args!("{what}, rows {range:?} (line = row of the range)");
        assert_same_words(
            &what,
            a.n(),
            &expected[range.start * a.n()..range.end * a.n()],
            &backend.result(&hint),
        );
    }
}

fn refuses_wrong_shapes<B: LweOps>(backend: &B) {
    let db =
        backend.open_db(TiledDb::from_matrix(600, 8, &[1; 4800])).expect("the backend holds the database");
    for (cols, rows) in [(7, 0..600), (8, 0..601), (8, 1..512), (8, 0..511), (8, 512..1024)] {
        let refused = backend.lwe_hint(&db, &first(MatrixStructure::Plain, cols, 4), rows.clone());
        assert!(matches!(refused, Err(OpsError::Shape { .. })), "{cols} columns, rows {rows:?}");
    }
}
