//! A tiny table over rings by index, on the reference backend, behind the routes of the API.

use std::{collections::HashMap, sync::Arc};

use hush_he::{
    entities::EvaluationKeys,
    params::{ONION_S, RingContext},
};
use hush_ops::{contract::RingOps, ntt_tiling::NttTiledDb, reference::Reference, tiling::DbBytes};
use hush_protocol::{
    Protocol,
    descriptor::{DESCRIPTOR_VERSION, Descriptor, Lookup, WhiteningSeed},
    facts::DB_FILE,
    hosted::Hosted,
    onion::Onion,
    ring_page::OverRing,
    ring_table::RingTable,
    slot::SlotFormat,
    symbols::to_symbols,
    table::TableShape,
    whitening::Whitening,
    wire::{self, Answer, Query, QueryResponse, QuerySizes, RequestShape, WireError},
};
use prost::Message;

use super::{
    message::{Reply, Request},
    sample::NAME,
};

/// A plaintext holds one.
const VALUE_BYTES: usize = 1100;
const COLUMNS: usize = 4;
const BLOCKS: usize = 4;

/// A table of 16 records, and the keys that its server was sent.
pub(crate) struct RingSample {
    pub(crate) descriptor: Descriptor,
    table: Hosted<OverRing<Onion>, Reference>,
    keys: HashMap<String, EvaluationKeys>,
}

impl RingSample {
    /// Record `i` has the value [`RingSample::value`]`(version, i)`.
    pub(crate) fn new(version: u8) -> Self {
        let params = ONION_S;
        let shape = TableShape { columns: COLUMNS, blocks: BLOCKS, slot_bytes: VALUE_BYTES };
        let table = RingTable::new(params, shape).unwrap();
        let context = Arc::new(RingContext::new(params));
        let ring = Reference.open_ring(context.clone()).unwrap();
        let whitening = [version; 32];
        let mut symbols = vec![0; COLUMNS * BLOCKS * params.degree()];
        for (place, plaintext) in symbols.chunks_exact_mut(params.degree()).enumerate() {
            let (row, block) = (place / BLOCKS, place % BLOCKS);
            let value = Self::value(version, (block * COLUMNS + row) as u64);
            to_symbols(&value, params.plaintext_bits(), &mut plaintext[..table.slot_symbols()]);
            Whitening::new(&params, whitening).add_to(row, block, plaintext);
        }
        let polys = Reference.ntt_db(&ring, &symbols).unwrap();
        let db = NttTiledDb::from_polys(table.tiling(), &polys);
        let mut descriptor = Descriptor {
            version: DESCRIPTOR_VERSION,
            epoch: [0; 32],
            protocol: Protocol::Onion,
            preset: params.name().into(),
            records: (COLUMNS * BLOCKS) as u64,
            columns: COLUMNS,
            blocks: BLOCKS,
            word_bits: None,
            form: Default::default(),
            slot: SlotFormat::for_values(0, VALUE_BYTES, VALUE_BYTES),
            schema: None,
            compression: None,
            sorted: None,
            lookup: Lookup::Index,
            hint: None,
            whitening: Some(WhiteningSeed(whitening)),
            database: blake3::hash(db.bytes()).into(),
            segments: Vec::new(),
            signature: None,
        };
        descriptor.seal();
        let files = vec![(DB_FILE, Arc::new(db) as DbBytes)];
        let table = Hosted::open(Arc::new(Reference), table, descriptor.public_seed(), &files).unwrap();
        Self { descriptor, table, keys: HashMap::new() }
    }

    /// Returns the value of record `index`.
    pub(crate) fn value(version: u8, index: u64) -> Vec<u8> {
        (0..VALUE_BYTES).map(|byte| (byte as u8).wrapping_mul(7) ^ version ^ (index as u8) << 3).collect()
    }

    /// Answers as a server of this table should.
    pub(crate) fn reply(&mut self, request: &Request) -> Reply {
        let path = request.path.as_str();
        if path == "/v1/tables" {
            let entry =
                serde_json::json!({ "name": NAME, "state": "resident", "protocol": "onion", "records": 16 });
            Reply::new(200, serde_json::json!({ "tables": [entry] }).to_string())
        } else if path == format!("/v1/tables/{NAME}") {
            Reply::new(200, self.descriptor.to_json())
        } else if let Some(name) = path.strip_prefix("/v1/keys/") {
            self.keep(name, request)
        } else if path == format!("/v1/tables/{NAME}/query") {
            self.answer(request)
        } else {
            Reply::problem(404, "not_found", "there is no such endpoint")
        }
    }

    fn keep(&mut self, name: &str, request: &Request) -> Reply {
        assert_eq!((request.method.as_str(), name), ("PUT", blake3::hash(&request.body).to_hex().as_str()));
        self.keys.insert(name.to_owned(), self.table.share().open_keys(&request.body).unwrap());
        Reply::new(201, "")
    }

    fn answer(&self, request: &Request) -> Reply {
        let shape = RequestShape {
            asked: &self.descriptor.epoch,
            protocol: "onion",
            query: QuerySizes::rlwe(self.table.share().host().table.query_bytes()),
            max_queries: wire::MAX_QUERIES,
        };
        let queries = match shape.decode(request.body.clone().into()) {
            Err(WireError::EpochGone) => {
                let descriptor = String::from_utf8(self.descriptor.to_json()).unwrap();
                let problem = format!(r#"{{"code":"epoch_gone","detail":"gone","descriptor":{descriptor}}}"#);
                return Reply::new(410, problem);
            }
            outcome => outcome.unwrap(),
        };
        let keys: Option<Vec<_>> =
            queries.iter().map(|query| self.keys.get(&hex::encode(&query.key_id))).collect();
        match keys {
            Some(keys) => Reply::new(200, self.response(&queries, &keys)),
            None => Reply::problem(428, "key_not_found", "upload them"),
        }
    }

    fn response(&self, queries: &[Query], keys: &[&EvaluationKeys]) -> Vec<u8> {
        let answers = self.table.answer(queries, keys).unwrap();
        let response = QueryResponse {
            version: wire::VERSION,
            epoch: self.descriptor.epoch.to_vec().into(),
            answers: answers.into_iter().map(|words| Answer { words: words.into() }).collect(),
        };
        response.encode_to_vec()
    }
}
