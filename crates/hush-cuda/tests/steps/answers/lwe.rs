//! `simple`, `frodo` and `double`.

use std::ops::Range;

use hush_he::{codec::pack_rounded, params::LweParams};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{ColumnOps, PackOps},
    reference::Reference,
};
use hush_protocol::{
    Target, double,
    lwe_table::LweTable,
    simple,
    table::{Protocol, TableShape},
    wire,
};

use super::{Case, asked::Asked};

/// A table and queries for it.
pub(super) struct Lwe {
    table: LweTable,
    asked: Asked<wire::Query, Pending>,
}

enum Pending {
    Single(simple::Pending),
    Double(double::Pending),
}

/// The table on a backend.
pub(super) struct Server<B: PackOps + ColumnOps> {
    backend: B,
    db: B::Db,
    second_db: Option<B::Db>,
    /// As it travels.
    hint: Vec<u8>,
}

impl Lwe {
    pub(super) fn new(protocol: Protocol, lwe: LweParams, shape: TableShape) -> Self {
        let table = LweTable::new(protocol, lwe, shape).unwrap();
        let query = |target: &Target, rng: &mut Csprng| match protocol {
            Protocol::Double => {
                let (query, pending) = double::query(&table, target, rng);
                (query, Pending::Double(pending))
            }
            _ => {
                let (query, pending) = simple::query(&table, target, rng);
                (query, Pending::Single(pending))
            }
        };
        let asked = Asked::new(shape, table.rows(), query);
        Self { table, asked }
    }
}

impl Case for Lwe {
    type Server<B: PackOps + ColumnOps> = Server<B>;

    fn serve<B: PackOps + ColumnOps>(&self, backend: B) -> Server<B> {
        let table = &self.table;
        let db = self.asked.open_db(&backend);
        let mut hint = backend.lwe_hint(&db, &table.first_matrix(), 0..table.rows()).unwrap();
        let second_db = (table.protocol() == Protocol::Double).then(|| {
            let second = double::second_db(&backend, table, &hint).unwrap();
            let rows = table.second_hint_rows();
            hint = backend.lwe_hint(&second, &table.second_matrix(), 0..rows).unwrap();
            second
        });
        let hint = pack_rounded(&backend.read(&hint).unwrap(), table.widths().hint);
        Server { backend, db, second_db, hint }
    }

    fn answer<B: PackOps + ColumnOps>(&self, server: &Server<B>, queries: Range<usize>) -> Vec<Vec<u8>> {
        let Server { backend, db, second_db, .. } = server;
        let queries = &self.asked.queries[queries];
        match second_db {
            Some(second) => double::answer(backend, db, second, &self.table, queries),
            None => simple::answer(backend, db, &self.table, queries),
        }
        .unwrap()
    }

    fn recover(&self, server: &Server<Reference>, query: usize, answer: &[u8]) -> Vec<u8> {
        match &self.asked.pending[query] {
            Pending::Single(pending) => simple::recover(&self.table, &server.hint, pending, answer),
            Pending::Double(pending) => double::recover(&self.table, &server.hint, pending, answer),
        }
        .unwrap()
    }

    fn expected(&self, query: usize) -> Vec<u8> {
        self.asked.slot(query)
    }
}
