//! `inspire`: one shard, and the packing of its answer. Its queries name the shard in the clear.

use std::time::Instant;

use hush_peers_common::{Answered, Costs, Error, Records, Row, Scheme, measure, median};
use inspire::{
    EncodedDatabase, ServerCrs, extract_inspiring,
    inspiring::packing_online_fully_ntt,
    math::{GaussianSampler, Poly},
    params::InspireParams,
    pir::{ClientState, SeededClientQuery, ServerResponse},
    query_seeded, respond_seeded_inspiring,
    rlwe::RlweSecretKey,
    setup,
};

/// The records of a shard: the degree of the ring.
const SHARD_RECORDS: usize = 2048;
/// The bytes of a record. A shard's answer packs a value for every two bytes.
const RECORD_BYTES: usize = 32;
/// The modulus of the crate's own tests. Packed answers under its 128-bit parameters decode to wrong records.
const MODULUS: u64 = 1_152_921_504_606_830_593;
/// The modulus of plaintexts in the crate's own tests.
const PLAINTEXT_MODULUS: u64 = 1 << 16;

/// A server of `inspire`, and a client of it.
struct Inspire {
    crs: ServerCrs,
    table: EncodedDatabase,
    secret: RlweSecretKey,
    sampler: GaussianSampler,
    pack_ms: f64,
}

/// Creates the records of one shard.
pub(crate) fn records() -> Records {
    Records::new(SHARD_RECORDS, RECORD_BYTES)
}

/// Measures look-ups in a shard.
pub(crate) fn run(records: &Records, runs: usize) -> Result<Row, Error> {
    let start = Instant::now();
    let params = InspireParams {
        q: MODULUS,
        crt_moduli: vec![MODULUS],
        p: PLAINTEXT_MODULUS,
        ..InspireParams::secure_128_d2048()
    };
    let mut sampler = GaussianSampler::new(params.sigma);
    let (crs, table, secret) = setup(&params, records.bytes(), RECORD_BYTES, &mut sampler)?;
    let costs = Costs { setup_seconds: start.elapsed().as_secs_f64(), ..Costs::default() };
    let mut scheme = Inspire { crs, table, secret, sampler, pack_ms: 0.0 };
    scheme.pack_ms = scheme.packing_ms(runs)?;
    let row = measure(&mut scheme, &costs, records, runs);
    let row = row.map_err(|error| format!("inspire: {error}"))?;
    let what = format!("one shard, 60-bit modulus, packs {} values", scheme.crs.inspiring_num_columns);
    Ok(Row { peer: "inspire".into(), version: "0.2.0".into(), what, ..row })
}

impl Inspire {
    /// Returns the milliseconds that online packing takes alone, with all preprocessing done before.
    fn packing_ms(&mut self, runs: usize) -> Result<f64, Error> {
        let (_, query) = query_seeded(&self.crs, 0, &self.table.config, &self.secret, &mut self.sampler)?;
        let keys = query.inspiring_packing_keys.as_ref().ok_or("the query has no packing keys")?;
        let precomputed = self.crs.inspiring_precomp.as_ref().ok_or("the setup has no packing")?;
        let context = self.crs.params.ntt_context();
        let body = Poly::random_moduli(self.crs.ring_dim(), self.crs.params.moduli());
        let mut times = Vec::new();
        for run in 0..=runs {
            let start = Instant::now();
            std::hint::black_box(packing_online_fully_ntt(precomputed, &keys.y_all_ntt, &body, &context));
            if run > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        Ok(median(times))
    }
}

impl Scheme for Inspire {
    type Query = SeededClientQuery;
    type Pending = ClientState;
    type Answer = ServerResponse;

    fn query(&mut self, index: usize) -> Result<(SeededClientQuery, usize, ClientState), Error> {
        let config = &self.table.config;
        let (state, mut query) =
            query_seeded(&self.crs, index as u64, config, &self.secret, &mut self.sampler)?;
        // Rotated keys are not sent: the server derives them.
        if let Some(keys) = &mut query.inspiring_packing_keys {
            keys.y_all.clear();
            keys.y_all_ntt.clear();
        }
        let bytes = bincode::serialized_size(&query)?;
        Ok((query, bytes as usize, state))
    }

    fn answer(&mut self, query: &SeededClientQuery) -> Result<Answered<ServerResponse>, Error> {
        let answer = respond_seeded_inspiring(&self.crs, &self.table, query)?;
        let bytes = answer.to_binary()?.len();
        Ok(Answered { answer, bytes, scan_ms: None, pack_ms: Some(self.pack_ms) })
    }

    fn decode(&mut self, state: ClientState, answer: &ServerResponse) -> Result<Vec<u8>, Error> {
        Ok(extract_inspiring(&self.crs, &state, answer, RECORD_BYTES)?)
    }
}
