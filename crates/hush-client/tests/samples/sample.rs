//! A tiny table by index, on the reference backend, behind the routes of the API.

use std::sync::Arc;

use hush_he::{codec::pack_rounded, entities::PublicMatrix, params::LweParams};
use hush_ops::{
    contract::LweOps,
    reference::Reference,
    tiling::{DbBytes, TiledDb},
};
use hush_protocol::{
    Protocol,
    descriptor::{BlobRef, DESCRIPTOR_VERSION, Descriptor, Lookup},
    facts::DB_FILE,
    hosted::Hosted,
    lwe_page::{LwePage, OverLwe},
    lwe_table::LweTable,
    simple::Simple,
    slot::SlotFormat,
    table::TableShape,
    wire::{self, Answer, QueryResponse, QuerySizes, RequestShape, WireError},
};
use prost::Message;

use super::message::{Reply, Request};

const VALUE_BYTES: usize = 3;
const COLUMNS: usize = 8;
const BLOCKS: usize = 2;
/// Name of every sample.
pub(crate) const NAME: &str = "sample";

/// A table of 16 records.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) descriptor: Descriptor,
    pub(crate) hint: Vec<u8>,
    table: Arc<Hosted<OverLwe<Simple>, Reference>>,
}

impl Sample {
    /// Record `i` has the value [`Sample::value`]`(version, i)`.
    pub(crate) fn new(version: u8, lwe: LweParams) -> Self {
        let shape = TableShape { columns: COLUMNS, blocks: BLOCKS, slot_bytes: VALUE_BYTES };
        let params = LweTable::new(Simple::SPEC, lwe, shape).unwrap();
        let mut matrix = vec![0; params.rows() * COLUMNS];
        for index in 0..COLUMNS * BLOCKS {
            for (byte, value) in Self::value(version, index as u64).into_iter().enumerate() {
                matrix[(index / COLUMNS * VALUE_BYTES + byte) * COLUMNS + index % COLUMNS] = value;
            }
        }
        let db = TiledDb::from_matrix(params.rows(), COLUMNS, &matrix);
        let widths = params.widths();
        let mut descriptor = Descriptor {
            version: DESCRIPTOR_VERSION,
            epoch: [0; 32],
            protocol: Protocol::Simple,
            preset: lwe.name().into(),
            records: (COLUMNS * BLOCKS) as u64,
            columns: COLUMNS,
            blocks: BLOCKS,
            word_bits: Some([widths.query, widths.hint, widths.answer]),
            form: Default::default(),
            slot: SlotFormat::for_values(0, VALUE_BYTES, VALUE_BYTES),
            schema: None,
            compression: None,
            sorted: None,
            lookup: Lookup::Index,
            hint: None,
            whitening: None,
            database: blake3::hash(&matrix).into(),
            segments: Vec::new(),
            signature: None,
        };
        let seed = descriptor.public_seed();
        let matrix = PublicMatrix::new(seed, params.first_matrix());
        let words = Reference.lwe_hint(&db, &matrix, 0..params.rows()).unwrap();
        let hint = pack_rounded(&words, widths.hint);
        descriptor.hint = Some(BlobRef { blake3: blake3::hash(&hint).into(), bytes: hint.len() as u64 });
        descriptor.seal();
        let files = vec![(DB_FILE, Arc::new(db) as DbBytes)];
        let table = Hosted::open(Arc::new(Reference), params, seed, &files).unwrap();
        Self { descriptor, hint, table: Arc::new(table) }
    }

    /// Returns the value of record `index`.
    pub(crate) fn value(version: u8, index: u64) -> Vec<u8> {
        vec![version, index as u8, 200 + index as u8]
    }

    /// Returns the name of the hint's file.
    pub(crate) fn hint_name(&self) -> String {
        hex::encode(self.descriptor.hint.as_ref().unwrap().blake3)
    }

    /// Answers as a server of this table should.
    pub(crate) fn reply(&self, request: &Request) -> Reply {
        let path = request.path.as_str();
        if path == "/v1/tables" {
            let entry =
                serde_json::json!({ "name": NAME, "state": "resident", "protocol": "simple", "records": 16 });
            Reply::new(200, serde_json::json!({ "tables": [entry] }).to_string())
        } else if path == format!("/v1/tables/{NAME}") {
            Reply::new(200, self.descriptor.to_json())
        } else if path == format!("/v1/blobs/{}", self.hint_name()) {
            self.hint_from(request)
        } else if path == format!("/v1/tables/{NAME}/query") {
            self.answer(request)
        } else {
            Reply::problem(404, "not_found", "there is no such endpoint")
        }
    }

    fn hint_from(&self, request: &Request) -> Reply {
        let Some(range) = request.header("range") else { return Reply::new(200, self.hint.as_slice()) };
        assert_eq!(request.header("if-range"), Some(format!("\"{}\"", self.hint_name()).as_str()));
        let from: usize =
            range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-')).unwrap().parse().unwrap();
        let bytes = self.hint.len();
        let content_range = format!("bytes {from}-{}/{bytes}", bytes - 1);
        Reply::new(206, &self.hint[from..]).with("Content-Range", content_range)
    }

    fn answer(&self, request: &Request) -> Reply {
        assert_eq!(
            (request.method.as_str(), request.header("content-type")),
            ("POST", Some(wire::CONTENT_TYPE))
        );
        let (first, second) = self.table.share().host().table.query_bytes();
        let shape = RequestShape {
            asked: &self.descriptor.epoch,
            protocol: "simple",
            query: QuerySizes::lwe(first, second),
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
        let answers = self.table.answer(&queries, &[]).unwrap();
        let response = QueryResponse {
            version: wire::VERSION,
            epoch: self.descriptor.epoch.to_vec().into(),
            answers: answers.into_iter().map(|words| Answer { words: words.into() }).collect(),
        };
        Reply::new(200, response.encode_to_vec())
    }
}
