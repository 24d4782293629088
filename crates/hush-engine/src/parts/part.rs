//! A part of a table: takes a batch, and returns its partials.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use hush_ops::OpsError;
use hush_protocol::{
    ProtocolError,
    descriptor::Descriptor,
    hosted::HostedShare,
    page::{Page, Partials},
    registry::Visitor,
    share::Share,
    wire::{KEY_ID_BYTES, Query},
};
use prost::{Message, bytes::Bytes};

use super::{
    message::{Batch, Contribution, HostPartial, Missing, Refused, Reply, Said, Scanned},
    source::{SegmentFiles, Source},
};
use crate::{
    Backends, Device, MemoryChoice, OpenError, Progress,
    memory::{
        mapped_files::MappedFiles,
        server::{ScanMemory, host_batch},
    },
    open::open_on,
    opening::{Hosting, KeptForTable, OpenOn, ShareToOpen},
};

/// A part of a table that is ready to scan. A part is not an [`Engine`](crate::Engine): it exchanges messages with a head, not
/// queries and answers.
pub trait PartEngine: Send + Sync {
    /// Returns the epoch of the table.
    fn epoch(&self) -> [u8; 32];

    /// Returns the device that has the part.
    fn device(&self) -> Device;

    /// Scans a batch and returns the reply to the head of the table, also after a failure. Blocks.
    fn scan(&self, batch: Bytes) -> Vec<u8>;

    /// Returns the reason why the part answers nothing until the process is started again; `None` as long as all is well.
    fn lost(&self) -> Option<String>;
}

/// Opens a part of a table on a GPU of `backends`, or on the CPU. Reads, checks and fetches no more than the part scans.
/// Reports to `progress` why the part is not on a GPU, if there is one.
///
/// # Errors
/// [`OpenError`] names the file and the reason.
pub fn open_part(
    source: &Source,
    share: &Share,
    backends: &Backends,
    progress: &dyn Progress,
) -> Result<Arc<dyn PartEngine>, OpenError> {
    let mut opened = source.open()?;
    let placement = backends.place(&opened.stored.params, Some(share), progress)?;
    // Files that go to a GPU are not kept in the host's memory.
    let memory = if placement.is_on_cpu() { backends.memory() } else { MemoryChoice::Mapped };
    let files = opened.files(memory)?;
    let descriptor = opened.stored.descriptor.clone();
    let part = PartToOpen {
        descriptor,
        device: placement.shares[0].device,
        clients: backends.clients(),
        files,
        mapped: opened.mapped(),
        scans: placement
            .is_on_cpu()
            .then(|| ScanMemory::new(&opened.stored.params, host_batch(&opened.stored.params))),
    };
    let part = open_on(backends, &placement, &opened.stored.params, part, progress)?;
    opened.forget_others();
    Ok(part)
}

/// A part of a table that is to be opened on its device.
struct PartToOpen {
    descriptor: Descriptor,
    device: Device,
    clients: usize,
    /// The files of every segment.
    files: Vec<SegmentFiles>,
    /// The files that are mapped while the part is opened.
    mapped: MappedFiles,
    /// The memory of scans; `None` if none is on the CPU.
    scans: Option<ScanMemory>,
}

impl OpenOn for PartToOpen {
    const FINISHES: bool = false;
    type Output = Arc<dyn PartEngine>;

    fn on<B: Hosting>(
        self,
        mut shares: Vec<ShareToOpen<B>>,
        max_batch: usize,
    ) -> Result<Self::Output, OpenError> {
        let share = shares.pop().expect("a part is one share");
        self.descriptor.protocol.visit(Open { part: self, share, max_batch })
    }
}

struct Open<B> {
    part: PartToOpen,
    share: ShareToOpen<B>,
    max_batch: usize,
}

impl<B: Hosting> Visitor for Open<B> {
    type Output = Result<Arc<dyn PartEngine>, OpenError>;

    fn visit<P: Page>(self) -> Self::Output {
        let Self { part: PartToOpen { descriptor, device, clients, files, mapped, scans }, share, max_batch } =
            self;
        let ShareToOpen { share, backend, kept } = share;
        let tables = descriptor.tables::<P>()?;
        let part = HostedShare::<P, B>::open(backend, tables, descriptor.public_seed(), &share, &files);
        // Data read from a file that has changed meanwhile is invalid, whatever the opening returned.
        mapped.check()?;
        let part = part?;
        mapped.forget_unused();
        let has_keys = descriptor.params()?.facts().keys.is_some();
        let keys = KeyCache { most: clients.max(1), kept: Mutex::default() };
        let epoch = descriptor.epoch;
        Ok(Arc::new(OpenPart { part, mapped, scans, keys, has_keys, max_batch, epoch, device, _kept: kept }))
    }
}

struct OpenPart<P: Page, B: Hosting> {
    part: HostedShare<P, B>,
    /// The mapped files that every scan reads.
    mapped: MappedFiles,
    /// The memory of scans; `None` if none is on the CPU.
    scans: Option<ScanMemory>,
    keys: KeyCache<B::Keys>,
    has_keys: bool,
    /// The most queries that a scan answers.
    max_batch: usize,
    epoch: [u8; 32],
    device: Device,
    /// The memory that the device keeps, dropped after the part and the keys.
    _kept: Option<KeptForTable>,
}

impl<P: Page, B: Hosting> PartEngine for OpenPart<P, B> {
    fn epoch(&self) -> [u8; 32] {
        self.epoch
    }

    fn device(&self) -> Device {
        self.device
    }

    fn lost(&self) -> Option<String> {
        self.part.backend().lost()
    }

    fn scan(&self, batch: Bytes) -> Vec<u8> {
        let said = Batch::decode(batch)
            .map_err(|error| Said::Failed(error.to_string()))
            .and_then(|batch| self.contribution(&batch))
            .and_then(|said| match self.mapped.check() {
                Ok(()) => Ok(said),
                Err(error) => Err(Said::Failed(error.to_string())),
            })
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
        let mut told: Vec<(usize, HostPartial)> = Vec::new();
        let most = batch.queries.len().clamp(1, self.max_batch);
        let most = self.scans.as_ref().map_or(Ok(most), |scans| scans.fitting(most));
        let most = most.map_err(|error| Said::Failed(error.to_string()))?;
        for first in (0..batch.queries.len()).step_by(most) {
            let some = first..batch.queries.len().min(first + most);
            let keys = if self.has_keys { &keys[some.clone()] } else { &[] };
            let scanned = self
                .part
                .open_for_scan(&batch.queries[some], keys)
                .and_then(|opened| self.part.scan(&opened))
                .map_err(|error| refusal(error, first))?;
            for (at, (segment, partial)) in scanned.into_iter().enumerate() {
                let partial = partial
                    .carried(|words: B::Words| Ok(self.part.backend().read(&words)?.into_owned()))
                    .map_err(|error: OpsError| refusal(error.into(), first))?;
                match told.get_mut(at) {
                    Some((_, before)) => behind(P::partials(self.part.host().table), before, partial),
                    None => told.push((segment, partial)),
                }
            }
        }
        let partials = told.iter().map(|(segment, partial)| Contribution::new(*segment, partial)).collect();
        Ok(Said::Scanned(Scanned { partials }))
    }

    /// Returns the keys that the queries name, from the batch or from the cache.
    fn keys_of(&self, batch: &Batch) -> Result<Vec<Arc<B::Keys>>, Said> {
        if !self.has_keys {
            return Ok(Vec::new());
        }
        // Keys that came with the batch serve it, however few the cache keeps.
        let mut came = HashMap::new();
        for keys in &batch.keys {
            let opened = self.part.open_keys(&keys.body).map_err(|error| Said::Failed(error.to_string()))?;
            let opened = Arc::new(opened);
            self.keys.keep(&keys.id, opened.clone());
            came.insert(keys.id.clone(), opened);
        }
        let mut found = Vec::new();
        let mut ids = Vec::new();
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

/// Appends a part's partial for more queries to its partial for the queries before.
fn behind(partials: Partials, before: &mut HostPartial, more: HostPartial) {
    match (partials, &mut before.words[..]) {
        (Partials::Together, [words]) => words.extend(more.words.into_iter().flatten()),
        _ => before.words.extend(more.words),
    }
}

/// Returns the reply for a failed scan of the queries from `first` on.
fn refusal(error: ProtocolError, first: usize) -> Said {
    match error {
        ProtocolError::Query { index, source } => {
            Said::Refused(Refused { index: (first + index) as u64, reason: source.to_string() })
        }
        error => Said::Failed(error.to_string()),
    }
}

/// A cache of opened keys, of the clients that asked last.
struct KeyCache<K> {
    most: usize,
    /// The keys, the most recently used ones in front.
    kept: Mutex<VecDeque<([u8; KEY_ID_BYTES], Arc<K>)>>,
}

impl<K> KeyCache<K> {
    fn get(&self, id: &[u8]) -> Option<Arc<K>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(own, _)| own[..] == *id)?;
        let found = kept.remove(at)?;
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
