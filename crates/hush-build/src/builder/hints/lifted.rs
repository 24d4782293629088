//! The hint of a table with packed answers: computed and lifted to evaluation form, tile by tile.

use std::{ops::Range, sync::Arc};

use hush_engine::Progress;
use hush_he::params::{RingContext, RingParams};
use hush_ops::{
    contract::PackOps,
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
};
use hush_store::snapshot::MappedOutput;
use prost::bytes::Bytes;

use super::{
    hint::HintSource,
    pieces::{Pieces, Worker},
};
use crate::builder::{
    BuildError,
    layout::tile::{each_chunk, write_tile},
};

/// The file of a lifted hint of `rows` rows.
pub(in crate::builder) struct LiftedFile<'a> {
    pub(in crate::builder) file: &'a MappedOutput,
    pub(in crate::builder) tiling: NttTiling,
    pub(in crate::builder) shape: PackShape,
    pub(in crate::builder) rows: usize,
}

impl LiftedFile<'_> {
    /// Returns the tiling of a lifted hint with `n` words in each row.
    pub(in crate::builder) fn tiling(
        ring: &RingParams,
        shape: &PackShape,
        n: usize,
    ) -> Result<NttTiling, BuildError> {
        Ok(NttTiling::new(ring.degree(), ring.kept_limbs(), n, shape.plaintexts())?)
    }

    /// Returns the tiling of one tile.
    fn tile(&self, tile: usize) -> NttTiling {
        tile_alone(self.tiling, tile)
    }
}

/// Returns the tiling of one tile as a separate database, which is how it is lifted. The last tile may be narrower.
fn tile_alone(all: NttTiling, tile: usize) -> NttTiling {
    let columns = all.tile_columns(tile).len();
    NttTiling::new(all.degree(), all.limbs(), all.rows(), columns).expect("a part of what is")
}

impl Pieces for LiftedFile<'_> {
    fn count(&self) -> usize {
        self.tiling.tiles()
    }

    fn units(&self, tile: usize) -> u64 {
        let rows = self.shape.rows_of(self.tiling.tile_columns(tile));
        (rows.end.min(self.rows) - rows.start.min(self.rows)) as u64
    }

    fn bytes(&self, tile: usize) -> usize {
        self.tile(tile).bytes()
    }

    fn write(&self, tile: usize, content: &[u8]) -> Result<(), BuildError> {
        write_tile(self.file, self.tiling, tile, self.tile(tile), content)
    }

    fn read(&self, tile: usize, take: &mut dyn FnMut(&[u8])) {
        each_chunk(self.file.as_bytes(), self.tiling, tile, self.tile(tile), take);
    }
}

/// A worker that computes tiles.
///
/// Memory: the hint of one tile in both forms. For 16 columns of N = 4096 and n = 1280 that is 0.9 GiB with two limbs and
/// 1.25 GiB with three.
pub(in crate::builder) struct LiftedWorker<'a, B: PackOps> {
    source: HintSource<'a, B>,
    ring: B::Ring,
    shape: PackShape,
    tiling: NttTiling,
}

impl<'a, B: PackOps> LiftedWorker<'a, B> {
    pub(in crate::builder) fn open(
        source: HintSource<'a, B>,
        params: &RingParams,
        shape: &PackShape,
    ) -> Result<Self, BuildError> {
        let tiling = LiftedFile::tiling(params, shape, source.matrix.n())?;
        let ring = source.backend.open_ring(Arc::new(RingContext::new(*params)))?;
        Ok(Self { source, ring, shape: *shape, tiling })
    }
}

impl<B: PackOps> Worker for LiftedWorker<'_, B> {
    fn tells(&self) -> bool {
        true
    }

    fn contents(&self, tiles: Range<usize>, progress: &dyn Progress) -> Result<Vec<Bytes>, BuildError> {
        let backend = self.source.backend;
        let n = self.source.matrix.n();
        tiles
            .map(|tile| {
                let columns = self.tiling.tile_columns(tile);
                let words = self.source.hint(self.shape.rows_of(columns.clone()), progress)?;
                let lifted = backend.lift_hint(&self.ring, &words, n, &self.shape, columns)?;
                drop(words);
                let lifted = backend.read_ntt_db(&self.ring, &lifted)?;
                debug_assert_eq!(lifted.tiling(), tile_alone(self.tiling, tile));
                Ok(Bytes::from_owner(Tile(lifted)))
            })
            .collect()
    }
}

/// A lifted tile as bytes, without a copy.
struct Tile(NttTiledDb);

impl AsRef<[u8]> for Tile {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}
