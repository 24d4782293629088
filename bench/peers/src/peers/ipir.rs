//! `ipir-sp` under its pinned profiles: a scan as in YPIR, and InspiRING packing.

use std::time::Instant;

use hush_peers_common::{Answered, Costs, Error, Row, Scheme, measure};
use inspiring::{QueryPackPreprocessed, TopKeyImages};
use ipir_sp::{
    ClientSeed, IPIRClient, IPIRServer, ProductionSimplePirParams, PublicQuerySetup, SimplePirProfile,
    modulus_switch::recover_published_c1,
    serialize::{deserialize_packing_keys, serialize_packing_keys},
    server::{build_pack_preprocessed_blocks, published_c1_rows},
};

use crate::shape::RowTable;

/// The version of the crate.
pub(super) const VERSION: &str = "0.1.0-rc.8";
/// The seed of the public matrix. The time of a look-up does not depend on it.
pub(super) const SEED: [u8; 32] = [7; 32];

/// A server of `ipir-sp`, and a client of it.
struct Ipir<'a> {
    table: &'a RowTable,
    bits: usize,
    client: &'a IPIRClient,
    setup: &'a PublicQuerySetup,
    server: &'a IPIRServer<u16>,
    top: &'a TopKeyImages<'a>,
    packing: &'a [QueryPackPreprocessed<'a>],
    published: Vec<Vec<u64>>,
}

/// A query on the wire: the client's keys, which every query has, and the encrypted row.
struct WireQuery {
    keys: Vec<u8>,
    row: Vec<u8>,
}

/// Measures the pinned profiles of 14 and 16 bits.
pub(crate) fn run(table: &RowTable, runs: usize) -> Vec<Result<Row, Error>> {
    let profiles = [SimplePirProfile::P14, SimplePirProfile::P16Q46];
    profiles.into_iter().map(|profile| run_profile(table, profile, runs)).collect()
}

/// Measures one profile.
fn run_profile(table: &RowTable, profile: SimplePirProfile, runs: usize) -> Result<Row, Error> {
    let bits = profile.plaintext_bits();
    let start = Instant::now();
    let params = ProductionSimplePirParams::new(table.rows as u64, table.row_bits(bits) as u64, profile)?;
    let client = IPIRClient::new(&params);
    let rlwe = client.rlwe_params();
    let (rows, columns) = (client.params().db_rows, client.params().db_cols);
    let words = table.words(rows, columns, bits);
    let server = IPIRServer::new_auto_kernel_from_profile(&params, words, false, false);
    let setup = client.generate_public_query_setup_simplepir_from_seed(SEED);
    let offline = server.perform_offline_precomputation_simplepir(rlwe, setup.polys());
    let packing = build_pack_preprocessed_blocks(rlwe, &offline.crs_blocks)?;
    drop(offline);
    let top = TopKeyImages::build(rlwe);
    let masks = published_c1_rows(&packing, rlwe.q);
    let costs = Costs {
        setup_seconds: start.elapsed().as_secs_f64(),
        offline_bytes: SEED.len() + masks.len(),
        key_bytes: 0,
    };
    let published = recover_published_c1(&masks, rlwe.d, columns / rlwe.d, rlwe.q);
    let mut scheme = Ipir {
        table,
        bits,
        client: &client,
        setup: &setup,
        server: &server,
        top: &top,
        packing: &packing,
        published,
    };
    let row = measure(&mut scheme, &costs, &table.records, runs);
    let row = row.map_err(|error| format!("ipir-sp {}: {error}", profile.id()))?;
    let what = format!("{}, {rows} x {columns}", profile.id());
    Ok(Row { peer: "ipir-sp".into(), version: VERSION.into(), what, ..row })
}

impl Scheme for Ipir<'_> {
    type Query = WireQuery;
    type Pending = (usize, ClientSeed);
    type Answer = Vec<u8>;

    fn query(&mut self, index: usize) -> Result<(WireQuery, usize, Self::Pending), Error> {
        let rlwe = self.client.rlwe_params();
        let target = self.table.row(index);
        let (query, keys, seed) = self.client.generate_fresh_query_simplepir(self.setup, target);
        let keys = serialize_packing_keys(rlwe, &keys)?;
        let row = query.to_switched_bytes(rlwe.q, self.client.params().query_bits);
        let bytes = keys.len() + row.len();
        Ok((WireQuery { keys, row }, bytes, (index, seed)))
    }

    fn answer(&mut self, query: &WireQuery) -> Result<Answered<Vec<u8>>, Error> {
        let rlwe = self.client.rlwe_params();
        let keys = deserialize_packing_keys(rlwe, &query.keys)?;
        let (answer, times) = self.server.perform_full_online_computation_simplepir_measured(
            rlwe,
            &query.row,
            &keys,
            self.top,
            self.packing,
        )?;
        Ok(Answered {
            bytes: answer.len(),
            answer,
            scan_ms: Some(times.matrix_vector.as_secs_f64() * 1e3),
            pack_ms: Some(times.packing.as_secs_f64() * 1e3),
        })
    }

    fn decode(&mut self, (index, seed): Self::Pending, answer: &Vec<u8>) -> Result<Vec<u8>, Error> {
        let words = self.client.decode_response_simplepir_raw(&seed, &self.published, answer);
        Ok(self.table.record(index, &words, self.bits))
    }
}
