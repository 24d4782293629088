//! The engine of a table in parts on several devices of one process.
//!
//! Every device opens the batch and scans its part, gets what all of them contribute to its share of the queries, from their
//! memory, and finishes these ([`exchange`]).

use std::{any::Any, panic::resume_unwind, sync::Arc, thread};

use hush_protocol::{
    ProtocolError, descriptor::Descriptor, exchange, hosted::Hosted, page::Page, registry::Visitor,
    share::Share, wire::Query,
};

use crate::{
    ClientKeys, Engine, EngineError, OpenError, Place, Served,
    hosted::{Berth, Files, Stored},
    memory::mapped_files::MappedFiles,
    place::Hosting,
};

/// Makes a table resident in parts, where one scan answers at most `max_batch` queries. There is one of `berths` at least.
pub(crate) fn host<B: Hosting>(
    berths: Vec<(Share, Berth<B>)>,
    place: Place,
    mut stored: Stored,
    max_batch: usize,
) -> Result<Arc<dyn Engine>, OpenError>
where
    B::Keys: Send + Sync + 'static,
{
    let served = stored.served(place, max_batch)?;
    let (files, mapped) = stored.files(place)?;
    let Stored { descriptor, .. } = stored;
    descriptor.protocol.visit(Open { berths, descriptor, served, files, mapped })
}

struct Open<B> {
    berths: Vec<(Share, Berth<B>)>,
    descriptor: Descriptor,
    served: Served,
    /// Of every segment.
    files: Vec<Files>,
    mapped: MappedFiles,
}

impl<B: Hosting> Visitor for Open<B>
where
    B::Keys: Send + Sync + 'static,
{
    type Output = Result<Arc<dyn Engine>, OpenError>;

    fn visit<P: Page>(self) -> Self::Output {
        let Self { berths, descriptor, served, files, mapped } = self;
        let (tables, seed) = (descriptor.tables::<P>()?, descriptor.public_seed());
        let (mut backends, mut rooms) = (Vec::new(), Vec::new());
        for (share, Berth { backend, room, .. }) in berths {
            backends.push((share, backend));
            rooms.push(room);
        }
        let (tables, files) = (&tables, &files);
        let devices = thread::scope(|scope| {
            let open = |(share, backend)| {
                scope.spawn(move || Hosted::<P, B>::open_share(backend, tables.clone(), seed, &share, files))
            };
            let opening: Vec<_> = backends.into_iter().map(open).collect();
            let opened =
                opening.into_iter().map(|device| device.join().unwrap_or_else(|panic| resume_unwind(panic)));
            opened.collect::<Result<Vec<_>, _>>()
        });
        // What was uploaded of a file that is not whole any more is no table. From now on the devices have all of it.
        mapped.check()?;
        let devices = devices?;
        Ok(Arc::new(OnSeveral { devices, served, _rooms: rooms }))
    }
}

/// A table on several devices.
struct OnSeveral<P: Page, B: Hosting> {
    devices: Vec<Hosted<P, B>>,
    served: Served,
    /// Dropped after the parts.
    _rooms: Vec<Option<Box<dyn Any + Send + Sync>>>,
}

impl<P: Page, B: Hosting> OnSeveral<P, B>
where
    B::Keys: Send + Sync + 'static,
{
    /// The error, by who is to blame: a query, the keys, the engine, or a device that has failed for good.
    fn judge(&self, error: ProtocolError) -> EngineError {
        match (error.into(), self.lost()) {
            (query @ EngineError::Query { .. }, _) => query,
            (_, Some(reason)) => EngineError::Lost { reason },
            (error, None) => error,
        }
    }
}

impl<P: Page, B: Hosting> Engine for OnSeveral<P, B>
where
    B::Keys: Send + Sync + 'static,
{
    fn served(&self) -> &Served {
        &self.served
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        let opened: Result<Vec<B::Keys>, _> =
            self.devices.iter().map(|device| device.share().open_keys(body)).collect();
        let opened = opened.map_err(|error| match EngineError::of_keys(&error) {
            EngineError::Internal(_) => self.judge(error),
            refused => refused,
        });
        Ok(ClientKeys { place: self.served.place, keys: Arc::new(opened?) })
    }

    fn answer(&self, queries: &[Query], keys: &[Option<ClientKeys>]) -> Result<Vec<Vec<u8>>, EngineError> {
        let keys: Vec<&Vec<B::Keys>> = self.served.keys_of(keys)?;
        let keys_on = |device: usize| keys.iter().map(|keys| &keys[device]).collect();
        let keys: Vec<_> = (0..self.devices.len()).map(keys_on).collect();
        exchange::answer(&self.devices, queries, &keys).map_err(|error| self.judge(error))
    }

    fn lost(&self) -> Option<String> {
        self.devices.iter().find_map(|device| device.share().backend().lost())
    }
}
