//! Concurrent queries of a table become one scan.
//!
//! A scan reads the whole table however many queries it answers. Queries that arrive during a scan therefore wait and share the
//! next one, taken from their clients in turn. An idle table has no thread or task: the request that finds it idle starts a task,
//! which scans until the queue is empty.
//!
//! If the host has little to do with a scan (on a GPU), a second batch runs beside the first, so that its queries are read
//! meanwhile. The second batch must be full. Scans run one after another anyway, so a batch with room for more queries had better
//! wait.

use std::{
    mem,
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

use hush_engine::{ClientKeys, EngineError};
use hush_protocol::{Name, wire::Query};
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    sync::{Notify, oneshot},
    task::JoinSet,
    time::Instant,
};
use tracing::Instrument;

use crate::{
    access::client::ClientAddress,
    keys::OpenedKeys,
    problem::Problem,
    queue::{limits::Reservation, turns::Turns, waits::ScanTime},
    state::{ResidentTable, Server},
    tables,
    upkeep::Background,
};

/// The queue of one table.
#[derive(Default)]
pub(crate) struct Batcher {
    queue: Mutex<Queue>,
    /// Wakes a batch that is being collected.
    arrived: Notify,
}

#[derive(Default)]
struct Queue {
    waiting: Turns<QueryJob>,
    /// Whether a task scans, collects or waits for scans. Only that task takes from `waiting`.
    busy: bool,
    scan_time: ScanTime,
}

struct QueryJob {
    query: Query,
    /// The keys of the query's client, in a table that needs keys.
    keys: Option<Arc<OpenedKeys>>,
    reply: oneshot::Sender<Result<AnsweredBatch, AnswerError>>,
    /// The memory of the request's body, from which the query borrows, until the last query is answered.
    _body: Arc<Reservation>,
    /// The memory of the answer, which is needed even if the client goes during the scan.
    memory: Reservation,
}

/// An answer with its share of the budget.
pub(crate) struct AnsweredBatch {
    pub(crate) words: Vec<u8>,
    pub(crate) memory: Reservation,
}

/// The receiver of the answer to one query.
pub(crate) type QueryReply = oneshot::Receiver<Result<AnsweredBatch, AnswerError>>;

/// Why one query got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// The bytes of the query are malformed for this table.
    Query {
        /// The engine's reason.
        reason: String,
    },
    /// The engine failed; the log says how.
    Internal,
    /// There is no memory for a scan now.
    NoMemory,
    /// A part of the table does not answer now; the log says which.
    PartUnavailable,
    /// The table's GPU has failed for good.
    DeviceLost,
    /// The table failed since the query was read. Holds its name.
    TableFailed(Name),
}

/// Checks whether [`submit`] would accept so many `queries` of `client` now. A caller checks before it opens the keys of the
/// queries.
///
/// # Errors
/// `throttled`, `overloaded`.
pub(crate) fn check_room(
    server: &Server,
    table: &ResidentTable,
    client: ClientAddress,
    queries: usize,
) -> Result<(), Problem> {
    table.batcher.queue.lock().admit(server, table, client, queries)
}

/// Queues the queries of one request of `client`, all or none, and returns a receiver for each. `body` is the memory that their
/// bytes have taken of the budget, `answers` the memory that all answers will take. Must be called inside the async runtime.
///
/// # Errors
/// `throttled`, `overloaded`.
pub(crate) fn submit(
    server: &Arc<Server>,
    table: &Arc<ResidentTable>,
    client: ClientAddress,
    queries: Vec<(Query, Option<Arc<OpenedKeys>>)>,
    body: Reservation,
    mut answers: Reservation,
) -> Result<Vec<QueryReply>, Problem> {
    let mut queue = table.batcher.queue.lock();
    queue.admit(server, table, client, queries.len())?;
    let depth = server.metrics.queue_depth(&table.name);
    depth.inc_by(queries.len() as i64);
    let body = Arc::new(body);
    let replies = queries.into_iter().map(|(query, keys)| {
        let (reply, receiver) = oneshot::channel();
        let memory = answers.split(table.served().answer_bytes);
        queue.waiting.push(client, QueryJob { query, keys, reply, _body: body.clone(), memory });
        receiver
    });
    let replies = replies.collect();
    if queue.busy {
        table.batcher.arrived.notify_one();
    } else {
        queue.busy = true;
        let (server, table, upkeep) = (server.clone(), table.clone(), server.tables.upkeep().clone());
        tokio::spawn(async move {
            upkeep.keep(Background::Scan, || scan_until_idle(server.clone(), table.clone())).await;
        });
    }
    Ok(replies)
}

/// Scans until no query waits.
async fn scan_until_idle(server: Arc<Server>, table: Arc<ResidentTable>) {
    let depth = server.metrics.queue_depth(&table.name);
    let mut scans = JoinSet::new();
    let mut others_waited = false;
    loop {
        match table.batcher.take(table.max_batch(), !scans.is_empty(), &depth) {
            Some(batch) => drop(scans.spawn(scan(server.clone(), table.clone(), batch))),
            None if scans.is_empty() => return,
            None => {}
        }
        tokio::select! {
            Some(scanned) = scans.join_next() => others_waited |= scanned.unwrap_or(true),
            () = table.batcher.filled(table.max_batch()), if scans.len() < table.served().placement.batches_in_flight() => {}
        }
        if scans.is_empty() && mem::take(&mut others_waited) {
            table.batcher.collect(server.config.window, table.max_batch()).await;
        }
    }
}

impl Queue {
    /// Admits `queries` of `client`. Queries whose client has gone do not count.
    ///
    /// # Errors
    /// The errors of [`ScanTime::admit`].
    fn admit(
        &mut self,
        server: &Server,
        table: &ResidentTable,
        client: ClientAddress,
        queries: usize,
    ) -> Result<(), Problem> {
        let config = &server.config;
        let max_batch = table.max_batch();
        if self.scan_time.admit(&self.waiting, client, queries, config, max_batch).is_ok() {
            return Ok(());
        }
        server.metrics.queue_depth(&table.name).dec_by(self.forget_gone());
        self.scan_time.admit(&self.waiting, client, queries, config, max_batch)
    }

    /// Drops the queries whose client has gone. Returns how many there were.
    fn forget_gone(&mut self) -> i64 {
        self.waiting.retain(|job| !job.reply.is_closed()) as i64
    }
}

impl Batcher {
    fn waiting(&self) -> usize {
        self.queue.lock().waiting.len()
    }

    /// Returns the next batch, without queries whose client has gone; a full batch if it runs `beside` others. Returns `None` if
    /// too few queries wait. The table is then idle, unless other batches run.
    fn take(&self, max_batch: usize, beside: bool, depth: &Gauge<i64, AtomicI64>) -> Option<Vec<QueryJob>> {
        let mut queue = self.queue.lock();
        let gone = queue.forget_gone();
        let least = if beside { max_batch } else { 1 };
        let size = if queue.waiting.len() < least { 0 } else { queue.waiting.len().min(max_batch) };
        depth.dec_by(gone + size as i64);
        queue.busy = beside || size > 0;
        (size > 0).then(|| queue.waiting.take(size))
    }

    /// Waits until enough queries for a full batch wait.
    async fn filled(&self, max_batch: usize) {
        while self.waiting() < max_batch {
            self.arrived.notified().await;
        }
    }

    /// Waits until the next batch is full, or for `window`. Clients that were just answered tend to ask again: without the pause
    /// they would miss the scan that starts for those who waited. Returns at once if no query waits.
    async fn collect(&self, window: Duration, max_batch: usize) {
        let full = async {
            while (1..max_batch).contains(&self.waiting()) {
                self.arrived.notified().await;
            }
        };
        // Full or not, the batch closes now.
        let _ = tokio::time::timeout(window, full).await;
    }
}

/// Answers one batch. If the engine refuses a query, its client gets the error, and the other queries are scanned again. Returns
/// whether other queries waited for the last scan, as of before its first answer was sent: a client alone may ask again at once.
async fn scan(server: Arc<Server>, table: Arc<ResidentTable>, mut batch: Vec<QueryJob>) -> bool {
    let mut others_waited = false;
    while !batch.is_empty() {
        let started = Instant::now();
        table.batcher.queue.lock().scan_time.begin();
        let span = tracing::info_span!("scan", table = &*table.name, queries = batch.len() as i64);
        let outcome = ask_engine(&table, &batch).instrument(span).await;
        table.batcher.queue.lock().scan_time.end();
        others_waited = table.batcher.waiting() > 0;
        match outcome {
            Ok(answers) => {
                let elapsed = started.elapsed();
                server.metrics.scanned(&table.name, answers.len(), elapsed);
                table.batcher.queue.lock().scan_time.learn(answers.len(), table.max_batch(), elapsed);
                for (QueryJob { reply, memory, keys, .. }, words) in batch.drain(..).zip(answers) {
                    // The answers go first: a client that has its answer may ask at once for the place of these keys.
                    drop(keys);
                    // A client that has gone meanwhile has dropped its receiver.
                    let _ = reply.send(Ok(AnsweredBatch { words, memory }));
                }
            }
            Err(EngineError::Query { index, reason }) if index < batch.len() => {
                let _ = batch.remove(index).reply.send(Err(AnswerError::Query { reason }));
            }
            Err(error) => {
                let reply = match &error {
                    EngineError::Lost { reason } => {
                        server.tell_lost(reason);
                        AnswerError::DeviceLost
                    }
                    EngineError::Damaged { .. } => {
                        let failed = server.tables.fail_damaged();
                        failed.iter().for_each(|(table, reason)| tables::tell_damaged(table, reason));
                        AnswerError::TableFailed(table.name.clone())
                    }
                    EngineError::Memory { bytes } => {
                        tracing::warn!(
                            table = &*table.name,
                            batch = batch.len(),
                            bytes = *bytes as u64,
                            "cannot answer a batch: its memory is not there"
                        );
                        AnswerError::NoMemory
                    }
                    EngineError::Unavailable { reason } => {
                        tracing::warn!(
                            table = &*table.name,
                            batch = batch.len(),
                            reason,
                            "cannot answer a batch: a part of the table does not reply"
                        );
                        AnswerError::PartUnavailable
                    }
                    error => {
                        tracing::error!(table = &*table.name, batch = batch.len(), %error, "cannot answer a batch: the scan failed");
                        AnswerError::Internal
                    }
                };
                for job in batch.drain(..) {
                    let _ = job.reply.send(Err(reply.clone()));
                }
            }
        }
    }
    others_waited
}

/// Runs the engine on a blocking thread and checks the shape of its answers. Fails with [`EngineError::Internal`] if the engine
/// panics or the shape is wrong.
async fn ask_engine(table: &ResidentTable, batch: &[QueryJob]) -> Result<Vec<Vec<u8>>, EngineError> {
    // Clones of `Bytes`: no ciphertext is copied.
    let queries: Vec<Query> = batch.iter().map(|job| job.query.clone()).collect();
    let keys: Vec<Option<ClientKeys>> =
        batch.iter().map(|job| job.keys.as_ref().map(|opened| opened.keys.clone())).collect();
    let engine = table.engine.clone();
    let answers = tokio::task::spawn_blocking(move || engine.answer(&queries, &keys))
        .await
        .map_err(|_| EngineError::Internal("it panicked".into()))??;
    if answers.len() != batch.len() {
        let actual = answers.len();
        let expected = batch.len();
        let reason = format!("it returned {actual} answers, expected {expected}");
        return Err(EngineError::Internal(reason));
    }
    match answers.iter().find(|answer| answer.len() != table.served().answer_bytes) {
        None => Ok(answers),
        Some(answer) => {
            let actual = answer.len();
            let expected = table.served().answer_bytes;
            let reason = format!("an answer has {actual} bytes, expected {expected}");
            Err(EngineError::Internal(reason))
        }
    }
}
