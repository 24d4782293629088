//! Look-ups in a table.

use hush_protocol::{
    ProtocolError,
    descriptor::{Descriptor, Lookup},
    keyword::KeyDigest,
    wire::{self, QueryRequest, ResponseShape},
};
use prost::Message;
use rayon::prelude::*;

use super::{HttpError, Stats, client::Connection, stats::timed};
use crate::{ClientError, Found, PendingLookup, Table, Wanted};

/// Most bytes of queries in one request, unless a single query is longer.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// An open table of a server.
pub struct HttpTable {
    connection: Connection,
    name: String,
    table: Table,
    stats: Stats,
}

impl HttpTable {
    pub(super) fn new(connection: Connection, name: String, table: Table, stats: Stats) -> Self {
        Self { connection, name, table, stats }
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table as it is known now: a look-up that meets a newer epoch replaces it.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// What the table has cost since it was opened.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Looks records up: one result for each of `wanted`, in order, all from the same epoch.
    ///
    /// The server learns how many are wanted, and nothing else: duplicates are not merged, and what is found does
    /// not change what is sent. If the table has changed on the server, its new hint is fetched and all of `wanted`
    /// are looked up anew, once.
    ///
    /// # Errors
    /// [`HttpError::Client`] before anything is sent if one of `wanted` cannot be in this table; else what can go
    /// wrong on the way.
    pub fn lookup(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, HttpError> {
        match self.lookup_epoch(wanted) {
            Err(HttpError::EpochGone { descriptor }) => {
                self.table = self.connection.load(*descriptor, &mut self.stats)?;
                self.lookup_epoch(wanted)
            }
            outcome => outcome,
        }
    }

    fn lookup_epoch(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, HttpError> {
        wanted
            .iter()
            .try_for_each(|wanted| check(self.table.descriptor(), wanted))
            .map_err(ClientError::from)?;
        let (first, second) = self.table.params().query_bytes();
        let fitting = MAX_REQUEST_BYTES / (first + second).max(1);
        let mut found = Vec::with_capacity(wanted.len());
        for wanted in wanted.chunks(fitting.clamp(1, self.connection.max_queries)) {
            found.extend(self.exchange(wanted)?);
        }
        Ok(found)
    }

    /// One request and its response. Every attempt has its own ciphertexts.
    fn exchange(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, HttpError> {
        let Self { connection, name, table, stats } = self;
        let transport = &connection.transport;
        let path = format!("/v1/tables/{name}/query");
        let epoch = table.descriptor().epoch;
        let answer_bytes = table.params().answer_bytes();
        let shape = ResponseShape { epoch: &epoch, answers: wanted.len(), answer_bytes };
        let (mut encrypt, mut whole) = (0.0, 0.0);
        let outcome = timed(&mut whole, || {
            transport.retrying(|| {
                let (request, pending) = timed(&mut encrypt, || request(table, wanted))?;
                stats.queries += wanted.len() as u64;
                stats.bytes_up += request.len() as u64;
                Ok((transport.post(&path, &request, shape.max_bytes())?, pending))
            })
        });
        stats.seconds.encrypt += encrypt;
        stats.seconds.network += whole - encrypt;
        let (response, pending) = outcome?;
        stats.bytes_down += response.len() as u64;
        let answers = shape.decode(response.into())?;
        let found = timed(&mut stats.seconds.decode, || {
            pending.par_iter().zip(&answers).map(|(pending, answer)| table.decode(pending, answer)).collect()
        });
        Ok::<Result<_, ClientError>, HttpError>(found)?.map_err(HttpError::from)
    }
}

/// Encrypts a request, and keeps what decrypts its answers.
fn request(table: &Table, wanted: &[Wanted]) -> Result<(Vec<u8>, Vec<PendingLookup>), ClientError> {
    let encrypted: Result<Vec<_>, _> = wanted.par_iter().map(|wanted| table.query(wanted)).collect();
    let (queries, pending) = encrypted?.into_iter().unzip();
    let request = QueryRequest {
        version: wire::VERSION,
        epoch: table.descriptor().epoch.to_vec().into(),
        protocol: table.params().protocol().name().into(),
        queries,
    };
    Ok((request.encode_to_vec(), pending))
}

/// Refuses what cannot be looked up in this table, without encrypting it: a request that fails midway would tell
/// which of the wanted records is odd.
fn check(descriptor: &Descriptor, wanted: &Wanted) -> Result<(), ProtocolError> {
    match (wanted, &descriptor.lookup) {
        (&Wanted::Index(index), Lookup::Index) if index >= descriptor.records => {
            Err(ProtocolError::IndexOutOfRange { index, last: descriptor.records - 1 })
        }
        (Wanted::Key(key), Lookup::Key(lookup)) => KeyDigest::new(&lookup.seed, key).map(|_| ()),
        (Wanted::Key(_), Lookup::Index) => Err(ProtocolError::WrongLookup { actual: "index", asked: "key" }),
        (Wanted::Index(_), Lookup::Key(_)) => {
            Err(ProtocolError::WrongLookup { actual: "key", asked: "index" })
        }
        (Wanted::Index(_), Lookup::Index) => Ok(()),
    }
}
