//! One part of a table: a batch in, what it contributes out.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use hush_cpu::Cpu;
use hush_ops::OpsError;
use hush_protocol::{
    ProtocolError,
    descriptor::Descriptor,
    hosted_parts::{HostedPart, Share},
    page::{Page, Partial},
    registry::Visitor,
    wire::{KEY_ID_BYTES, Query},
};
use prost::{Message, bytes::Bytes};

use super::{
    message::{Batch, Contribution, Missing, Refused, Reply, Said, Scanned},
    source::{SegmentFiles, Source},
};
use crate::{OpenError, place::Hosting};

/// A part of a table that is ready to scan.
pub trait PartEngine: Send + Sync {
    /// Of the table.
    fn epoch(&self) -> [u8; 32];

    /// What the part says to a batch: a message for the head of the table, whatever comes of it. Blocks.
    fn scan(&self, batch: Bytes) -> Vec<u8>;
}

/// Opens a part of a table on the CPU. No more is read, checked and fetched than the part scans. Evaluation keys of `clients`
/// clients are in memory at most.
///
/// # Errors
/// [`OpenError`] names the file and the reason.
pub fn open_part(
    source: &Source,
    share: &Share,
    cpu: Arc<Cpu>,
    clients: usize,
) -> Result<Arc<dyn PartEngine>, OpenError> {
    let mut opened = source.open()?;
    let (files, descriptor) = (opened.files()?, opened.stored.descriptor.clone());
    let part = descriptor.protocol.visit(Open { backend: cpu, descriptor, share, clients, files })?;
    opened.forget_others();
    Ok(part)
}

struct Open<'a, B> {
    backend: Arc<B>,
    descriptor: Descriptor,
    share: &'a Share,
    clients: usize,
    /// Of every segment.
    files: Vec<SegmentFiles>,
}

impl<B: Hosting> Visitor for Open<'_, B>
where
    B::Keys: Send + Sync + 'static,
{
    type Output = Result<Arc<dyn PartEngine>, OpenError>;

    fn visit<P: Page>(self) -> Self::Output {
        let Self { backend, descriptor, share, clients, files } = self;
        let tables = descriptor.tables::<P>()?;
        let part = HostedPart::<P, B>::open(backend, tables, share, &files)?;
        let has_keys = descriptor.params()?.facts().keys.is_some();
        let keys = KeyCache { most: clients.max(1), kept: Mutex::default() };
        Ok(Arc::new(OpenPart { part, keys, has_keys, epoch: descriptor.epoch }))
    }
}

struct OpenPart<P: Page, B: Hosting> {
    part: HostedPart<P, B>,
    keys: KeyCache<B::Keys>,
    has_keys: bool,
    epoch: [u8; 32],
}

impl<P: Page, B: Hosting> PartEngine for OpenPart<P, B>
where
    B::Keys: Send + Sync,
{
    fn epoch(&self) -> [u8; 32] {
        self.epoch
    }

    fn scan(&self, batch: Bytes) -> Vec<u8> {
        let said = Batch::decode(batch)
            .map_err(|error| Said::Failed(error.to_string()))
            .and_then(|batch| self.contribution(&batch))
            .unwrap_or_else(|refusal| refusal);
        Reply { said: Some(said) }.encode_to_vec()
    }
}

impl<P: Page, B: Hosting> OpenPart<P, B> {
    fn contribution(&self, batch: &Batch) -> Result<Said, Said> {
        if batch.epoch != self.epoch[..] {
            return Err(Said::Failed("the part is of another epoch".into()));
        }
        let keys = self.keys_of(batch)?;
        let keys: Vec<&B::Keys> = keys.iter().map(|keys| &**keys).collect();
        let partials = self.part.scan(&batch.queries, &keys).map_err(refusal)?;
        let read = |words: B::Words| Ok(self.part.backend().read(&words)?.into_owned());
        let told = |(segment, partial): (usize, Partial<B::Words>)| {
            let partial = partial.carried(read).map_err(|error: OpsError| refusal(error.into()))?;
            Ok(Contribution::new(segment, &partial))
        };
        let partials = partials.into_iter().map(told).collect::<Result<_, _>>()?;
        Ok(Said::Scanned(Scanned { partials }))
    }

    /// The keys that the queries name, those that came with the batch among them.
    fn keys_of(&self, batch: &Batch) -> Result<Vec<Arc<B::Keys>>, Said> {
        if !self.has_keys {
            return Ok(Vec::new());
        }
        // Those that came are there for this batch, however few are kept.
        let mut came = HashMap::new();
        for keys in &batch.keys {
            let opened = self.part.open_keys(&keys.body).map_err(|error| Said::Failed(error.to_string()))?;
            let opened = Arc::new(opened);
            self.keys.keep(&keys.id, opened.clone());
            came.insert(keys.id.clone(), opened);
        }
        let (mut found, mut ids) = (Vec::new(), Vec::new());
        for Query { key_id, .. } in &batch.queries {
            match came.get(key_id).cloned().or_else(|| self.keys.get(key_id)) {
                Some(keys) => found.push(keys),
                None => ids.push(key_id.clone()),
            }
        }
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() { Ok(found) } else { Err(Said::Missing(Missing { ids })) }
    }
}

fn refusal(error: ProtocolError) -> Said {
    match error {
        ProtocolError::Query { index, source } => {
            Said::Refused(Refused { index: index as u64, reason: source.to_string() })
        }
        error => Said::Failed(error.to_string()),
    }
}

/// Opened keys of the clients that asked last.
struct KeyCache<K> {
    most: usize,
    /// The one that asked last in front.
    kept: Mutex<VecDeque<([u8; KEY_ID_BYTES], Arc<K>)>>,
}

impl<K> KeyCache<K> {
    fn get(&self, id: &[u8]) -> Option<Arc<K>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(own, _)| own[..] == *id)?;
        let found = kept.remove(place)?;
        let keys = found.1.clone();
        kept.push_front(found);
        Some(keys)
    }

    fn keep(&self, id: &[u8], keys: Arc<K>) {
        let Ok(id) = id.try_into() else { return };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((id, keys));
        kept.truncate(self.most);
    }
}
