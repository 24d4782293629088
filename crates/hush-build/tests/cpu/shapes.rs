//! Tables whose answers are packed, at the corners of their shapes.

use std::sync::Arc;

use hush_cpu::{Cpu, Level};
use hush_engine::Backends;
use hush_ops::{pack_shape::PackShape, path::Content, tiling::GROUP_ROWS};
use hush_protocol::{
    Protocol::{self, Colpack, ColpackS, DoublePack, ExppackD, ExppackS, Hybrid},
    any_page::TableParams,
    facts::{HintProduct, LIFTED_FILE},
};

use crate::tables::{Folder, Wanted, on_cpu};

/// A table by index, in eight columns and short of two records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) protocol: Protocol,
    /// The bytes of a record.
    bytes: usize,
    blocks: usize,
    /// The plaintexts of the hint, at N = 256.
    plaintexts: usize,
}

const fn shape(protocol: Protocol, bytes: usize, blocks: usize, plaintexts: usize) -> Shape {
    Shape { protocol, bytes, blocks, plaintexts }
}

/// By evaluation keys, and then by the keys of a query.
pub(crate) const SHAPES: [Shape; 17] = [
    shape(Hybrid, 256, 1, 1),
    // A tile that is not full; a tile with one plaintext after a full one, whose lines are narrower in memory; two of them.
    shape(Hybrid, 256, 9, 9),
    shape(Hybrid, 256, 17, 17),
    shape(ExppackS, 256, 33, 33),
    // Four lanes of 60 bytes: entries start in the middle of a group of rows, and the last one is short.
    shape(Hybrid, 60, 71, 18),
    shape(DoublePack, 50, 86, 18),
    // Three planes an entry, the last of them short.
    shape(DoublePack, 600, 6, 18),
    // 2 * 3 * 64 rows of the hint and 6 of the answer, which start in the middle of the second plaintext.
    shape(ExppackD, 3, 20, 2),
    shape(ExppackD, 33, 5, 17),
    // One entry of one row.
    shape(Colpack, 1, 1, 1),
    // Two lanes: entries of 200 rows, the last one of 100.
    shape(Colpack, 100, 13, 7),
    // Entries of two planes: 256 and 44 rows.
    shape(Colpack, 300, 5, 10),
    // One plaintext an entry, as long as it can be.
    shape(Colpack, 256, 5, 5),
    shape(ColpackS, 1, 1, 1),
    shape(ColpackS, 100, 13, 7),
    shape(ColpackS, 300, 5, 10),
    shape(ColpackS, 256, 5, 5),
];

impl Shape {
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted::by_index(self.protocol, 8 * self.blocks - 2, self.bytes, 8)
    }

    /// Returns the parameters of the table as it is built.
    fn params(&self) -> TableParams {
        Folder::with_table(&on_cpu(2), self.wanted()).descriptor().params().unwrap()
    }
}

/// Returns the levels between which kernels differ, of which the machine has the last.
pub(crate) fn levels() -> Vec<Level> {
    // Portable code, the narrowest vectors, and the best level.
    let mut levels: Vec<_> = Level::usable().take(2).chain([Level::detect()]).collect();
    levels.dedup();
    levels
}

/// So many threads at a level.
pub(crate) fn at_level(level: Level, threads: usize) -> Backends {
    Backends::cpu_only(Arc::new(Cpu::with_level(level, threads).unwrap()))
}

/// Returns which rows of the hint are packed together.
fn pack_shape(params: &TableParams) -> PackShape {
    match params.hint().unwrap().product {
        HintProduct::Lifted { shape, .. } | HintProduct::Chained { shape, .. } => shape,
        HintProduct::Download { .. } => panic!("{params:?} is not packed"),
    }
}

#[test]
fn the_shapes_are_those_that_are_built() {
    for shape in SHAPES {
        let params = shape.params();
        let built = params.facts().shape;
        assert_eq!((built.slot_bytes, built.blocks), (shape.bytes, shape.blocks), "{shape:?}");
        assert_eq!(pack_shape(&params).plaintexts(), shape.plaintexts, "{shape:?}");
    }
}

/// Checks the purpose of the shapes by evaluation keys.
#[test]
fn they_cover_the_corners_of_tiles() {
    let [narrow, lanes, digits] = [2, 4, 7].map(|index| SHAPES[index].params());
    let lanes = pack_shape(&lanes);
    assert!(
        (0..lanes.plaintexts())
            .any(|plaintext| !lanes.plaintext_rows(plaintext).start.is_multiple_of(GROUP_ROWS))
    );
    assert!(lanes.plaintext_rows(17).len() < lanes.plaintext_rows(0).len());
    let second = digits.hint().unwrap().second.unwrap();
    assert_ne!(second.tiling.rows() % pack_shape(&digits).degree(), 0);
    let lifted = narrow.files().into_iter().find(|file| file.name == LIFTED_FILE).unwrap();
    let Content::Eval(tiling) = lifted.content else { panic!("{lifted:?}") };
    assert_eq!((tiling.tiles(), tiling.tile_columns(1)), (2, 16..17));
}

/// Checks the purpose of the shapes by keys of the query: as many plaintexts are made at a time as there are threads,
/// and 3 divides none of their numbers.
#[test]
fn they_cover_the_corners_of_chains() {
    let mut off_boundary = 0;
    for shape in SHAPES.iter().filter(|shape| shape.protocol == Colpack) {
        assert!(!shape.plaintexts.is_multiple_of(3), "{shape:?}");
        let pack = pack_shape(&shape.params());
        let groups = (0..pack.plaintexts()).step_by(3).map(|first| pack.plaintext_rows(first).start);
        off_boundary += groups.filter(|start| start % GROUP_ROWS != 0).count();
    }
    assert!(off_boundary >= 5);
}
