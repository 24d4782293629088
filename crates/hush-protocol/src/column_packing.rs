//! What the protocols of column packing have in common: which page is whose, the client's query, and how a server reads a
//! batch.
//!
//! A query holds a vector over the columns and the keys that pack its answer, under one secret that is drawn for it. The client
//! keeps what decrypts the answer, and nothing beyond it; the server keeps nothing of a client.

use hush_he::{
    algorithms::{encrypt_column_query, open_column_keys},
    codec::pack_rounded,
    entities::{ColumnKeys, ColumnMasks, OneTimeRingSecret, RingDecryptionKey},
    params::{ColumnParams, RingContext},
};
use hush_math::csprng::Csprng;
use hush_ops::contract::{ColumnOps, LweBatch, LweQueries, key_words};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    ProtocolError, colpack, colpack_s,
    column_table::ColumnTable,
    response::decrypt_plaintexts,
    simple::{check_length, unpack_queries},
    table::Protocol,
    target::Target,
    wire,
};

/// The ring of a parameter set and its public masks, which clients and servers derive alike.
pub struct ColumnScheme {
    context: RingContext,
    masks: ColumnMasks,
}

impl ColumnScheme {
    /// Ring and masks of `params`.
    pub fn new(params: &ColumnParams) -> Self {
        let context = RingContext::new(*params.ring());
        let masks = ColumnMasks::new(&context);
        Self { context, masks }
    }

    /// The ring.
    pub fn context(&self) -> &RingContext {
        &self.context
    }

    /// The masks.
    pub fn masks(&self) -> &ColumnMasks {
        &self.masks
    }
}

/// Server: answers a batch.
///
/// # Errors
/// [`ProtocolError::Query`] with the position of a query that is none of this table, before anything is computed.
pub fn answer<B: ColumnOps>(
    host: &ColumnHost<'_, B>,
    queries: &[wire::Query],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    match host.table.protocol() {
        Protocol::ColpackS => colpack_s::answer(host, queries),
        _ => colpack::answer(host, queries),
    }
}

/// Client: the slot that was asked for.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer is not as long as the shape says.
pub fn recover(
    table: &ColumnTable,
    scheme: &ColumnScheme,
    pending: &Pending,
    answer: &[u8],
) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
    match table.protocol() {
        Protocol::ColpackS => colpack_s::recover(table, scheme, pending, answer),
        _ => colpack::recover(table, scheme, pending, answer),
    }
}

/// A table on a backend.
pub struct ColumnHost<'a, B: ColumnOps> {
    /// The backend.
    pub backend: &'a B,
    /// Its tables of the ring.
    pub ring: &'a B::Ring,
    /// The ring and its masks.
    pub scheme: &'a ColumnScheme,
    /// The parameters.
    pub table: &'a ColumnTable,
    /// The database.
    pub db: &'a B::Db,
    /// The pack columns.
    pub columns: &'a B::Db,
    /// The polynomials of the chain.
    pub chain: &'a B::Chain,
    /// The masks of all plaintexts as they travel ([`colpack_s::switched_masks`]); empty in `colpack`.
    pub masks: &'a [u8],
}

/// What the client keeps between query and answer.
pub struct Pending {
    pub(crate) target: Target,
    key: RingDecryptionKey,
}

/// Client: encrypts `target`, and the power of X that selects its entry where entries are folded, under a fresh secret. A retry is
/// a new call.
pub fn query(
    table: &ColumnTable,
    scheme: &ColumnScheme,
    target: Target,
    rng: &mut Csprng,
) -> (wire::Query, Pending) {
    let (params, matrix) = (table.params(), table.matrix());
    let (entry, _) = table.place(target.block);
    let secret = OneTimeRingSecret::sample(params, rng);
    let (words, keys, key) = encrypt_column_query(
        params,
        &scheme.context,
        &scheme.masks,
        secret,
        (&matrix, &target.columns),
        table.exponent(entry),
        rng,
    );
    let first = pack_rounded(&words, table.query_bits()).into();
    let query = wire::Query { first, packed: keys.into(), ..Default::default() };
    (query, Pending { target, key })
}

/// Client: the bytes of all plaintexts of an answer.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer is not as long as the shape says.
pub(crate) fn decrypt(
    table: &ColumnTable,
    scheme: &ColumnScheme,
    pending: &Pending,
    answer: &[u8],
) -> Result<Zeroizing<Vec<u32>>, ProtocolError> {
    let secrets = [pending.key.secret(); 2];
    decrypt_plaintexts(&scheme.context, secrets, answer, table.answer_plaintexts(), u8::BITS)
}

/// A batch of queries as a server reads it.
pub(crate) struct Opened {
    /// The vectors over the columns.
    pub(crate) first: LweQueries,
    /// The keys that came with them.
    pub(crate) keys: Vec<ColumnKeys>,
}

impl<B: ColumnOps> ColumnHost<'_, B> {
    /// Reads a batch.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if a part has another length; [`ProtocolError::Query`] with the position of a query that is
    /// none of this table.
    pub(crate) fn open(&self, queries: &[wire::Query]) -> Result<Opened, ProtocolError> {
        let (table, sizes) = (self.table, self.table.query_bytes());
        for query in queries {
            check_length("query, vector", sizes.first, query.first.len())?;
            check_length("query, second vector", sizes.second, query.second.len())?;
            check_length("query, keys", sizes.packed, query.packed.len())?;
            check_length("query, name of keys", sizes.key_id, query.key_id.len())?;
        }
        let context = self.scheme.context();
        let open = |(index, query): (usize, &wire::Query)| {
            open_column_keys(table.params(), context, table.folds(), &query.packed)
                .map_err(|source| ProtocolError::Query { index, source })
        };
        // The first of several errors, whatever the order in which they are found.
        let keys: Vec<Result<_, _>> = queries.par_iter().enumerate().map(open).collect();
        let keys = keys.into_iter().collect::<Result<_, _>>()?;
        let first = unpack_queries(queries, table.shape().columns, table.query_bits(), |query| &query.first)?;
        Ok(Opened { first, keys })
    }

    /// (3c) Packs the fold of a batch: the word of a row becomes a coefficient of its plaintext's b.
    pub(crate) fn pack(
        &self,
        folded: LweBatch<B::Words>,
        keys: &[ColumnKeys],
    ) -> Result<LweBatch<B::Words>, ProtocolError> {
        let degree = self.table.params().ring().degree();
        let words: Vec<_> = keys.par_iter().map(|keys| key_words(degree, &[&keys.rotation]).words).collect();
        let words = LweQueries { cols: self.table.columns_tiling().cols(), words: words.concat() };
        let conjugations: Vec<_> = keys.iter().map(|keys| &keys.conjugation).collect();
        let packed =
            self.backend.pack_columns(self.ring, self.columns, self.chain, folded, &words, &conjugations);
        Ok(packed?)
    }
}
