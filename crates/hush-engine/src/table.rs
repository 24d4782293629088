//! The engine of a table: static inside, `dyn` once.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use hush_protocol::{
    ProtocolError,
    descriptor::Descriptor,
    exchange,
    hosted::Hosted,
    page::{Files, Page},
    registry::Visitor,
    wire::Query,
};
use prost::bytes::Bytes;

use crate::{
    Blob, ClientKeys, Engine, EngineError, OpenError, Served,
    copies::Copies,
    memory::{mapped_files::MappedFiles, server::ScanMemory},
    opening::{Hosting, KeptForTable, ShareToOpen},
    parts::elsewhere::Elsewhere,
};

/// A table that is to be opened: its properties and its files.
pub(crate) struct TableToOpen<F> {
    pub(crate) descriptor: Descriptor,
    pub(crate) served: Served,
    /// The files of every segment.
    pub(crate) files: Vec<F>,
    /// The files that are mapped while the table is opened.
    pub(crate) mapped: MappedFiles,
    /// The memory of scans; `None` if none is on the CPU.
    pub(crate) scans: Option<ScanMemory>,
    /// The shares that other processes have.
    pub(crate) elsewhere: Option<Elsewhere>,
}

impl<F: Files<Error: Into<OpenError> + Send> + Sync> TableToOpen<F> {
    /// Opens the shares that this process has, at least one; a share may have no units.
    pub(crate) fn open<B: Hosting>(self, shares: Vec<ShareToOpen<B>>) -> Result<Arc<dyn Engine>, OpenError> {
        self.descriptor.protocol.visit(Open { table: self, shares })
    }
}

struct Open<F, B> {
    table: TableToOpen<F>,
    shares: Vec<ShareToOpen<B>>,
}

impl<F: Files<Error: Into<OpenError> + Send> + Sync, B: Hosting> Visitor for Open<F, B> {
    type Output = Result<Arc<dyn Engine>, OpenError>;

    fn visit<P: Page>(self) -> Self::Output {
        let Self { table: TableToOpen { descriptor, served, files, mapped, scans, elsewhere }, shares } =
            self;
        let mut tables = descriptor.tables::<P>()?;
        if served.placement.by_query {
            let by_query = tables.iter().map(P::finished_by_query).collect::<Option<_>>();
            tables = by_query.unwrap_or(tables);
        }
        let seed = descriptor.public_seed();
        let opened = exchange::on_all(shares, |_, ShareToOpen { share, backend, kept }| {
            let hosted = Hosted::<P, B>::open_share(backend, tables.clone(), seed, &share, &files);
            hosted.map(|hosted| (hosted, kept))
        });
        // Data read from a file that has changed meanwhile is invalid, whatever the opening returned.
        mapped.check()?;
        let (devices, kept): (Vec<_>, _) = opened.map_err(Into::<OpenError>::into)?.into_iter().unzip();
        drop(files);
        mapped.forget_unused();
        let copies = served.placement.has_copies().then(|| Copies::new(devices.len()));
        Ok(Arc::new(Table { devices, copies, elsewhere, served, mapped, scans, _kept: kept }))
    }
}

/// A table on the devices of its placement.
struct Table<P: Page, B: Hosting> {
    /// The devices of this process, which finish the answers.
    devices: Vec<Hosted<P, B>>,
    /// The batches that each device is answering, if each has the whole table.
    copies: Option<Copies>,
    elsewhere: Option<Elsewhere>,
    served: Served,
    /// The mapped files that every scan reads.
    mapped: MappedFiles,
    /// The memory of scans; `None` if none is on the CPU.
    scans: Option<ScanMemory>,
    /// The memory that the devices keep, dropped after the devices.
    _kept: Vec<Option<KeptForTable>>,
}

/// The keys of a client on the devices of this process. A device opens them when it first uses them.
struct KeysOnDevices<K> {
    on: Vec<OnceLock<K>>,
    /// The keys as they were uploaded, for devices that have not opened them, and shares that are elsewhere.
    body: Bytes,
}

impl<P: Page, B: Hosting> Table<P, B> {
    /// Returns the error with its cause: a query, the keys, the engine, or one of `devices` that has failed for good.
    fn judge(&self, error: ProtocolError, devices: Range<usize>) -> EngineError {
        match (error.into(), self.lost_of(devices)) {
            (query @ EngineError::Query { .. }, _) => query,
            (_, Some(reason)) => EngineError::Lost { reason },
            (error, None) => error,
        }
    }

    /// Returns the reason why one of `devices` has failed for good.
    fn lost_of(&self, devices: Range<usize>) -> Option<String> {
        self.devices[devices].iter().find_map(|device| device.share().backend().lost())
    }

    fn works(&self, device: usize) -> bool {
        self.lost_of(device..device + 1).is_none()
    }

    /// Returns a client's keys on a device, which opens them if it has not yet.
    fn opened<'k>(
        &self,
        device: usize,
        keys: &'k KeysOnDevices<B::Keys>,
    ) -> Result<&'k B::Keys, ProtocolError> {
        let opened = &keys.on[device];
        match opened.get() {
            Some(opened) => Ok(opened),
            None => {
                let own = self.devices[device].share().open_keys(&keys.body)?;
                Ok(opened.get_or_init(|| own))
            }
        }
    }

    /// Answers a batch on `devices`, which together have the whole table.
    fn answer_on(
        &self,
        devices: Range<usize>,
        queries: &[Query],
        keys: &[&KeysOnDevices<B::Keys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let opened = |device: usize| keys.iter().map(|keys| self.opened(device, keys)).collect();
        let opened: Result<Vec<Vec<_>>, _> = devices.clone().map(opened).collect();
        opened
            .and_then(|opened| exchange::answer(&self.devices[devices.clone()], queries, &opened))
            .map_err(|error| self.judge(error, devices))
    }

    /// Answers a batch with all of the table, which is here, or in part in other processes.
    fn answer_batch(
        &self,
        queries: &[Query],
        keys: &[&KeysOnDevices<B::Keys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        match &self.elsewhere {
            Some(elsewhere) => self.answer_with(elsewhere, queries, keys),
            None => self.on_free(|devices| self.answer_on(devices, queries, keys)),
        }
    }

    /// Answers a batch, `most` queries at a time.
    fn answer_some_by_some(
        &self,
        most: usize,
        queries: &[Query],
        keys: &[&KeysOnDevices<B::Keys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let mut answers = Vec::with_capacity(queries.len());
        for first in (0..queries.len()).step_by(most) {
            let some = first..queries.len().min(first + most);
            let keys = if keys.is_empty() { keys } else { &keys[some.clone()] };
            let answered = self.answer_batch(&queries[some], keys);
            answers.extend(answered.map_err(|error| match error {
                EngineError::Query { index, reason } => EngineError::Query { index: first + index, reason },
                error => error,
            })?);
        }
        Ok(answers)
    }

    /// Answers a batch together with the shares that other processes have.
    fn answer_with(
        &self,
        elsewhere: &Elsewhere,
        queries: &[Query],
        keys: &[&KeysOnDevices<B::Keys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let head = &self.devices[0];
        let bodies: Vec<_> = keys.iter().map(|keys| &keys.body).collect();
        let opened = keys.iter().map(|keys| self.opened(0, keys)).collect::<Result<Vec<_>, _>>()?;
        let scan = || elsewhere.scan(&self.served.epoch, queries, &bodies);
        head.answer_with(queries, &opened, scan, |words| head.share().backend().keep(words))
    }

    /// Does `work` on the devices that do it together: all, or those of the copy that is free first. If its device fails for good
    /// meanwhile, another copy does it.
    fn on_free<T>(&self, work: impl Fn(Range<usize>) -> Result<T, EngineError>) -> Result<T, EngineError> {
        let Some(copies) = &self.copies else { return work(0..self.devices.len()) };
        loop {
            let copy = copies.take(|copy| self.works(copy));
            match work(copy.number()..copy.number() + 1) {
                Err(EngineError::Lost { .. }) if self.lost().is_none() => {}
                outcome => return outcome,
            }
        }
    }
}

impl<P: Page, B: Hosting> Engine for Table<P, B> {
    fn served(&self) -> &Served {
        &self.served
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        let keeps_body = self.copies.is_some() || self.elsewhere.is_some();
        let keys = KeysOnDevices {
            on: self.devices.iter().map(|_| OnceLock::new()).collect(),
            body: if keeps_body { Bytes::copy_from_slice(body) } else { Bytes::new() },
        };
        self.on_free(|devices| {
            for device in devices.clone() {
                let opened = self.devices[device].share().open_keys(body);
                let opened = opened.map_err(|error| match EngineError::of_keys(&error) {
                    EngineError::Internal(_) => self.judge(error, devices.clone()),
                    refused => refused,
                })?;
                let _ = keys.on[device].set(opened);
            }
            Ok(())
        })?;
        Ok(ClientKeys { devices: self.served.placement.devices(), keys: Arc::new(keys) })
    }

    fn answer(&self, queries: &[Query], keys: &[Option<ClientKeys>]) -> Result<Vec<Vec<u8>>, EngineError> {
        let keys: Vec<&KeysOnDevices<B::Keys>> = self.served.keys_of(keys)?;
        let fitting = self.scans.as_ref().map_or(Ok(queries.len()), |scans| scans.fitting(queries.len()))?;
        let answers = self.answer_some_by_some(fitting.max(1), queries, &keys);
        // The check follows the scan, and precedes any use of its results.
        self.mapped.check().map_err(|error| EngineError::Damaged { reason: error.to_string() })?;
        answers
    }

    fn lost(&self) -> Option<String> {
        let all = 0..self.devices.len();
        let works = self.copies.is_some() && all.clone().any(|copy| self.works(copy));
        if works { None } else { self.lost_of(all) }
    }

    fn degraded(&self) -> Option<String> {
        let all = 0..self.devices.len();
        let lost = all.clone().filter(|&copy| !self.works(copy)).count();
        let reason = self.copies.as_ref().and_then(|_| self.lost_of(all.clone()))?;
        (lost < all.len()).then(|| format!("{lost} of {} GPUs with a copy have failed: {reason}", all.len()))
    }

    fn damaged(&self) -> Option<String> {
        let mapped = self.mapped.check().err().map(|error| error.to_string());
        mapped.or_else(|| self.served.blobs.iter().find_map(Blob::damaged))
    }
}
