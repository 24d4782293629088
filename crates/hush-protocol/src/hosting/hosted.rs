//! A table on a backend: its segments, each in one or several parts.

use std::{ops::Range, slice, sync::Arc};

use hush_he::entities::PublicSeed;
use hush_ops::contract::Steps;

use crate::{
    ProtocolError,
    page::{Batch, Files, Host, Page, Partial},
};

/// A table on a backend.
pub struct Hosted<P: Page, B: Steps> {
    backend: Arc<B>,
    seed: PublicSeed,
    scheme: P::Scheme<B>,
    base: HostedSegment<P, B>,
    /// The segments beside the base, in the order of their answers.
    beside: Vec<HostedSegment<P, B>>,
}

/// A segment on a backend.
struct HostedSegment<P: Page, B: Steps> {
    table: P::Table,
    parts: Vec<P::Part<B>>,
    head: P::Head<B>,
}

impl<P: Page, B: Steps> Hosted<P, B> {
    /// Opens a table of one segment, with the seed of its public values.
    ///
    /// # Errors
    /// `F::Error` if a file is not to be had or is damaged, or the backend cannot hold it.
    pub fn open<F: Files>(
        backend: Arc<B>,
        table: P::Table,
        seed: PublicSeed,
        files: &F,
    ) -> Result<Self, F::Error> {
        Self::open_segments(backend, vec![table], seed, slice::from_ref(files))
    }

    /// Opens a table of several segments, the base first; `files[i]` are those of segment `i`.
    ///
    /// # Errors
    /// As [`Hosted::open`].
    ///
    /// # Panics
    /// If there is no segment.
    pub fn open_segments<F: Files>(
        backend: Arc<B>,
        tables: Vec<P::Table>,
        seed: PublicSeed,
        files: &[F],
    ) -> Result<Self, F::Error> {
        let scheme = P::scheme(&*backend, &tables[0], seed)?;
        let open = |(table, files): (P::Table, &F)| {
            let parts = P::parts(&table);
            HostedSegment::open((&*backend, seed, &scheme), table, &parts, files)
        };
        let mut segments = tables.into_iter().zip(files).map(open);
        let base = segments.next().expect("a table has a base")?;
        let beside = segments.collect::<Result<_, _>>()?;
        Ok(Self { backend, seed, scheme, base, beside })
    }

    /// Opens a table of one segment in parts, whose units are those of the table in order.
    ///
    /// # Errors
    /// As [`Hosted::open`].
    pub fn open_in_parts<F: Files>(
        backend: Arc<B>,
        table: P::Table,
        seed: PublicSeed,
        parts: &[Range<usize>],
        files: &F,
    ) -> Result<Self, F::Error> {
        let scheme = P::scheme(&*backend, &table, seed)?;
        let base = HostedSegment::open((&*backend, seed, &scheme), table, parts, files)?;
        Ok(Self { backend, seed, scheme, base, beside: Vec::new() })
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The parameters of the base.
    pub fn table(&self) -> &P::Table {
        &self.base.table
    }

    /// What is neither part nor head.
    pub fn host(&self) -> Host<'_, P, B> {
        self.base.host(self.context())
    }

    fn context(&self) -> Context<'_, P, B> {
        (&*self.backend, self.seed, &self.scheme)
    }

    /// Reads uploaded evaluation keys.
    ///
    /// # Errors
    /// As [`Page::open_keys`].
    pub fn open_keys(&self, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        P::open_keys(&self.host(), body)
    }

    /// Answers a batch with one pass over each part. `keys[i]` are those of the client of `queries[i]`; none where the protocol has
    /// none. An answer is that of the base, then those of the other segments.
    ///
    /// # Errors
    /// As [`Page::open`], before anything is scanned; [`ProtocolError::Ops`] if a step fails.
    pub fn answer(
        &self,
        queries: &[crate::wire::Query],
        keys: &[&B::Keys],
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (host, batch) = (self.host(), Batch { queries, keys });
        let opened = P::open(&host, &batch)?;
        let mut answers = self.base.answer(&host, &opened, &batch)?;
        for segment in &self.beside {
            let host = segment.host(self.context());
            let own = segment.answer(&host, &P::wrap(&host, &opened)?, &batch)?;
            answers.iter_mut().zip(own).for_each(|(answer, own)| answer.extend(own));
        }
        Ok(answers)
    }
}

/// What all segments of a table have in common.
type Context<'a, P, B> = (&'a B, PublicSeed, &'a <P as Page>::Scheme<B>);

impl<P: Page, B: Steps> HostedSegment<P, B> {
    fn open<F: Files>(
        (backend, seed, scheme): Context<'_, P, B>,
        table: P::Table,
        parts: &[Range<usize>],
        files: &F,
    ) -> Result<Self, F::Error> {
        let host = Host { backend, table: &table, seed, scheme };
        let open = |units: &Range<usize>| P::open_part(&host, units.clone(), files);
        let parts = parts.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let head = P::open_head(&host, &parts, files)?;
        Ok(Self { table, parts, head })
    }

    fn host<'a>(&'a self, (backend, seed, scheme): Context<'a, P, B>) -> Host<'a, P, B> {
        Host { backend, table: &self.table, seed, scheme }
    }

    fn answer(
        &self,
        host: &Host<'_, P, B>,
        opened: &P::Opened<B>,
        batch: &Batch<'_, B>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let scan = |part| P::scan(host, part, opened);
        let partials = self.parts.iter().map(scan).collect::<Result<Vec<Partial<_>>, _>>()?;
        P::finish(host, &self.head, opened, batch, partials)
    }
}
