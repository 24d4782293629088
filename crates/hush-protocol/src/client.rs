//! A client's half of a table, independent of the type of the page.

use std::{any::Any, sync::Arc};

use hush_he::entities::PublicSeed;
use hush_math::csprng::Csprng;
use zeroize::Zeroizing;

use crate::{ProtocolError, page::Page, ring_keys::RingKeys, target::Target, wire};

/// A hint in memory or in a mapped file.
pub type Hint = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The inputs of a client's half beside the table's parameters. The table's facts say which of them it needs.
#[derive(Clone)]
pub struct Given {
    /// The seed of the table's public values.
    pub seed: PublicSeed,
    /// The hint, if the table has one to download.
    pub hint: Option<Hint>,
    /// The seed of the whitening, if the table is whitened.
    pub whitening: Option<[u8; 32]>,
    /// The client's evaluation keys, if the table has any.
    pub keys: Option<Arc<RingKeys>>,
}

impl Given {
    /// Creates the inputs with a seed and nothing else.
    pub fn new(seed: PublicSeed) -> Self {
        Self { seed, hint: None, whitening: None, keys: None }
    }
}

/// The state that a client keeps between query and answer.
pub struct Pending {
    secrets: Box<dyn Any + Send + Sync>,
    target: Target,
}

/// The part of a query that a client makes before it knows the target. It is consumed by its only query.
pub struct Prepared(Box<dyn Any + Send + Sync>);

/// A client's half of a table.
pub trait ClientHalf: Send + Sync {
    /// Encrypts `target` under fresh secrets. A retry is a new call.
    fn query(&self, target: Target, rng: &mut Csprng) -> (wire::Query, Pending);

    /// Makes the part of a query that does not depend on the target, under fresh secrets. `recovers` is whether it also makes
    /// the part of [`ClientHalf::recover`] that does not depend on the answer; the query then asks no segment beside this one.
    ///
    /// # Errors
    /// [`ProtocolError`] if the hint is malformed.
    fn prepare(&self, recovers: bool, rng: &mut Csprng) -> Result<Prepared, ProtocolError>;

    /// Completes a prepared query with its target.
    ///
    /// # Errors
    /// [`ProtocolError::OtherTable`] if it was prepared for a table of another page.
    fn ask(
        &self,
        prepared: Prepared,
        target: Target,
        rng: &mut Csprng,
    ) -> Result<(wire::Query, Pending), ProtocolError>;

    /// Returns the slot that the query of `pending` asked for.
    ///
    /// # Errors
    /// [`ProtocolError`] if the answer has a wrong length, or if the query was made with other keys.
    /// [`ProtocolError::OtherTable`] if the query was made for a table of another page.
    fn recover(&self, pending: &Pending, answer: &[u8]) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        self.recover_at(pending, &pending.target, answer)
    }

    /// Returns the slot of `target` in a segment beside the base. The query of `pending` asked all segments.
    fn recover_at(
        &self,
        pending: &Pending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError>;
}

/// A table of the page `P`, with the client's half.
pub(crate) struct AskedTable<P: Page> {
    table: P::Table,
    client: P::Client,
}

impl<P: Page> AskedTable<P> {
    pub(crate) fn new(table: P::Table, given: &Given) -> Result<Self, ProtocolError> {
        let client = P::client(&table, given)?;
        Ok(Self { table, client })
    }

    /// Completes a query. Compiled once for both ways to ask, because browsers download it for every page.
    #[inline(never)]
    fn complete(&self, prepared: P::Prepared, target: Target, rng: &mut Csprng) -> (wire::Query, Pending) {
        let (query, pending) = P::ask(&self.table, &self.client, prepared, &target, rng);
        (query, Pending { secrets: Box::new(PendingOf::<P>(pending)), target })
    }
}

/// The pending query of a page. A type of its own for each page, even where pages share `P::Pending`.
struct PendingOf<P: Page>(P::Pending);

/// The prepared query of a page.
struct PreparedOf<P: Page>(P::Prepared);

impl<P: Page> ClientHalf for AskedTable<P> {
    fn query(&self, target: Target, rng: &mut Csprng) -> (wire::Query, Pending) {
        self.complete(P::prepare(&self.table, &self.client, rng), target, rng)
    }

    fn prepare(&self, recovers: bool, rng: &mut Csprng) -> Result<Prepared, ProtocolError> {
        let mut prepared = P::prepare(&self.table, &self.client, rng);
        if recovers {
            P::prepare_recovery(&self.table, &self.client, &mut prepared)?;
        }
        Ok(Prepared(Box::new(PreparedOf::<P>(prepared))))
    }

    fn ask(
        &self,
        prepared: Prepared,
        target: Target,
        rng: &mut Csprng,
    ) -> Result<(wire::Query, Pending), ProtocolError> {
        let prepared = prepared.0.downcast::<PreparedOf<P>>().map_err(|_| ProtocolError::OtherTable)?;
        Ok(self.complete(prepared.0, target, rng))
    }

    fn recover_at(
        &self,
        pending: &Pending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let secrets = pending.secrets.downcast_ref::<PendingOf<P>>();
        let PendingOf(secrets) = secrets.ok_or(ProtocolError::OtherTable)?;
        P::recover(&self.table, &self.client, secrets, target, answer)
    }
}
