//! `valar-ypir`: YPIR over SimplePIR, with packing by logarithmically many keys.

use std::time::Instant;

use hush_peers_common::{Answered, Costs, Error, Row, Scheme, measure};
use valar_ypir::{
    client::{YPIRClient, YPIRSimpleQuery},
    measurement::Measurement,
    params::DbRowsCols,
    seed::Seed,
    serialize::OfflinePrecomputedValues,
    server::YServer,
};

use crate::shape::RowTable;

/// The bits of a word of the table.
const WORD_BITS: usize = 14;

/// A server of `valar-ypir`, and a client of it.
struct Ypir<'a> {
    table: &'a RowTable,
    client: &'a YPIRClient,
    server: &'a YServer<'a, u16>,
    offline: OfflinePrecomputedValues<'a>,
}

/// Measures the default parameters, of degree 2048.
pub(crate) fn run(table: &RowTable, runs: usize) -> Result<Row, Error> {
    let start = Instant::now();
    let client = YPIRClient::from_db_sz(table.rows as u64, table.row_bits(WORD_BITS) as u64, true);
    let params = client.params();
    let (rows, columns) = (params.db_rows(), params.db_cols_simplepir());
    let server = YServer::new(params, table.words(rows, columns, WORD_BITS), true, false, true);
    let offline = server.perform_offline_precomputation_simplepir(None, None, None);
    let costs = Costs { setup_seconds: start.elapsed().as_secs_f64(), ..Costs::default() };
    let mut scheme = Ypir { table, client: &client, server: &server, offline };
    let row = measure(&mut scheme, &costs, &table.records, runs);
    let row = row.map_err(|error| format!("valar-ypir: {error}"))?;
    let kernel = if cfg!(feature = "avx512") { "AVX-512" } else { "portable" };
    let what = format!("YPIR-SP degree 2048, {kernel}, {rows} x {columns}");
    Ok(Row { peer: "valar-ypir".into(), version: "0.2.1".into(), what, ..row })
}

impl Scheme for Ypir<'_> {
    type Query = YPIRSimpleQuery;
    type Pending = (usize, Seed);
    type Answer = Vec<u8>;

    fn query(&mut self, index: usize) -> Result<(YPIRSimpleQuery, usize, Self::Pending), Error> {
        let (query, seed) = self.client.generate_query_simplepir(self.table.row(index));
        // The crate's own measurements count a word at the bits of the modulus. Its example server sends 64 bits.
        let words = query.0.len() + query.1.len();
        let bytes = (words * self.client.params().modulus_log2 as usize).div_ceil(8);
        Ok((query, bytes, (index, seed)))
    }

    fn answer(&mut self, query: &YPIRSimpleQuery) -> Result<Answered<Vec<u8>>, Error> {
        let mut times = Measurement::default();
        let answer = self.server.perform_online_computation_simplepir(
            query.0.as_slice(),
            &self.offline,
            &[query.1.as_slice()],
            Some(&mut times),
        );
        Ok(Answered {
            bytes: answer.len(),
            answer,
            scan_ms: Some(times.online.first_pass_time_ms as f64),
            pack_ms: Some(times.online.ring_packing_time_ms as f64),
        })
    }

    fn decode(&mut self, (index, seed): Self::Pending, answer: &Vec<u8>) -> Result<Vec<u8>, Error> {
        let words = self.client.decode_response_simplepir_raw(seed, answer);
        Ok(self.table.record(index, &words, WORD_BITS))
    }
}
