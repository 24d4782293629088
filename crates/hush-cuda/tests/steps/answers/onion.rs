//! `onion`.

use std::{ops::Range, sync::Arc};

use hush_he::params::{RingContext, RingParams};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{ColumnOps, PackOps},
    ntt_tiling::NttTiledDb,
    reference::Reference,
};
use hush_protocol::{
    Target, onion,
    ring_keys::{RingKeys, open_upload},
    ring_table::RingTable,
    symbols::{from_symbols, to_symbols},
    table::TableShape,
    whitening::Whitening,
};

use super::{Case, asked::Asked};

/// A table whose blocks are alone in their plaintexts, a client, and queries of it.
pub(super) struct Onion {
    table: RingTable,
    context: Arc<RingContext>,
    client: RingKeys,
    whitening: Whitening,
    asked: Asked<Vec<u8>, onion::Pending>,
}

/// The table on a backend.
pub(super) struct Server<B: PackOps + ColumnOps> {
    backend: B,
    ring: B::Ring,
    db: B::NttDb,
    keys: B::Keys,
}

impl Onion {
    pub(super) fn new(params: RingParams, shape: TableShape) -> Self {
        let table = RingTable::new(params, shape).unwrap();
        assert_eq!(table.lanes(), 1);
        let client = RingKeys::from_seed(&params, &[9; 32]);
        let query = |target: &Target, rng: &mut Csprng| onion::query(&table, &client, target.clone(), rng);
        let asked = Asked::new(shape, shape.blocks * shape.slot_bytes, query);
        let whitening = Whitening::new(&params, [5; 32]);
        let context = Arc::new(RingContext::new(params));
        Self { table, context, client, whitening, asked }
    }

    /// The symbols of a slot: slots are one after another.
    fn symbols(&self, block: usize, column: usize) -> Vec<u32> {
        let mut symbols = vec![0; self.table.slot_symbols()];
        let shape = self.table.shape();
        let slot = (block * shape.columns + column) * shape.slot_bytes;
        let slot = &self.asked.bytes[slot..][..shape.slot_bytes];
        to_symbols(slot, self.table.ring().plaintext_bits(), &mut symbols);
        symbols
    }

    /// The plaintext of a row (a column of the table) and a column (a plane of an entry).
    fn plaintext(&self, row: usize, column: usize) -> Vec<u32> {
        let (degree, entries) = (self.table.ring().degree(), self.table.entries());
        let (plane, entry) = (column / entries, column % entries);
        let symbols = self.symbols(entry, row);
        let mut plaintext = symbols[plane * degree..symbols.len().min((plane + 1) * degree)].to_vec();
        plaintext.resize(degree, 0);
        self.whitening.add_to(row, column, &mut plaintext);
        plaintext
    }
}

impl Case for Onion {
    type Server<B: PackOps + ColumnOps> = Server<B>;

    fn serve<B: PackOps + ColumnOps>(&self, backend: B) -> Server<B> {
        let ring = backend.open_ring(self.context.clone()).unwrap();
        let tiling = self.table.tiling();
        let places =
            (0..tiling.rows()).flat_map(|row| (0..tiling.columns()).map(move |column| (row, column)));
        let symbols: Vec<u32> = places.flat_map(|(row, column)| self.plaintext(row, column)).collect();
        let polys = backend.ntt_db(&ring, &symbols).unwrap();
        let db = backend.open_ntt_db(&ring, NttTiledDb::from_polys(tiling, &polys)).unwrap();
        let keys = open_upload(&self.context, self.client.upload()).unwrap();
        let keys = backend.open_evaluation_keys(&ring, keys).unwrap();
        Server { backend, ring, db, keys }
    }

    fn answer<B: PackOps + ColumnOps>(&self, server: &Server<B>, queries: Range<usize>) -> Vec<Vec<u8>> {
        let Server { backend, ring, db, keys } = server;
        let queries: Vec<&[u8]> = self.asked.queries[queries].iter().map(Vec::as_slice).collect();
        let keys = vec![keys; queries.len()];
        onion::answer(backend, ring, db, &self.context, &self.table, &queries, &keys).unwrap()
    }

    fn recover(&self, _: &Server<Reference>, query: usize, answer: &[u8]) -> Vec<u8> {
        let (table, pending) = (&self.table, &self.asked.pending[query]);
        onion::recover(table, &self.client, &self.whitening, pending, answer).unwrap().to_vec()
    }

    /// Symbols are added, not bytes.
    fn expected(&self, query: usize) -> Vec<u8> {
        let (bits, target) = (self.table.ring().plaintext_bits(), &self.asked.targets[query]);
        let mut sum = vec![0u32; self.table.slot_symbols()];
        for &(column, _) in &target.columns {
            let symbols = self.symbols(target.block, column as usize);
            sum.iter_mut().zip(symbols).for_each(|(sum, symbol)| *sum += symbol);
        }
        sum.iter_mut().for_each(|symbol| *symbol &= u32::MAX >> (32 - bits));
        let mut bytes = vec![0; self.table.shape().slot_bytes];
        from_symbols(&sum, bits, &mut bytes);
        bytes
    }
}
