//! Look-ups in an open table.

use std::sync::{Arc, Mutex, PoisonError};

use hush_protocol::{
    Code, Remedy,
    descriptor::Descriptor,
    wire::{self, QueryRequest, ResponseShape},
};
use prost::{Message, bytes::Bytes};
use rayon::prelude::*;

use super::{
    Answers, Event, KeyNote, SessionError, Stats, Task,
    answers::Answered,
    keys::{SessionKeys, limit},
    requests::link::{Context, Link, Retries},
    server::{current, load, newer},
    task::Port,
};
use crate::{ClientError, Decoded, Found, PendingLookup, PreparedQuery, Table, Wanted};

/// The most bytes of the queries in one request, and of the answers in its response, unless a single one is longer.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// The most bytes of prepared queries that a session keeps.
const MAX_PREPARED_BYTES: usize = 256 << 20;

/// The most attempts of a request. An attempt fails if the table changed while it was answered, and changed again before
/// the new state was known.
const CHANGES_PASSED: usize = 8;

/// The look-ups of one request.
#[derive(Clone, Copy)]
struct LookupBatch<'a> {
    wanted: &'a [Wanted],
    /// Whether it is the last request of its call.
    is_last: bool,
}

/// An open table of a server.
pub struct Session {
    context: Arc<Context>,
    name: String,
    table: Arc<Table>,
    stats: Stats,
    keys: SessionKeys,
    /// Queries without targets, each for one look-up in the table as last known.
    prepared: Vec<PreparedQuery>,
}

impl Session {
    pub(super) fn new(link: &Link, name: String, table: Table, stats: Stats) -> Self {
        let context = link.context().clone();
        let table = Arc::new(table);
        Self { context, name, table, stats, keys: SessionKeys::default(), prepared: Vec::new() }
    }

    /// Returns the table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the table as last known. A look-up that a newer epoch answers replaces it.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the traffic and time of the table since it was opened.
    pub fn stats(&self) -> Stats {
        self.stats.shared()
    }

    /// Prepares queries, so that up to `count` are ready for look-ups, which then take a fraction of the time to encrypt and to
    /// decode. Uses all cores. Each prepared query serves one look-up; look-ups beyond them are made as usual. They are dropped
    /// when the table is replaced. Returns the number that is ready, which is less than `count` if more would take over 256 MiB.
    ///
    /// # Errors
    /// [`ClientError::NothingToPrepare`] if the table's protocol prepares nothing.
    pub fn prepare(&mut self, count: usize) -> Result<usize, SessionError> {
        let most = (MAX_PREPARED_BYTES / self.table.prepared_bytes()?).max(1);
        let missing = count.min(most).saturating_sub(self.prepared.len());
        let start = self.context.host.now();
        let made = Mutex::new(Vec::new());
        // Tasks take less code than a parallel iterator: browsers download it.
        rayon::scope(|scope| {
            for _ in 0..missing {
                scope.spawn(|_| {
                    let prepared = self.table.prepare();
                    made.lock().unwrap_or_else(PoisonError::into_inner).push(prepared);
                });
            }
        });
        for prepared in made.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.prepared.push(prepared?);
        }
        self.stats.seconds.prepare += (self.context.host.now() - start).as_secs_f64();
        self.stats.prepared = self.prepared.len() as u64;
        Ok(self.prepared.len())
    }

    /// Looks records up. Returns one result for each of `wanted`, in order. Each result is from an epoch that the table had
    /// during the call.
    ///
    /// The server learns the number of look-ups and nothing else. Duplicates are not merged. The results change neither the
    /// requests nor their times, because all answers stay in memory until the last one has arrived.
    ///
    /// * If records changed on the server, its new descriptor is fetched, and the answers stay valid. If the table was
    ///   replaced, the hint of the new one is fetched and all of `wanted` are looked up again, once.
    /// * New evaluation keys are uploaded before the first look-up with them. If the server lost them, they are uploaded again,
    ///   once for each request. Keys are replaced when they are too old, or have served as many look-ups as the options allow.
    /// * An answer that does not decode changes nothing in this session, but the next session does not use its keys.
    /// * If the hint is the table, each call only fetches the table's descriptor, and the server does not even learn the
    ///   number of look-ups.
    ///
    /// # Errors
    /// The task returns [`SessionError::Client`] before anything is sent if a key is too long, or if a key is given for a
    /// table by position or the reverse. If an index is not in the table, it returns this error after everything was sent.
    /// The errors of requests are possible at any time.
    pub fn look_up<'a>(&'a mut self, wanted: &'a [Wanted]) -> Task<'a, Result<Vec<Found>, SessionError>> {
        let max_queries = self.context.options.max_queries;
        self.look_up_by(wanted, max_queries)
    }

    /// Looks records up as [`Session::look_up`] does, with at most `max_queries` look-ups in one request.
    pub fn look_up_by<'a>(
        &'a mut self,
        wanted: &'a [Wanted],
        max_queries: usize,
    ) -> Task<'a, Result<Vec<Found>, SessionError>> {
        Task::new(move |port| async move { self.found(port, wanted, max_queries).await })
    }

    /// Looks records up as [`Session::look_up_by`] does, and passes the answers of each request to `give` as they arrive, in order.
    ///
    /// The next request waits for `give`. The actions and the time of `give` must not depend on the results, so it passes
    /// the answers to another thread, which decodes them. All requests are sent, whatever the answers are. If the table is
    /// replaced during the call, the look-ups that are not answered yet are sent to the new one.
    ///
    /// # Errors
    /// The errors of [`Session::look_up`]. Answers that were given before an error are valid.
    pub fn look_up_each<'a>(
        &'a mut self,
        wanted: &'a [Wanted],
        max_queries: Option<usize>,
        mut give: impl FnMut(Answers) + Send + 'a,
    ) -> Task<'a, Result<(), SessionError>> {
        let max_queries = max_queries.unwrap_or(self.context.options.max_queries);
        Task::new(move |port| async move { self.given(port, wanted, max_queries, &mut give).await })
    }

    /// Starts a look-up for drivers that cannot borrow. The task owns the session, and returns it beside the result. The errors are
    /// those of [`Session::look_up`].
    pub fn into_look_up(
        mut self,
        wanted: Vec<Wanted>,
    ) -> Task<'static, (Self, Result<Vec<Found>, SessionError>)> {
        Task::new(|port| async move {
            let max_queries = self.context.options.max_queries;
            let found = self.found(port, &wanted, max_queries).await;
            (self, found)
        })
    }

    async fn found(
        &mut self,
        port: Port,
        wanted: &[Wanted],
        max_queries: usize,
    ) -> Result<Vec<Found>, SessionError> {
        let link = Link::new(&self.context, port);
        let mut answered = Vec::new();
        let mut asked = self.ask(&link, wanted, max_queries, &mut |answers| answered.push(answers)).await;
        if let Err(SessionError::EpochGone { descriptor }) = asked {
            answered.clear();
            self.take_epoch(&link, *descriptor).await?;
            asked = self.ask(&link, wanted, max_queries, &mut |answers| answered.push(answers)).await;
        }
        let mut found = asked?;
        // Decoding starts only now, because its time depends on the results: the times of later requests would reveal it.
        // If an error stopped later requests, that would reveal something about the record that could not be read.
        let decoded: Vec<Vec<Decoded>> = link
            .timed(&mut self.stats.seconds.decode, || answered.par_iter().map(Answered::decode).collect());
        for (answered, decoded) in answered.iter().zip(&decoded) {
            self.note_suspect(&link, answered, decoded)?;
        }
        for decoded in decoded.into_iter().flatten() {
            found.push(decoded.found?);
        }
        Ok(found)
    }

    async fn given(
        &mut self,
        port: Port,
        wanted: &[Wanted],
        max_queries: usize,
        give: &mut (dyn FnMut(Answers) + Send),
    ) -> Result<(), SessionError> {
        let link = Link::new(&self.context, port);
        let mut given = Vec::new();
        let mut keep_and_give = |given: &mut Vec<Answers>, answered| {
            let answers = Answers::new(answered);
            given.push(answers.clone());
            give(answers);
        };
        let mut asked =
            self.ask(&link, wanted, max_queries, &mut |answered| keep_and_give(&mut given, answered)).await;
        if let Err(SessionError::EpochGone { descriptor }) = asked {
            // The answers that were given are valid for an epoch that the table had.
            let count: usize = given.iter().map(Answers::len).sum();
            asked = match self.take_epoch(&link, *descriptor).await {
                Ok(()) => {
                    let mut give = |answered| keep_and_give(&mut given, answered);
                    self.ask(&link, &wanted[count..], max_queries, &mut give).await
                }
                Err(error) => Err(error),
            };
        }
        for answers in &given {
            let decoded = link.timed(&mut self.stats.seconds.decode, || answers.decoded());
            if let Some(answered) = answers.sealed() {
                self.note_suspect(&link, answered, decoded)?;
            }
        }
        let found = asked?;
        if !found.is_empty() {
            give(Answers::of(found));
        }
        Ok(())
    }

    /// Replaces the table with the one that the server has now.
    async fn take_epoch(&mut self, link: &Link, descriptor: Descriptor) -> Result<(), SessionError> {
        let table = load(link, descriptor, &mut self.stats).await?;
        self.replace_table(link, table)
    }

    /// Marks keys as suspect after an answer that no honest server sends.
    fn note_suspect(
        &mut self,
        link: &Link,
        answered: &Answered,
        decoded: &[Decoded],
    ) -> Result<(), SessionError> {
        match &answered.keys {
            Some(keys) if decoded.iter().any(|one| !one.is_sound) => {
                self.keys.note(link, &answered.table, keys, KeyNote::Suspect)
            }
            _ => Ok(()),
        }
    }

    /// Sends requests for all of `wanted`, and passes the answers of each request to `give` as they arrive. Returns the
    /// records that need no request.
    async fn ask(
        &mut self,
        link: &Link,
        wanted: &[Wanted],
        max_queries: usize,
        give: &mut (dyn FnMut(Answered) + Send),
    ) -> Result<Vec<Found>, SessionError> {
        // Checked before anything is sent: a failure between requests would reveal which of the records is invalid.
        wanted.iter().try_for_each(|wanted| wanted.check(self.table.descriptor()))?;
        if self.table.facts().is_local() {
            if let Some(table) = newer(link, &self.name, &self.table, &mut self.stats).await? {
                self.replace_table(link, table)?;
            }
            if self.table.facts().is_local() {
                return self.found_here(link, wanted);
            }
        }
        let facts = self.table.facts();
        let by_keys = if facts.keys.is_some() { limit(link) as usize } else { usize::MAX };
        let max_queries = max_queries.min(by_keys);
        let fitting = fitting(facts.query.total(), facts.answer_bytes, max_queries);
        let requests = wanted.len().div_ceil(fitting);
        for (number, wanted) in wanted.chunks(fitting).enumerate() {
            let batch = LookupBatch { wanted, is_last: number + 1 == requests };
            give(self.answered(link, batch).await?);
            link.note_answers();
        }
        Ok(Vec::new())
    }

    /// Looks records up in the hint, without a request.
    fn found_here(&mut self, link: &Link, wanted: &[Wanted]) -> Result<Vec<Found>, SessionError> {
        let table = &self.table;
        let stats = &mut self.stats;
        stats.answers += wanted.len() as u64;
        link.timed(&mut stats.seconds.decode, || {
            wanted
                .par_iter()
                .map(|wanted: &Wanted| {
                    let (_, pending) = table.query(wanted)?;
                    table.decode(&pending, &[])
                })
                .collect::<Result<_, ClientError>>()
                .map_err(SessionError::from)
        })
    }

    /// Replaces the table with a newer state of it, and gives that the keys of this session.
    fn replace_table(&mut self, link: &Link, mut table: Table) -> Result<(), SessionError> {
        let given = link.timed(&mut self.stats.seconds.keys, || self.keys.give(link, &mut table));
        self.prepared.retain(|prepared| table.is_prepared_by(prepared));
        self.stats.prepared = self.prepared.len() as u64;
        self.table = Arc::new(table);
        given
    }

    /// Sends the look-ups of one request. If the server lacks their keys, uploads the keys and sends the request once more.
    async fn answered(&mut self, link: &Link, batch: LookupBatch<'_>) -> Result<Answered, SessionError> {
        match self.exchange(link, batch).await {
            Err(error) if error.code().remedy() == Remedy::UploadKeys => {}
            outcome => return outcome,
        }
        let refused = match self.upload_keys(link).await {
            Err(error) if is_of_no_table(&error) => Some(error),
            uploaded => uploaded.map(|()| None)?,
        };
        let outcome = self.exchange(link, batch).await;
        outcome.map_err(|error| match error.code().remedy() {
            Remedy::UploadKeys => refused.unwrap_or(SessionError::KeysNotKept),
            _ => error,
        })
    }

    /// Prepares keys for `lookups` more look-ups, on both sides.
    async fn prepare_keys(&mut self, link: &Link, lookups: usize) -> Result<(), SessionError> {
        if self.table.facts().keys.is_none() {
            return Ok(());
        }
        let start = link.host().now();
        let drawn = self.keys.draw(link, &mut self.table, lookups).await;
        self.stats.seconds.keys += link.seconds_since(start);
        if !drawn? {
            return Ok(());
        }
        match self.upload_keys(link).await {
            Err(error) if is_of_no_table(&error) => Ok(()),
            outcome => outcome,
        }
    }

    async fn upload_keys(&mut self, link: &Link) -> Result<(), SessionError> {
        let start = link.host().now();
        let uploaded = self.put_keys(link).await;
        self.stats.seconds.keys += link.seconds_since(start);
        uploaded?;
        match self.keys.held(link, &self.table) {
            Some(keys) => self.keys.note(link, &self.table, &keys, KeyNote::Uploaded),
            None => Ok(()),
        }
    }

    async fn put_keys(&mut self, link: &Link) -> Result<(), SessionError> {
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

    /// Sends one request, in as many attempts as are allowed, and returns its response. A failure does not depend on the
    /// targets of the look-ups.
    async fn exchange(&mut self, link: &Link, batch: LookupBatch<'_>) -> Result<Answered, SessionError> {
        for _ in 0..CHANGES_PASSED {
            let (epoch, answers) = self.answers(link, batch).await?;
            if epoch == self.table.descriptor().epoch {
                return Ok(self.answered_by_table(link, answers));
            }
            // Records changed, and the server applied the changes in the meantime.
            let asked = *self.table.asked();
            let table = current(link, &self.name, &mut self.stats).await?;
            self.replace_table(link, table)?;
            if *self.table.asked() != asked {
                return Err(SessionError::EpochGone {
                    descriptor: Box::new(self.table.descriptor().clone()),
                });
            }
            if epoch == self.table.descriptor().epoch {
                let answers = answers
                    .into_iter()
                    .zip(batch.wanted)
                    .map(|((pending, answer), wanted)| Ok((self.table.adopt(pending, wanted)?, answer)))
                    .collect::<Result<_, ClientError>>()?;
                return Ok(self.answered_by_table(link, answers));
            }
        }
        Err(SessionError::ChangesTooFast)
    }

    fn answered_by_table(&self, link: &Link, answers: Vec<(PendingLookup, Bytes)>) -> Answered {
        Answered { table: self.table.clone(), keys: self.keys.held(link, &self.table), answers }
    }

    /// Returns the answers of one request, and the epoch that answered.
    async fn answers(
        &mut self,
        link: &Link,
        batch: LookupBatch<'_>,
    ) -> Result<([u8; 32], Vec<(PendingLookup, Bytes)>), SessionError> {
        // A query that names a geometry may be answered by any epoch with that geometry.
        let epoch = self.table.descriptor().epoch;
        let epoch = (*self.table.asked() == epoch).then_some(&epoch);
        let answer_bytes = self.table.facts().answer_bytes;
        let shape = ResponseShape { epoch, answers: batch.wanted.len(), answer_bytes };
        let elsewhere = |stats: &Stats| stats.seconds.encrypt + stats.seconds.keys;
        let start = link.host().now();
        let before = elsewhere(&self.stats);
        let answered = self.response(link, batch, shape.max_bytes()).await;
        self.stats.seconds.network += link.seconds_since(start) - (elsewhere(&self.stats) - before);
        let (response, pending) = answered?;
        self.stats.bytes_down += response.len() as u64;
        self.stats.answers += batch.wanted.len() as u64;
        let (epoch, answers) = shape.decode(response.into())?;
        Ok((epoch, pending.into_iter().zip(answers).collect()))
    }

    /// Returns a response, and the state that decrypts it. Every attempt encrypts anew.
    async fn response(
        &mut self,
        link: &Link,
        batch: LookupBatch<'_>,
        limit: usize,
    ) -> Result<(Vec<u8>, Vec<PendingLookup>), SessionError> {
        let path = format!("/v1/tables/{}/query", self.name);
        let mut retries = Retries::default();
        loop {
            self.prepare_keys(link, batch.wanted.len()).await?;
            let encrypt = &mut self.stats.seconds.encrypt;
            let prepared = &mut self.prepared;
            let (body, pending) =
                link.timed(encrypt, || encrypt_request(&self.table, batch.wanted, prepared))?;
            self.stats.prepared = self.prepared.len() as u64;
            self.stats.queries += batch.wanted.len() as u64;
            self.stats.bytes_up += body.len() as u64;
            match link.post(&path, body, limit, batch.is_last).await {
                Err(error) => retries.after(link, error).await?,
                Ok(response) => return Ok((response, pending)),
            }
        }
    }
}

/// Returns the number of look-ups in one request for which neither it nor its response is too long.
fn fitting(query_bytes: usize, answer_bytes: usize, max_queries: usize) -> usize {
    (MAX_MESSAGE_BYTES / query_bytes.max(answer_bytes).max(1)).clamp(1, max_queries.max(1))
}

/// Encrypts a request, with the queries that are `prepared` as far as they go. Returns its bytes, and the state that decrypts its
/// answers.
fn encrypt_request(
    table: &Table,
    wanted: &[Wanted],
    prepared: &mut Vec<PreparedQuery>,
) -> Result<(Vec<u8>, Vec<PendingLookup>), ClientError> {
    let prepared = Mutex::new(prepared);
    let encrypted: Result<Vec<_>, _> = wanted
        .par_iter()
        .map(|wanted| {
            // A statement of its own, so that the lock is not held while queries are encrypted.
            let ready = prepared.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match ready {
                Some(prepared) => table.query_prepared(wanted, prepared),
                None => table.query(wanted),
            }
        })
        .collect();
    let (queries, pending) = encrypted?.into_iter().unzip();
    let request = QueryRequest {
        version: wire::VERSION,
        epoch: table.asked().to_vec().into(),
        protocol: table.facts().protocol.name().into(),
        queries,
    };
    Ok((request.encode_to_vec(), pending))
}

/// Returns whether uploaded keys were refused because no table of the server uses such keys, or keys of this length. If the table
/// was replaced or has failed, the server says so at the look-up.
fn is_of_no_table(error: &SessionError) -> bool {
    error.code().remedy() == Remedy::FetchDescriptor || error.code() == Code::TooLarge
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
