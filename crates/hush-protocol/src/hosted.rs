//! A table on a backend, in one or several parts.

use std::{ops::Range, sync::Arc};

use hush_ops::contract::Steps;

use crate::{
    ProtocolError,
    page::{Batch, Files, Host, Page},
};

/// A table on a backend.
pub struct Hosted<P: Page, B: Steps> {
    backend: Arc<B>,
    table: P::Table,
    scheme: P::Scheme<B>,
    parts: Vec<P::Part<B>>,
    head: P::Head<B>,
}

impl<P: Page, B: Steps> Hosted<P, B> {
    /// Opens the whole table.
    ///
    /// # Errors
    /// `F::Error` if a file is not to be had or is damaged, or the backend cannot hold it.
    pub fn open<F: Files>(backend: Arc<B>, table: P::Table, files: &F) -> Result<Self, F::Error> {
        let all = 0..P::facts(&table).units;
        Self::open_in_parts(backend, table, &[all], files)
    }

    /// Opens the table in parts, whose units are those of the table in order.
    ///
    /// # Errors
    /// As [`Hosted::open`].
    pub fn open_in_parts<F: Files>(
        backend: Arc<B>,
        table: P::Table,
        parts: &[Range<usize>],
        files: &F,
    ) -> Result<Self, F::Error> {
        let scheme = P::scheme(&*backend, &table)?;
        let host = Host { backend: &*backend, table: &table, scheme: &scheme };
        let open = |units: &Range<usize>| P::open_part(&host, units.clone(), files);
        let parts = parts.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let head = P::open_head(&host, &parts, files)?;
        Ok(Self { backend, table, scheme, parts, head })
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The parameters.
    pub fn table(&self) -> &P::Table {
        &self.table
    }

    /// What is neither part nor head.
    pub fn host(&self) -> Host<'_, P, B> {
        Host { backend: &self.backend, table: &self.table, scheme: &self.scheme }
    }

    /// Reads uploaded evaluation keys.
    ///
    /// # Errors
    /// As [`Page::open_keys`].
    pub fn open_keys(&self, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        P::open_keys(&self.host(), body)
    }

    /// Answers a batch with one pass over each part. `keys[i]` are those of the client of `queries[i]`; none where the protocol has
    /// none.
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
        let scan = |part| P::scan(&host, part, &opened);
        let partials = self.parts.iter().map(scan).collect::<Result<Vec<_>, _>>()?;
        P::finish(&host, &self.head, &opened, &batch, partials)
    }
}
