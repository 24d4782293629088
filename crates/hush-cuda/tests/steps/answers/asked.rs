//! What is asked of a table, whatever its protocol.

use hush_math::csprng::Csprng;
use hush_ops::{contract::LweOps, tiling::TiledDb};
use hush_protocol::{Target, table::TableShape};

/// Queries of a case.
pub(super) const QUERIES: usize = 3;

/// The random bytes of a table, and what a client asks for.
pub(super) struct Asked<Q, P> {
    shape: TableShape,
    /// Over LWE a row for each byte of a block and a column for each slot of it.
    pub(super) bytes: Vec<u8>,
    pub(super) targets: [Target; QUERIES],
    pub(super) queries: Vec<Q>,
    pub(super) pending: Vec<P>,
}

impl<Q, P> Asked<Q, P> {
    /// A table of `rows` rows and queries for its first slot, one in the middle, and a sum of two slots of the last block;
    /// `query` is the protocol's.
    pub(super) fn new(
        shape: TableShape,
        rows: usize,
        query: impl Fn(&Target, &mut Csprng) -> (Q, P),
    ) -> Self {
        let mut bytes = vec![0; rows * shape.columns];
        Csprng::insecure_from_seed(9).fill_bytes(&mut bytes);
        let last = shape.columns as u32 - 1;
        let places = [
            (vec![(0, 1)], 0),
            (vec![(last / 2, 1)], shape.blocks / 2),
            (vec![(1, 1), (last, 1)], shape.blocks - 1),
        ];
        let targets = places.map(|(columns, block)| Target { columns, block });
        let rng = &mut Csprng::insecure_from_seed(1);
        let (queries, pending) = targets.iter().map(|target| query(target, rng)).unzip();
        Self { shape, bytes, targets, queries, pending }
    }

    /// The bytes as a database over LWE.
    pub(super) fn open_db<B: LweOps>(&self, backend: &B) -> B::Db {
        let (rows, cols) = (self.bytes.len() / self.shape.columns, self.shape.columns);
        backend.open_db(TiledDb::from_matrix(rows, cols, &self.bytes)).unwrap()
    }

    /// The slot over LWE that a query asks for.
    pub(super) fn slot(&self, query: usize) -> Vec<u8> {
        let (shape, target) = (self.shape, &self.targets[query]);
        let byte = |row: usize| {
            let bytes = target.columns.iter().map(|&(column, coefficient)| {
                self.bytes[row * shape.columns + column as usize].wrapping_mul(coefficient)
            });
            bytes.fold(0u8, u8::wrapping_add)
        };
        (target.block * shape.slot_bytes..(target.block + 1) * shape.slot_bytes).map(byte).collect()
    }
}
