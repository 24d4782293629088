//! Look-ups in a table.

use std::time::{Duration, Instant};

use hush_protocol::{
    ProtocolError,
    descriptor::{Descriptor, Lookup},
    keyword::MAX_KEY_BYTES,
    wire::{self, QueryRequest, ResponseShape},
};
use prost::Message;
use rayon::prelude::*;

use super::{
    HttpError, Stats,
    client::Connection,
    keys::{upload, with_keys},
    stats::timed,
};
use crate::{ClientError, Found, PendingLookup, Table, Wanted, table::check_security};

/// Most bytes of queries in one request, and of answers in its response, unless a single one is longer.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// How often a long-lived table asks whether its keys are too old.
const KEY_CHECK: Duration = Duration::from_secs(24 * 3600);

/// What the look-ups of one request came to.
type Outcomes = Vec<Result<Found, ClientError>>;

/// An open table of a server.
pub struct HttpTable {
    connection: Connection,
    name: String,
    table: Table,
    stats: Stats,
    /// When the table got its keys, or they were last found to be young.
    keys_since: Instant,
}

impl HttpTable {
    pub(super) fn new(connection: Connection, name: String, table: Table, stats: Stats) -> Self {
        Self { connection, name, table, stats, keys_since: Instant::now() }
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
    /// are looked up anew, once. If the server does not have this client's evaluation keys, they are uploaded, once for
    /// each request.
    ///
    /// # Errors
    /// [`HttpError::Client`] before anything is sent if a key is too long or the table is looked up the other way,
    /// and after everything was sent if an index is not in the table; else what can go wrong on the way.
    pub fn lookup(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, HttpError> {
        if self.keys_since.elapsed() > KEY_CHECK {
            // New ones, if those in use have got old.
            self.connection.give_keys(&mut self.table)?;
            self.keys_since = Instant::now();
        }
        match self.lookup_epoch(wanted) {
            Err(HttpError::EpochGone { descriptor }) => {
                // A set that was accepted for what it is does not stand for a weaker one.
                let (new, old) = (descriptor.params()?, self.table.params());
                let weaker = new.security_bits() < old.security_bits();
                check_security(&new, self.connection.allow_weak && !weaker)?;
                self.table = self.connection.load(*descriptor, &mut self.stats)?;
                self.keys_since = Instant::now();
                self.lookup_epoch(wanted)
            }
            outcome => outcome,
        }
    }

    fn lookup_epoch(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, HttpError> {
        wanted.iter().try_for_each(|wanted| check(self.table.descriptor(), wanted))?;
        let params = self.table.params();
        let fitting =
            fitting(params.query_bytes().total(), params.answer_bytes(), self.connection.max_queries);
        let mut outcomes = Vec::with_capacity(wanted.len());
        for wanted in wanted.chunks(fitting) {
            outcomes.extend(with_keys(self, |table| table.exchange(wanted), Self::upload_keys)?);
        }
        // Only now: requests that stop early would tell something about the record that could not be read.
        outcomes.into_iter().map(|outcome| outcome.map_err(HttpError::from)).collect()
    }

    fn upload_keys(&mut self) -> Result<(), HttpError> {
        let Self { connection, table, stats, .. } = self;
        let mut seconds = 0.0;
        let outcome = timed(&mut seconds, || upload(&connection.transport, table, stats));
        stats.seconds.keys += seconds;
        outcome
    }

    /// One request and its response. Every attempt has its own ciphertexts. What fails here does so whatever is
    /// wanted; what depends on that is in the outcomes.
    fn exchange(&mut self, wanted: &[Wanted]) -> Result<Outcomes, HttpError> {
        let Self { connection, name, table, stats, .. } = self;
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
        stats.answers += wanted.len() as u64;
        let answers = shape.decode(response.into())?;
        Ok(timed(&mut stats.seconds.decode, || {
            pending.par_iter().zip(&answers).map(|(pending, answer)| table.decode(pending, answer)).collect()
        }))
    }
}

/// Look-ups in one request, so that neither it nor its response gets too long.
fn fitting(query_bytes: usize, answer_bytes: usize, max_queries: usize) -> usize {
    (MAX_MESSAGE_BYTES / query_bytes.max(answer_bytes).max(1)).clamp(1, max_queries)
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

/// Refuses what no table of this kind can be asked for, before anything is sent: a request that fails midway would
/// tell which of the wanted records is odd. Nothing but the kind may come from the server here.
fn check(descriptor: &Descriptor, wanted: &Wanted) -> Result<(), ProtocolError> {
    match (wanted, &descriptor.lookup) {
        (Wanted::Key(key), _) if key.len() > MAX_KEY_BYTES => {
            Err(ProtocolError::KeyTooLong { actual: key.len(), max: MAX_KEY_BYTES })
        }
        (Wanted::Key(_), Lookup::Index) => Err(ProtocolError::WrongLookup { actual: "index", asked: "key" }),
        (Wanted::Index(_), Lookup::Key(_)) => {
            Err(ProtocolError::WrongLookup { actual: "key", asked: "index" })
        }
        (Wanted::Key(_), Lookup::Key(_)) | (Wanted::Index(_), Lookup::Index) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_both_ways() {
        let mib = 1 << 20;
        assert_eq!(fitting(1, 1, 64), 64);
        assert_eq!(fitting(8 * mib, 1, 64), 8);
        assert_eq!(fitting(1, 16 * mib, 64), 4);
        assert_eq!(fitting(1, 65 * mib, 64), 1);
    }
}
