//! The engine of a table: static inside, `dyn` once.

use std::sync::Arc;

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
    memory::mapped_files::MappedFiles,
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
        let Self { table: TableToOpen { descriptor, served, files, mapped, elsewhere }, shares } = self;
        let tables = descriptor.tables::<P>()?;
        let seed = descriptor.public_seed();
        let opened = exchange::on_all(shares, |_, ShareToOpen { share, backend, kept }| {
            let hosted = Hosted::<P, B>::open_share(backend, tables.clone(), seed, &share, &files);
            hosted.map(|hosted| (hosted, kept))
        });
        // Data read from a file that has changed meanwhile is invalid, whatever the opening returned.
        mapped.check()?;
        let (devices, kept) = opened.map_err(Into::<OpenError>::into)?.into_iter().unzip();
        drop(files);
        mapped.forget_unused();
        Ok(Arc::new(Table { devices, elsewhere, served, mapped, _kept: kept }))
    }
}

/// A table on the devices of its placement.
struct Table<P: Page, B: Hosting> {
    /// The devices of this process, which finish the answers.
    devices: Vec<Hosted<P, B>>,
    elsewhere: Option<Elsewhere>,
    served: Served,
    /// The mapped files that every scan reads.
    mapped: MappedFiles,
    /// The memory that the devices keep, dropped after the devices.
    _kept: Vec<Option<KeptForTable>>,
}

/// The keys of a client on every device of this process.
struct KeysOnDevices<K> {
    on: Vec<K>,
    /// The keys as they were uploaded, for shares that are elsewhere.
    body: Bytes,
}

impl<P: Page, B: Hosting> Table<P, B> {
    /// Returns the error with its cause: a query, the keys, the engine, or a device that has failed for good.
    fn judge(&self, error: ProtocolError) -> EngineError {
        match (error.into(), self.lost()) {
            (query @ EngineError::Query { .. }, _) => query,
            (_, Some(reason)) => EngineError::Lost { reason },
            (error, None) => error,
        }
    }
}

impl<P: Page, B: Hosting> Engine for Table<P, B> {
    fn served(&self) -> &Served {
        &self.served
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        let opened: Result<Vec<_>, _> =
            self.devices.iter().map(|device| device.share().open_keys(body)).collect();
        let on = opened.map_err(|error| match EngineError::of_keys(&error) {
            EngineError::Internal(_) => self.judge(error),
            refused => refused,
        })?;
        let body = self.elsewhere.as_ref().map_or_else(Bytes::new, |_| Bytes::copy_from_slice(body));
        let devices = self.served.placement.devices();
        Ok(ClientKeys { devices, keys: Arc::new(KeysOnDevices { on, body }) })
    }

    fn answer(&self, queries: &[Query], keys: &[Option<ClientKeys>]) -> Result<Vec<Vec<u8>>, EngineError> {
        let keys: Vec<&KeysOnDevices<B::Keys>> = self.served.keys_of(keys)?;
        let on = |device: usize| keys.iter().map(|keys| &keys.on[device]).collect::<Vec<_>>();
        let answers = match (&self.elsewhere, &self.devices[..]) {
            (Some(elsewhere), [head, ..]) => {
                let bodies: Vec<_> = keys.iter().map(|keys| &keys.body).collect();
                head.answer_with(
                    queries,
                    &on(0),
                    || elsewhere.scan(&self.served.epoch, queries, &bodies),
                    |words| head.share().backend().keep(words),
                )
            }
            (_, devices) => {
                let keys: Vec<_> = (0..devices.len()).map(on).collect();
                exchange::answer(devices, queries, &keys).map_err(|error| self.judge(error))
            }
        };
        // The check follows the scan, and precedes any use of its results.
        self.mapped.check().map_err(|error| EngineError::Damaged { reason: error.to_string() })?;
        answers
    }

    fn lost(&self) -> Option<String> {
        self.devices.iter().find_map(|device| device.share().backend().lost())
    }

    fn damaged(&self) -> Option<String> {
        let mapped = self.mapped.check().err().map(|error| error.to_string());
        mapped.or_else(|| self.served.blobs.iter().find_map(Blob::damaged))
    }
}
