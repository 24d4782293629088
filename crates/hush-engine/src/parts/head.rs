//! The engine of a table whose parts are elsewhere: hands a batch to all of them, and finishes.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use hush_cpu::Cpu;
use hush_protocol::{
    descriptor::Descriptor, hosted::Hosted, page::Page, registry::Visitor, share::Share, wire::Query,
};
use prost::{Message, bytes::Bytes};

use super::{
    Workers,
    message::{Batch, HostPartial, Keys, Reply, Said},
    source::{SegmentFiles, Source},
};
use crate::{
    ClientKeys, Engine, EngineError, MemoryChoice, OpenError, Place, Served, hosted::host_batch,
    memory::mapped_files::MappedFiles, place::Hosting,
};

/// How often a batch is handed to the parts: the second time with the keys that one of them does not have.
const ATTEMPTS: usize = 2;

/// Opens the head of a table whose parts `workers` reaches. What the parts scan is not read.
///
/// # Errors
/// [`OpenError`] names the file and the reason.
pub fn open_head(
    source: &Source,
    workers: Arc<dyn Workers>,
    cpu: Arc<Cpu>,
) -> Result<Arc<dyn Engine>, OpenError> {
    let mut opened = source.open()?;
    opened.bring_blobs()?;
    let max_batch = host_batch(&opened.stored.params);
    let served = opened.stored.served(Place::Parts, max_batch)?;
    let (files, descriptor) = (opened.files(MemoryChoice::default())?, opened.stored.descriptor.clone());
    let mapped = opened.mapped();
    let protocol = descriptor.protocol;
    let head = protocol.visit(Open { backend: cpu, descriptor, served, workers, files, mapped })?;
    opened.forget_others();
    Ok(head)
}

struct Open<B> {
    backend: Arc<B>,
    descriptor: Descriptor,
    served: Served,
    workers: Arc<dyn Workers>,
    /// Of every segment.
    files: Vec<SegmentFiles>,
    /// The files that are mapped while the head is opened.
    mapped: Arc<Mutex<MappedFiles>>,
}

impl<B: Hosting> Visitor for Open<B>
where
    B::Keys: Send + Sync + 'static,
{
    type Output = Result<Arc<dyn Engine>, OpenError>;

    fn visit<P: Page>(self) -> Self::Output {
        let Self { backend, descriptor, served, workers, files, mapped } = self;
        let (tables, seed) = (descriptor.tables::<P>()?, descriptor.public_seed());
        let head = Hosted::<P, B>::open_share(backend, tables, seed, &Share::nothing(), &files);
        let mut mapped = mem::take(&mut *mapped.lock().unwrap_or_else(PoisonError::into_inner));
        mapped.check()?;
        let head = head?;
        mapped.forget_unused();
        Ok(Arc::new(Head { head, served, workers, mapped }))
    }
}

struct Head<P: Page, B: Hosting> {
    head: Hosted<P, B>,
    served: Served,
    workers: Arc<dyn Workers>,
    /// What every batch reads where it is on disk.
    mapped: MappedFiles,
}

/// Keys as the head has them: ready, and as they were uploaded, for parts that do not have them.
struct HeadKeys<K> {
    opened: K,
    body: Bytes,
}

impl<P: Page, B: Hosting> Engine for Head<P, B>
where
    B::Keys: Send + Sync + 'static,
{
    fn served(&self) -> &Served {
        &self.served
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        let opened = self.head.share().open_keys(body).map_err(|error| EngineError::of_keys(&error))?;
        let keys = HeadKeys { opened, body: Bytes::copy_from_slice(body) };
        Ok(ClientKeys { place: Place::Parts, keys: Arc::new(keys) })
    }

    fn answer(&self, queries: &[Query], keys: &[Option<ClientKeys>]) -> Result<Vec<Vec<u8>>, EngineError> {
        let keys: Vec<&HeadKeys<B::Keys>> = self.served.keys_of(keys)?;
        let opened: Vec<&B::Keys> = keys.iter().map(|keys| &keys.opened).collect();
        let keep = |words| self.head.share().backend().keep(words);
        let answers = self.head.answer_with(queries, &opened, || self.scan(queries, &keys), keep)?;
        self.mapped.check().map_err(|error| EngineError::Damaged { reason: error.to_string() })?;
        Ok(answers)
    }

    fn damaged(&self) -> Option<String> {
        Some(self.mapped.check().err()?.to_string())
    }
}

impl<P: Page, B: Hosting> Head<P, B>
where
    B::Keys: Send + Sync + 'static,
{
    /// What all parts contribute.
    fn scan(
        &self,
        queries: &[Query],
        keys: &[&HeadKeys<B::Keys>],
    ) -> Result<Vec<(usize, HostPartial)>, EngineError> {
        let mut batch =
            Batch { epoch: self.served.epoch.to_vec().into(), queries: queries.to_vec(), keys: Vec::new() };
        for _ in 0..ATTEMPTS {
            let replies = self.workers.scan(batch.encode_to_vec().into());
            let replies = replies.map_err(|error| EngineError::Unavailable { reason: error.to_string() })?;
            let (mut partials, mut missing) = (Vec::new(), Vec::new());
            for (part, reply) in replies.into_iter().enumerate() {
                match said(part, reply)? {
                    Said::Scanned(scanned) => {
                        partials.extend(scanned.partials.iter().map(|contribution| contribution.partial()));
                    }
                    Said::Missing(keys) => missing.extend(keys.ids),
                    Said::Refused(query) => {
                        let (index, reason) = (query.index as usize, query.reason);
                        return Err(EngineError::Query { index, reason });
                    }
                    Said::Failed(reason) => return Err(failed(part, &reason)),
                }
            }
            if missing.is_empty() {
                return Ok(partials);
            }
            // All that are named: a part that has some may have dropped them by then.
            let mut named: Vec<Keys> = queries
                .iter()
                .zip(keys)
                .map(|(query, keys)| Keys { id: query.key_id.clone(), body: keys.body.clone() })
                .collect();
            named.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            named.dedup_by(|a, b| a.id == b.id);
            batch.keys = named;
        }
        Err(EngineError::Internal("a part does not take the keys that it asks for".into()))
    }
}

fn said(part: usize, reply: Bytes) -> Result<Said, EngineError> {
    let reply = Reply::decode(reply).map_err(|error| failed(part, &error.to_string()))?;
    reply.said.ok_or_else(|| failed(part, "it says nothing"))
}

fn failed(part: usize, reason: &str) -> EngineError {
    EngineError::Internal(format!("part {part}: {reason}"))
}
