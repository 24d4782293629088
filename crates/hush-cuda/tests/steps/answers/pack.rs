//! The protocols that pack by evaluation keys.

use std::{ops::Range, sync::Arc};

use hush_he::params::{PackParams, RingContext};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{ColumnOps, PackOps},
    reference::Reference,
};
use hush_protocol::{
    Target, exppack_d,
    pack_table::PackTable,
    packing::{self, PackHost, Pending},
    ring_keys::{RingKeys, open_upload},
    table::{Protocol, TableShape},
    wire,
};

use super::{Case, asked::Asked};

/// A table, a client, and queries of it.
pub(super) struct Pack {
    table: PackTable,
    context: Arc<RingContext>,
    client: RingKeys,
    asked: Asked<wire::Query, Pending>,
}

/// The table on a backend.
pub(super) struct Server<B: PackOps + ColumnOps> {
    backend: B,
    ring: B::Ring,
    db: B::Db,
    second_db: Option<B::Db>,
    hint: B::NttDb,
    keys: B::Keys,
}

impl Pack {
    pub(super) fn new(protocol: Protocol, params: PackParams, shape: TableShape) -> Self {
        let table = PackTable::new(protocol, params, shape).unwrap();
        let client = RingKeys::from_seed(params.ring(), &[9; 32]);
        let query = |target: &Target, rng: &mut Csprng| packing::query(&table, &client, target.clone(), rng);
        let asked = Asked::new(shape, table.rows(), query);
        let context = Arc::new(RingContext::new(*params.ring()));
        Self { table, context, client, asked }
    }
}

impl Case for Pack {
    type Server<B: PackOps + ColumnOps> = Server<B>;

    fn serve<B: PackOps + ColumnOps>(&self, backend: B) -> Server<B> {
        let (table, n) = (&self.table, self.table.params().lwe().n());
        let ring = backend.open_ring(self.context.clone()).unwrap();
        let db = self.asked.open_db(&backend);
        let mut words = backend.lwe_hint(&db, &table.first_matrix(), 0..table.rows()).unwrap();
        let second_db = (table.protocol() == Protocol::ExppackD).then(|| {
            let second = exppack_d::second_db(&backend, table, &words).unwrap();
            let hint = backend.lwe_hint(&second, &table.second_matrix(), 0..table.second_hint_rows());
            let mut padded = backend.read(&hint.unwrap()).unwrap().into_owned();
            padded.resize(table.second_shape().rows() * n, 0);
            words = backend.keep(padded).unwrap();
            second
        });
        let packed = table.hint_shape();
        let hint = backend.lift_hint(&ring, &words, n, &packed, 0..packed.plaintexts()).unwrap();
        let keys = open_upload(&self.context, self.client.upload()).unwrap();
        let keys = backend.open_evaluation_keys(&ring, keys).unwrap();
        Server { backend, ring, db, second_db, hint, keys }
    }

    fn answer<B: PackOps + ColumnOps>(&self, server: &Server<B>, queries: Range<usize>) -> Vec<Vec<u8>> {
        let host = PackHost {
            backend: &server.backend,
            ring: &server.ring,
            context: &self.context,
            table: &self.table,
            db: &server.db,
            second_db: server.second_db.as_ref(),
            hint: &server.hint,
        };
        packing::answer(&host, &self.asked.queries[queries.clone()], &vec![&server.keys; queries.len()])
            .unwrap()
    }

    fn recover(&self, _: &Server<Reference>, query: usize, answer: &[u8]) -> Vec<u8> {
        packing::recover(&self.table, &self.client, &self.asked.pending[query], answer).unwrap().to_vec()
    }

    fn expected(&self, query: usize) -> Vec<u8> {
        self.asked.slot(query)
    }
}
