//! Look-ups in an open table.

use std::{sync::Arc, time::Duration};

use hush_protocol::wire::{self, QueryRequest, ResponseShape};
use prost::{Message, bytes::Bytes};
use rayon::prelude::*;

use super::{
    Event, SessionError, Stats, Task,
    link::{Context, Link, Retries},
    server::{current, give_keys, load},
    task::Port,
};
use crate::{ClientError, Found, PendingLookup, Table, Wanted};

/// Most bytes of queries in one request, and of answers in its response, unless a single one is longer.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// How often a long-lived session asks whether its keys are too old.
const KEY_CHECK: Duration = Duration::from_secs(24 * 3600);

/// How often one request is made again since the table changed while it was answered, and changed again before it was known.
const CHANGES_PASSED: usize = 8;

/// The answers of one request, what decrypts them, and the table of the epoch that has answered.
struct Answered {
    table: Arc<Table>,
    answers: Vec<(PendingLookup, Bytes)>,
}

/// An open table of a server.
pub struct Session {
    context: Arc<Context>,
    name: String,
    table: Arc<Table>,
    stats: Stats,
    /// When the table got its keys, or they were last found to be young, by the host's clock.
    keys_since: Duration,
}

impl Session {
    pub(super) fn new(link: &Link, name: String, table: Table, stats: Stats) -> Self {
        let (context, table) = (link.context().clone(), Arc::new(table));
        Self { context, name, table, stats, keys_since: link.host().now() }
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table as it is known now: a look-up that a newer epoch answers replaces it.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// What the table has cost since it was opened.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Looks records up: one result for each of `wanted`, in order. Each is that of an epoch which the table had meanwhile.
    ///
    /// The server learns how many are wanted, and nothing else: duplicates are not merged, and what is found does
    /// not change what is sent, nor when: all answers are in memory until the last one has come. If records have changed on the
    /// server, its new descriptor is fetched, and what it has answered counts. If there is another table in its place, its new
    /// hint is fetched and all of `wanted` are looked up anew, once. If the server does not have this
    /// client's evaluation keys, they are uploaded, once for each request.
    ///
    /// # Errors
    /// The task's: [`SessionError::Client`] before anything is sent if a key is too long or the table is looked up the
    /// other way, and after everything was sent if an index is not in the table; else what can go wrong on the way.
    pub fn look_up<'a>(&'a mut self, wanted: &'a [Wanted]) -> Task<'a, Result<Vec<Found>, SessionError>> {
        Task::new(|port| async move { self.found(port, wanted).await })
    }

    /// The same for drivers that cannot borrow: the task has the session and gives it back.
    pub fn into_look_up(
        mut self,
        wanted: Vec<Wanted>,
    ) -> Task<'static, (Self, Result<Vec<Found>, SessionError>)> {
        Task::new(|port| async move {
            let found = self.found(port, &wanted).await;
            (self, found)
        })
    }

    async fn found(&mut self, port: Port, wanted: &[Wanted]) -> Result<Vec<Found>, SessionError> {
        let link = Link::new(&self.context, port);
        if link.host().now().saturating_sub(self.keys_since) > KEY_CHECK {
            // New ones, if those in use have got old.
            give_keys(&link, Arc::get_mut(&mut self.table).expect("no look-up is under way")).await?;
            self.keys_since = link.host().now();
        }
        match self.found_in_epoch(&link, wanted).await {
            Err(SessionError::EpochGone { descriptor }) => {
                self.table = Arc::new(load(&link, *descriptor, &mut self.stats).await?);
                self.keys_since = link.host().now();
                self.found_in_epoch(&link, wanted).await
            }
            outcome => outcome,
        }
    }

    async fn found_in_epoch(&mut self, link: &Link, wanted: &[Wanted]) -> Result<Vec<Found>, SessionError> {
        // Before anything is sent: a request that fails midway would tell which of the wanted records is odd.
        wanted.iter().try_for_each(|wanted| wanted.check(&self.table.descriptor().lookup))?;
        let facts = self.table.facts();
        let fitting = fitting(facts.query.total(), facts.answer_bytes, link.options().max_queries);
        let mut answered = Vec::with_capacity(wanted.len());
        for wanted in wanted.chunks(fitting) {
            answered.push(self.answered(link, wanted).await?);
        }
        // Only now: how long it takes depends on what is found, so that requests in between would tell by when they come, and those
        // that stop early would tell something about the record that could not be read.
        let each = |Answered { table, answers }: Answered| {
            answers.into_par_iter().map(move |(pending, answer)| table.decode(&pending, &answer))
        };
        let outcomes: Vec<Result<Found, ClientError>> =
            link.timed(&mut self.stats.seconds.decode, || answered.into_par_iter().flat_map(each).collect());
        outcomes.into_iter().map(|outcome| outcome.map_err(SessionError::from)).collect()
    }

    /// One request's look-ups. If the server lacks their keys, these are uploaded and the request is made once more.
    async fn answered(&mut self, link: &Link, wanted: &[Wanted]) -> Result<Answered, SessionError> {
        match self.exchange(link, wanted).await {
            Err(error) if lacks_keys(&error) => {}
            outcome => return outcome,
        }
        let start = link.host().now();
        let uploaded = self.upload_keys(link).await;
        self.stats.seconds.keys += link.seconds_since(start);
        uploaded?;
        let outcome = self.exchange(link, wanted).await;
        outcome.map_err(|error| if lacks_keys(&error) { SessionError::KeysNotKept } else { error })
    }

    async fn upload_keys(&mut self, link: &Link) -> Result<(), SessionError> {
        let Some((id, body)) = self.table.key_upload() else {
            return Err(link.odd("it asks for keys, of which the table's protocol has none"));
        };
        let bytes = body.len() as u64;
        link.report(&Event::KeysUpload { bytes });
        let path = format!("/v1/keys/{}", hex::encode(id));
        let mut retries = Retries::default();
        loop {
            self.stats.key_bytes_up += bytes;
            match link.put(&path, body.clone()).await {
                Err(error) => retries.after(link, error).await?,
                uploaded => return uploaded,
            }
        }
    }

    /// One request and its response, in as many attempts as are allowed. What fails here does so whatever is wanted.
    async fn exchange(&mut self, link: &Link, wanted: &[Wanted]) -> Result<Answered, SessionError> {
        for _ in 0..CHANGES_PASSED {
            let (epoch, answers) = self.answers(link, wanted).await?;
            if epoch == self.table.descriptor().epoch {
                return Ok(Answered { table: self.table.clone(), answers });
            }
            // Records have changed, which the server took up meanwhile.
            let asked = *self.table.asked();
            self.table = Arc::new(current(link, &self.name, &mut self.stats).await?);
            if *self.table.asked() != asked {
                return Err(SessionError::EpochGone {
                    descriptor: Box::new(self.table.descriptor().clone()),
                });
            }
            if epoch == self.table.descriptor().epoch {
                let table = self.table.clone();
                let adopt = |((pending, answer), wanted)| Ok((table.adopt(pending, wanted)?, answer));
                let answers =
                    answers.into_iter().zip(wanted).map(adopt).collect::<Result<_, ClientError>>()?;
                return Ok(Answered { table, answers });
            }
        }
        Err(SessionError::ChangesTooFast)
    }

    /// The answers of one request, and the epoch that has answered.
    async fn answers(
        &mut self,
        link: &Link,
        wanted: &[Wanted],
    ) -> Result<([u8; 32], Vec<(PendingLookup, Bytes)>), SessionError> {
        let table = self.table.clone();
        // A query that names a geometry is answered by any epoch of it.
        let epoch = &table.descriptor().epoch;
        let epoch = (table.asked() == epoch).then_some(epoch);
        let shape = ResponseShape { epoch, answers: wanted.len(), answer_bytes: table.facts().answer_bytes };
        let (start, encrypted) = (link.host().now(), self.stats.seconds.encrypt);
        let answered = self.response(link, wanted, shape.max_bytes()).await;
        self.stats.seconds.network += link.seconds_since(start) - (self.stats.seconds.encrypt - encrypted);
        let (response, pending) = answered?;
        self.stats.bytes_down += response.len() as u64;
        self.stats.answers += wanted.len() as u64;
        let (epoch, answers) = shape.decode(response.into())?;
        Ok((epoch, pending.into_iter().zip(answers).collect()))
    }

    /// A response, and what decrypts it. Every attempt has its own ciphertexts.
    async fn response(
        &mut self,
        link: &Link,
        wanted: &[Wanted],
        limit: usize,
    ) -> Result<(Vec<u8>, Vec<PendingLookup>), SessionError> {
        let path = format!("/v1/tables/{}/query", self.name);
        let mut retries = Retries::default();
        loop {
            let encrypt = &mut self.stats.seconds.encrypt;
            let (body, pending) = link.timed(encrypt, || encrypt_request(&self.table, wanted))?;
            self.stats.queries += wanted.len() as u64;
            self.stats.bytes_up += body.len() as u64;
            match link.post(&path, body, limit).await {
                Err(error) => retries.after(link, error).await?,
                Ok(response) => return Ok((response, pending)),
            }
        }
    }
}

fn lacks_keys(error: &SessionError) -> bool {
    matches!(error, SessionError::Refused { status: 428, code, .. } if code == "key_not_found")
}

/// Look-ups in one request, so that neither it nor its response gets too long.
fn fitting(query_bytes: usize, answer_bytes: usize, max_queries: usize) -> usize {
    (MAX_MESSAGE_BYTES / query_bytes.max(answer_bytes).max(1)).clamp(1, max_queries.max(1))
}

/// Encrypts a request, and keeps what decrypts its answers.
fn encrypt_request(table: &Table, wanted: &[Wanted]) -> Result<(Vec<u8>, Vec<PendingLookup>), ClientError> {
    let encrypted: Result<Vec<_>, _> = wanted.par_iter().map(|wanted| table.query(wanted)).collect();
    let (queries, pending) = encrypted?.into_iter().unzip();
    let request = QueryRequest {
        version: wire::VERSION,
        epoch: table.asked().to_vec().into(),
        protocol: table.facts().protocol.name().into(),
        queries,
    };
    Ok((request.encode_to_vec(), pending))
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
        assert_eq!(fitting(1, 1, 0), 1);
    }
}
