//! An engine that adds bytes. Its answers can be checked, and its scans held and counted.

use std::{
    fs::File,
    sync::{Arc, Condvar, Mutex},
};

use hush_engine::{Blob, ClientKeys, Device, Engine, EngineError, KeySpec, Placement, Served};
use hush_protocol::{
    share::Share,
    wire::{self, EvaluationKeys, KEY_ID_BYTES, Query, QuerySizes},
};
use prost::Message;

pub(crate) const SIZES: QuerySizes = QuerySizes::lwe(8, 4);
pub(crate) const ANSWER_BYTES: usize = 16;
pub(crate) const MAX_BATCH: usize = 4;
/// The bytes of the seed of keys.
const SEED_BYTES: usize = 4;
/// The first byte of a query that the engine refuses, fails on, answers badly, or has no memory for.
pub(crate) const REFUSED: u8 = 0xfe;
pub(crate) const PANICS: u8 = 0xff;
pub(crate) const SHORT_ANSWER: u8 = 0xfd;
pub(crate) const NO_MEMORY: u8 = 0xfc;
/// The first byte of a query for which a part of the table does not answer.
pub(crate) const PART_GONE: u8 = 0xfb;

pub(crate) struct SumEngine {
    served: Served,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    held: bool,
    /// The reason for which the device has failed for good.
    lost: Option<String>,
    degraded: Option<String>,
    /// The file that has changed.
    damaged: Option<String>,
    /// The first byte of each query of each batch, when its scan begins.
    batches: Vec<Vec<u8>>,
}

impl SumEngine {
    pub(crate) fn new(epoch_byte: u8) -> SumEngine {
        let epoch = [epoch_byte; 32];
        let descriptor = format!(" {{\"protocol\":\"sum\",\"records\":1000,\"e\":{epoch_byte}}}\n");
        let served = Served {
            descriptor_json: descriptor.into_bytes().into(),
            epoch,
            asked: epoch,
            records: 1000,
            protocol: "sum".into(),
            query: SIZES,
            answer_bytes: ANSWER_BYTES,
            placement: Placement::on(Device::Cpu, Share::whole()),
            max_batch: MAX_BATCH,
            keys: None,
            blobs: Vec::new(),
        };
        SumEngine { served, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Sets the geometry that queries name in place of the epoch.
    pub(crate) fn asked_as(mut self, geometry: [u8; 32]) -> SumEngine {
        self.served.asked = geometry;
        self
    }

    pub(crate) fn with_descriptor(mut self, json: &[u8]) -> SumEngine {
        self.served.descriptor_json = json.into();
        self
    }

    /// Sets the length of answers, most of which are zeros.
    pub(crate) fn with_answer_bytes(mut self, bytes: usize) -> SumEngine {
        self.served.answer_bytes = bytes;
        self
    }

    /// Makes queries need keys of this parameter set, of this many words.
    pub(crate) fn with_keys(mut self, preset: &str, words: usize) -> SumEngine {
        let bytes = wire::encoded_keys_bytes(preset, SEED_BYTES, words);
        self.served.keys =
            Some(KeySpec { preset: preset.to_owned(), bytes, devices: self.served.placement.devices() });
        self.served.query.key_id = KEY_ID_BYTES;
        self
    }

    /// Places the engine on a device. The engine accepts keys that were opened there.
    pub(crate) fn on(mut self, device: Device) -> SumEngine {
        self.served.placement = Placement::on(device, Share::whole());
        let devices = self.served.placement.devices();
        self.served.keys = self.served.keys.map(|spec| KeySpec { devices, ..spec });
        self
    }

    pub(crate) fn with_blob(mut self, hash: [u8; 32], file: File, bytes: u64) -> SumEngine {
        self.served.blobs.push(Blob::new(hash, file, bytes));
        self
    }

    /// Holds the scans that begin from now on, until `release`.
    pub(crate) fn hold(&self) {
        self.state.lock().unwrap().held = true;
    }

    pub(crate) fn release(&self) {
        self.state.lock().unwrap().held = false;
        self.changed.notify_all();
    }

    /// Makes the device fail for good.
    pub(crate) fn lose(&self, reason: &str) {
        self.state.lock().unwrap().lost = Some(reason.to_owned());
    }

    /// Makes one of several devices fail for good.
    pub(crate) fn degrade(&self, reason: &str) {
        self.state.lock().unwrap().degraded = Some(reason.to_owned());
    }

    /// Marks a file of the table as changed.
    pub(crate) fn damage(&self, reason: &str) {
        self.state.lock().unwrap().damaged = Some(reason.to_owned());
    }

    fn check(&self) -> Result<(), EngineError> {
        self.damaged().map_or(Ok(()), |reason| Err(EngineError::Damaged { reason }))?;
        self.lost().map_or(Ok(()), |reason| Err(EngineError::Lost { reason }))
    }

    pub(crate) fn batches(&self) -> Vec<usize> {
        self.state.lock().unwrap().batches.iter().map(Vec::len).collect()
    }

    /// Returns the index of the batch that has the query.
    pub(crate) fn batch_of(&self, query: &Query) -> Option<usize> {
        self.state.lock().unwrap().batches.iter().position(|batch| batch.contains(&query.first[0]))
    }

    /// Waits until this many scans have begun.
    pub(crate) fn wait_for_scans(&self, scans: usize) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| state.batches.len() < scans).unwrap());
    }
}

/// Returns the right answer to a query.
pub(crate) fn expected(query: &Query) -> Vec<u8> {
    (0..ANSWER_BYTES)
        .map(|j: usize| query.first[j % 8].wrapping_add(query.second[j % 4]).wrapping_add(j as u8))
        .collect()
}

/// Returns a valid query, different for each seed.
pub(crate) fn query(seed: u8) -> Query {
    let first: Vec<u8> = (0..8).map(|j| seed % 100 + j).collect();
    let second: Vec<u8> = (0..4).map(|j| seed.wrapping_mul(3).wrapping_add(j)).collect();
    Query { first: first.into(), second: second.into(), ..Query::default() }
}

/// Returns the body of valid keys, different for each seed. The bytes of answers under the keys are greater by the lowest byte of
/// the seed.
pub(crate) fn client_keys(preset: &str, words: usize, seed: u32) -> Vec<u8> {
    let keys = EvaluationKeys {
        version: wire::VERSION,
        preset: preset.to_owned(),
        seed: seed.to_le_bytes().to_vec().into(),
        words: vec![seed as u8 % 250; words].into(),
    };
    keys.encode_to_vec()
}

/// Returns the name of a body.
pub(crate) fn key_id(body: &[u8]) -> [u8; 32] {
    blake3::hash(body).into()
}

/// Returns a [`query`] that names keys.
pub(crate) fn keyed_query(seed: u8, keys: &[u8]) -> Query {
    Query { key_id: key_id(keys).to_vec().into(), ..query(seed) }
}

/// Returns a query that makes the engine do something special.
pub(crate) fn special(first_byte: u8) -> Query {
    let mut first = [0; 8];
    first[0] = first_byte;
    Query { first: first.to_vec().into(), second: vec![0; 4].into(), ..Query::default() }
}

impl Engine for SumEngine {
    fn served(&self) -> &Served {
        &self.served
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        self.check()?;
        let refuse = |reason: &str| EngineError::Keys { reason: reason.to_owned() };
        let spec = self.served.keys.as_ref().ok_or_else(|| refuse("there are none"))?;
        let keys = wire::decode_keys(body.to_vec().into()).map_err(|_| refuse("malformed"))?;
        if keys.preset != spec.preset || body.len() != spec.bytes || keys.seed.len() != SEED_BYTES {
            return Err(refuse("of another set"));
        }
        match keys.words.iter().max() {
            Some(&PANICS) => panic!("asked to panic"),
            Some(&REFUSED) => Err(refuse("a coefficient of the keys is too large")),
            _ => Ok(ClientKeys { devices: spec.devices.clone(), keys: Arc::new(keys.seed[0]) }),
        }
    }

    fn answer(&self, queries: &[Query], keys: &[Option<ClientKeys>]) -> Result<Vec<Vec<u8>>, EngineError> {
        if let Some(index) = queries.iter().position(|query| query.first[0] == REFUSED) {
            return Err(EngineError::Query { index, reason: "a coefficient is too large".into() });
        }
        self.check()?;
        if queries.iter().any(|query| query.first[0] == PART_GONE) {
            return Err(EngineError::Unavailable { reason: "part 1: its process is gone".into() });
        }
        if queries.iter().any(|query| query.first[0] == NO_MEMORY) {
            return Err(EngineError::Internal("1000 bytes of device memory are needed, 10 are free".into()));
        }
        let mut state = self.state.lock().unwrap();
        state.batches.push(queries.iter().map(|query| query.first[0]).collect());
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| state.held).unwrap());
        assert!(queries.iter().all(|query| query.first[0] != PANICS), "asked to panic");
        let mut answers: Vec<Vec<u8>> = queries.iter().map(expected).collect();
        assert_eq!(keys.len(), queries.len());
        for (answer, keys) in answers.iter_mut().zip(keys) {
            assert_eq!(keys.is_some(), self.served.keys.is_some());
            let shift = keys.as_ref().map_or(0, |keys| {
                assert_eq!(keys.devices, self.served.placement.devices(), "keys that were opened elsewhere");
                *keys.keys.downcast_ref::<u8>().unwrap()
            });
            answer.iter_mut().for_each(|byte| *byte = byte.wrapping_add(shift));
            answer.resize(self.served.answer_bytes, 0);
        }
        if queries[0].first[0] == SHORT_ANSWER {
            answers[0].pop();
        }
        Ok(answers)
    }

    fn lost(&self) -> Option<String> {
        self.state.lock().unwrap().lost.clone()
    }

    fn degraded(&self) -> Option<String> {
        self.state.lock().unwrap().degraded.clone()
    }

    fn damaged(&self) -> Option<String> {
        self.state.lock().unwrap().damaged.clone()
    }
}
