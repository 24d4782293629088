//! The content of a table and the look-ups in it, whatever its protocol.

use std::sync::Arc;

use hush_he::{entities::PublicSeed, params::RingContext};
use hush_math::csprng::Csprng;
use hush_ops::{contract::Steps, ntt_tiling::NttTiledDb, tiling::DbBytes};
use hush_protocol::{
    Target,
    any_page::TableParams,
    facts::{DB_FILE, Database},
    ring_table::RingTable,
    symbols::{from_symbols, to_symbols},
    table::TableShape,
    whitening::Whitening,
};

use crate::made::{self, Aligned, File};

/// Queries of a case.
pub(super) const QUERIES: usize = 5;
/// The seed of the public values of all tables.
pub(super) const SEED: PublicSeed = PublicSeed([3; 32]);
/// The seed of the whitening, where there is one.
pub(super) const WHITENING: [u8; 32] = [5; 32];

/// Random bytes.
pub(super) struct Content {
    params: TableParams,
    shape: TableShape,
    /// A row for each byte of a block and a column for each slot of it; over rings slot after slot.
    bytes: Vec<u8>,
}

impl Content {
    pub(super) fn new(params: TableParams) -> Self {
        let shape = params.facts().shape;
        let mut bytes = vec![0; shape.blocks * shape.slot_bytes * shape.columns];
        Csprng::insecure_from_seed(9).fill_bytes(&mut bytes);
        Self { params, shape, bytes }
    }

    /// Returns the first slot, one in the middle, a sum of two slots of the last block, and two more.
    pub(super) fn targets(&self) -> [Target; QUERIES] {
        let last = self.shape.columns as u32 - 1;
        let places = [
            (vec![(0, 1)], 0),
            (vec![(last / 2, 1)], self.shape.blocks / 2),
            (vec![(1, 1), (last, 1)], self.shape.blocks - 1),
            (vec![(last, 1)], 0),
            (vec![(0, 1)], self.shape.blocks - 1),
        ];
        places.map(|(columns, block)| Target { columns, block })
    }

    /// Returns the slot that a query asks for.
    pub(super) fn slot(&self, target: &Target) -> Vec<u8> {
        match self.params.database() {
            Database::Bytes(_) | Database::Slots => self.sum_of_bytes(target),
            Database::Plaintexts(table) => self.sum_of_symbols(&table, target),
        }
    }

    fn sum_of_bytes(&self, target: &Target) -> Vec<u8> {
        let Self { shape, bytes, .. } = self;
        let mut sums = Vec::with_capacity(shape.slot_bytes);
        for row in target.block * shape.slot_bytes..(target.block + 1) * shape.slot_bytes {
            let products = target.columns.iter().map(|&(column, coefficient)| {
                bytes[row * shape.columns + column as usize].wrapping_mul(coefficient)
            });
            sums.push(products.fold(0u8, u8::wrapping_add));
        }
        sums
    }

    /// Symbols are added, not bytes.
    fn sum_of_symbols(&self, table: &RingTable, target: &Target) -> Vec<u8> {
        let bits = table.ring().plaintext_bits();
        let mut sum = vec![0u32; table.slot_symbols()];
        for &(column, _) in &target.columns {
            let symbols = self.symbols(table, target.block, column as usize);
            sum.iter_mut().zip(symbols).for_each(|(sum, symbol)| *sum += symbol);
        }
        sum.iter_mut().for_each(|symbol| *symbol &= u32::MAX >> (32 - bits));
        let mut bytes = vec![0; self.shape.slot_bytes];
        from_symbols(&sum, bits, &mut bytes);
        bytes
    }

    /// Returns the files of the table, made by a backend: the database, and what comes of its hint.
    pub(super) fn files<B: Steps>(&self, backend: &B) -> Vec<File> {
        let db: DbBytes = match self.params.database() {
            Database::Bytes(tiling) => Arc::new(tiling.tile(&self.bytes)),
            Database::Slots => panic!("no backend computes with slots"),
            Database::Plaintexts(table) => Arc::new(Aligned(self.plaintexts(backend, &table))),
        };
        let of_hint = |plan| made::of_hint(backend, &plan, SEED, db.clone());
        let mut files = self.params.hint().map_or_else(Vec::new, of_hint);
        files.insert(0, (DB_FILE, db));
        files
    }

    /// Returns the database over rings, in evaluation form.
    fn plaintexts<B: Steps>(&self, backend: &B, table: &RingTable) -> NttTiledDb {
        assert_eq!(table.lanes(), 1, "blocks are alone in their plaintexts");
        let ring = backend.open_ring(Arc::new(RingContext::new(*table.ring()))).unwrap();
        let tiling = table.tiling();
        let places =
            (0..tiling.rows()).flat_map(|row| (0..tiling.columns()).map(move |column| (row, column)));
        let symbols: Vec<u32> = places.flat_map(|(row, column)| self.plaintext(table, row, column)).collect();
        let polys = backend.ntt_db(&ring, &symbols).unwrap();
        NttTiledDb::from_polys(tiling, &polys)
    }

    /// Returns the plaintext of a row (a column of the table) and a column (a plane of an entry).
    fn plaintext(&self, table: &RingTable, row: usize, column: usize) -> Vec<u32> {
        let (degree, entries) = (table.ring().degree(), table.entries());
        let (plane, entry) = (column / entries, column % entries);
        let symbols = self.symbols(table, entry, row);
        let mut plaintext = symbols[plane * degree..symbols.len().min((plane + 1) * degree)].to_vec();
        plaintext.resize(degree, 0);
        Whitening::new(table.ring(), WHITENING).add_to(row, column, &mut plaintext);
        plaintext
    }

    /// Returns the symbols of a slot.
    fn symbols(&self, table: &RingTable, block: usize, column: usize) -> Vec<u32> {
        let mut symbols = vec![0; table.slot_symbols()];
        let slot = (block * self.shape.columns + column) * self.shape.slot_bytes;
        let slot = &self.bytes[slot..][..self.shape.slot_bytes];
        to_symbols(slot, table.ring().plaintext_bits(), &mut symbols);
        symbols
    }
}
