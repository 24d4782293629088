//! The engine of a table in parts on several devices of one process.
//!
//! Every device opens the batch and scans its part; the first one has a part, too, takes what the others contribute from their
//! memory, and finishes. Source: GPIR (section 6), VIPIR (section 4.5).

use std::{any::Any, panic::resume_unwind, sync::Arc, thread};

use hush_protocol::{
    ProtocolError,
    descriptor::Descriptor,
    hosted_parts::{Contribution, HostedHead, HostedPart, Share},
    page::Page,
    registry::Visitor,
    wire::Query,
};

use crate::{
    ClientKeys, Engine, EngineError, OpenError, Place, Served,
    hosted::{Berth, Files, Stored},
    place::Hosting,
};

/// Makes a table resident in parts, where one scan answers at most `max_batch` queries. The first of `berths`, at least one, has
/// the head.
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
    let files = stored.files(place)?;
    let Stored { descriptor, .. } = stored;
    descriptor.protocol.visit(Open { berths, descriptor, served, files })
}

struct Open<B> {
    berths: Vec<(Share, Berth<B>)>,
    descriptor: Descriptor,
    served: Served,
    /// Of every segment.
    files: Vec<Files>,
}

impl<B: Hosting> Visitor for Open<B>
where
    B::Keys: Send + Sync + 'static,
{
    type Output = Result<Arc<dyn Engine>, OpenError>;

    fn visit<P: Page>(self) -> Self::Output {
        let Self { berths, descriptor, served, files } = self;
        let tables = descriptor.tables::<P>()?;
        let (mut backends, mut rooms) = (Vec::new(), Vec::new());
        for (share, Berth { backend, room, .. }) in berths {
            backends.push((share, backend));
            rooms.push(room);
        }
        let mut backends = backends.into_iter();
        let (own, first) = backends.next().ok_or(ProtocolError::Partials)?;
        let (tables, files) = (&tables, &files);
        let (head, others) = thread::scope(|scope| {
            let open = |(share, backend)| {
                scope.spawn(move || HostedPart::<P, B>::open(backend, tables.clone(), &share, files))
            };
            let opening: Vec<_> = backends.map(open).collect();
            let head = HostedHead::<P, B>::open(first, tables.clone(), &own, files);
            let others =
                opening.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
            (head, others.collect::<Result<Vec<_>, _>>())
        });
        Ok(Arc::new(OnSeveral { head: head?, others: others?, served, _rooms: rooms }))
    }
}

/// A table on several devices.
struct OnSeveral<P: Page, B: Hosting> {
    head: HostedHead<P, B>,
    others: Vec<HostedPart<P, B>>,
    served: Served,
    /// Dropped after the parts.
    _rooms: Vec<Option<Box<dyn Any + Send + Sync>>>,
}

/// Words of a partial, and which of the others has them.
struct There<W> {
    part: usize,
    words: W,
}

impl<P: Page, B: Hosting> OnSeveral<P, B>
where
    B::Keys: Send + Sync + 'static,
{
    /// What all parts but the head's contribute. `keys[i]` are those of the client of `queries[i]`, on every device.
    fn scan(
        &self,
        queries: &[Query],
        keys: &[&Vec<B::Keys>],
    ) -> Result<Vec<Contribution<There<B::Words>>>, ProtocolError> {
        let scan = |part: usize| {
            let mut scanned = Vec::new();
            for (segment, partial) in self.others[part].scan(queries, &keys_on(keys, part + 1))? {
                let there = |words| Ok::<_, ProtocolError>(There { part, words });
                scanned.push((segment, partial.carried(there)?));
            }
            Ok::<_, ProtocolError>(scanned)
        };
        let scanned = thread::scope(|scope| {
            let scanning: Vec<_> =
                (0..self.others.len()).map(|part| scope.spawn(move || scan(part))).collect();
            let joined =
                scanning.into_iter().map(|scan| scan.join().unwrap_or_else(|panic| resume_unwind(panic)));
            joined.collect::<Result<Vec<_>, _>>()
        });
        Ok(scanned?.into_iter().flatten().collect())
    }

    /// The error, by who is to blame: a query, the keys, the engine, or a device that has failed for good.
    fn judge(&self, error: ProtocolError) -> EngineError {
        match (error.into(), self.lost()) {
            (query @ EngineError::Query { .. }, _) => query,
            (_, Some(reason)) => EngineError::Lost { reason },
            (error, None) => error,
        }
    }
}

/// The keys of all queries on one of the devices.
fn keys_on<'k, K>(keys: &[&'k Vec<K>], device: usize) -> Vec<&'k K> {
    keys.iter().map(|keys| &keys[device]).collect()
}

impl<P: Page, B: Hosting> Engine for OnSeveral<P, B>
where
    B::Keys: Send + Sync + 'static,
{
    fn served(&self) -> &Served {
        &self.served
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        let others = self.others.iter().map(|part| part.open_keys(body));
        let opened: Result<Vec<B::Keys>, _> = [self.head.open_keys(body)].into_iter().chain(others).collect();
        let opened = opened.map_err(|error| match EngineError::of_keys(&error) {
            EngineError::Internal(_) => self.judge(error),
            refused => refused,
        });
        Ok(ClientKeys { place: self.served.place, keys: Arc::new(opened?) })
    }

    fn answer(&self, queries: &[Query], keys: &[Option<ClientKeys>]) -> Result<Vec<Vec<u8>>, EngineError> {
        let keys: Vec<&Vec<B::Keys>> = self.served.keys_of(keys)?;
        let keep = |There { part, words }: There<B::Words>| {
            self.head.backend().copy_from(self.others[part].backend(), &words)
        };
        let answers = self.head.answer(queries, &keys_on(&keys, 0), || self.scan(queries, &keys), keep);
        answers.map_err(|error: ProtocolError| self.judge(error))
    }

    fn lost(&self) -> Option<String> {
        let others = self.others.iter().map(HostedPart::backend);
        [self.head.backend()].into_iter().chain(others).find_map(Hosting::lost)
    }
}
