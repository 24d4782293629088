//! What the protocols that pack have in common: which page is whose, the client's query, and how a server reads a batch.
//!
//! A query holds a vector over the columns under a fresh LWE secret; in `exppack-d` and `double-pack` a second vector, over
//! blocks or entries, under the same secret and an independent matrix; and the packed query: an RLWE ciphertext that the
//! server expands into one of every coefficient of that secret (ExpPack) and, in `hybrid`, an RGSW ciphertext of every bit
//! of the entry.

use std::ops::Range;

use hush_he::{
    algorithms::{encrypt_pack_query, open_ring_query},
    codec::pack_rounded,
    entities::LweDecryptionKey,
    params::RingContext,
};
use hush_math::csprng::Csprng;
use hush_ops::contract::{Expanded, LweBatch, LweQueries, PackOps, RlweBatch};
use zeroize::Zeroizing;

use crate::{
    ProtocolError, double_pack, exppack_d, exppack_s, hybrid,
    pack_table::PackTable,
    response::{decrypt_plaintexts, respond},
    ring_keys::RingKeys,
    simple::{check_length, unpack_queries},
    table::Protocol,
    target::Target,
    wire::{self, KEY_ID_BYTES},
};

/// Client: encrypts `target` under fresh secrets.
pub fn query(table: &PackTable, keys: &RingKeys, target: Target, rng: &mut Csprng) -> (wire::Query, Pending) {
    match table.protocol() {
        Protocol::ExppackD => exppack_d::query(table, keys, target, rng),
        Protocol::DoublePack => double_pack::query(table, keys, target, rng),
        Protocol::Hybrid => hybrid::query(table, keys, target, rng),
        _ => exppack_s::query(table, keys, target, rng),
    }
}

/// Server: answers a batch. `keys[i]` are those of the client of `queries[i]`.
///
/// # Errors
/// [`ProtocolError::Query`] with the position of a query that is none of this table, before anything is computed.
pub fn answer<B: PackOps>(
    host: &PackHost<'_, B>,
    queries: &[wire::Query],
    keys: &[&B::Keys],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    match host.table.protocol() {
        Protocol::ExppackD => exppack_d::answer(host, queries, keys),
        Protocol::DoublePack => double_pack::answer(host, queries, keys),
        Protocol::Hybrid => hybrid::answer(host, queries, keys),
        _ => exppack_s::answer(host, queries, keys),
    }
}

/// Client: the slot that was asked for.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer is not as long as the shape says, [`ProtocolError::Keys`] if the query was
/// made with other keys.
pub fn recover(
    table: &PackTable,
    keys: &RingKeys,
    pending: &Pending,
    answer: &[u8],
) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
    match table.protocol() {
        Protocol::ExppackD => exppack_d::recover(table, keys, pending, answer),
        Protocol::DoublePack => double_pack::recover(table, keys, pending, answer),
        Protocol::Hybrid => hybrid::recover(table, keys, pending, answer),
        _ => exppack_s::recover(table, keys, pending, answer),
    }
}

/// A table on a backend.
pub struct PackHost<'a, B: PackOps> {
    /// The backend.
    pub backend: &'a B,
    /// Its tables of the RLWE set.
    pub ring: &'a B::Ring,
    /// The RLWE set.
    pub context: &'a RingContext,
    /// The parameters.
    pub table: &'a PackTable,
    /// The database.
    pub db: &'a B::Db,
    /// The second database, made of the hint (`exppack-d`).
    pub second_db: Option<&'a B::Db>,
    /// The hint in evaluation form ([`PackTable::hint_tiling`]).
    pub hint: &'a B::NttDb,
}

/// What the client keeps between query and answer.
pub struct Pending {
    pub(crate) target: Target,
    /// What is left of the LWE secret.
    pub(crate) lwe: LweDecryptionKey,
    key_id: [u8; KEY_ID_BYTES],
}

/// Client: encrypts `target`; `second` is the block or entry that the second vector selects, `entry` the one whose bits
/// the folds take.
pub(crate) fn encrypt(
    table: &PackTable,
    keys: &RingKeys,
    target: Target,
    second: Option<usize>,
    entry: usize,
    rng: &mut Csprng,
) -> (wire::Query, Pending) {
    let bits: Zeroizing<Vec<u32>> =
        Zeroizing::new((0..table.folds()).map(|fold| (entry >> fold & 1) as u32).collect());
    let (params, context, secrets) = (table.params(), keys.context(), keys.secrets());
    let first = table.first_matrix();
    let columns = (&first, &target.columns[..]);
    let (first, second, packed, lwe) = match second {
        None => {
            let ([first], packed, lwe) = encrypt_pack_query(params, context, secrets, [columns], &bits, rng);
            (first, Vec::new(), packed, lwe)
        }
        Some(row) => {
            let (matrix, row) = (table.second_matrix(), Zeroizing::new([(row as u32, 1)]));
            let vectors = [columns, (&matrix, &row[..])];
            let ([first, second], packed, lwe) =
                encrypt_pack_query(params, context, secrets, vectors, &bits, rng);
            (first, second, packed, lwe)
        }
    };
    let query = wire::Query {
        first: pack_rounded(&first, table.query_bits()).into(),
        second: pack_rounded(&second, table.query_bits()).into(),
        packed: packed.into(),
        key_id: keys.id().to_vec().into(),
    };
    (query, Pending { target, lwe, key_id: keys.id() })
}

/// A batch of queries as a server reads it.
pub(crate) struct Opened<W> {
    /// The vectors over the columns.
    pub(crate) first: LweQueries,
    /// The second vectors, of no words if the protocol has none.
    pub(crate) second: LweQueries,
    /// Selectors for every coefficient of the LWE secret, and bits of the entry.
    pub(crate) expanded: Vec<Expanded<W>>,
}

impl<W> Opened<W> {
    /// The selectors of every query.
    pub(crate) fn selectors(&self) -> Vec<&RlweBatch<W>> {
        self.expanded.iter().map(|expanded| &expanded.selectors).collect()
    }

    /// The bits of the entry of every query.
    pub(crate) fn bits(&self) -> Vec<&[RlweBatch<W>]> {
        self.expanded.iter().map(|expanded| &expanded.bits[..]).collect()
    }

    /// The second vector of one query.
    pub(crate) fn second(&self, index: usize) -> LweQueries {
        let cols = self.second.cols;
        LweQueries { cols, words: self.second.words[index * cols..][..cols].to_vec() }
    }
}

impl<B: PackOps> PackHost<'_, B> {
    /// Reads a batch and expands the packed queries with the clients' keys.
    ///
    /// # Errors
    /// [`ProtocolError::Query`] with the position of a query that is none of this table, before anything is computed;
    /// [`ProtocolError::Length`] if a vector has another length; [`ProtocolError::Keys`] if there are not as many keys as
    /// queries.
    pub(crate) fn open(
        &self,
        queries: &[wire::Query],
        keys: &[&B::Keys],
    ) -> Result<Opened<B::Words>, ProtocolError> {
        if queries.len() != keys.len() {
            return Err(ProtocolError::Keys(format!("{} for {} queries", keys.len(), queries.len())));
        }
        let (table, sizes) = (self.table, self.table.query_bytes());
        for query in queries {
            check_length("query, first dimension", sizes.first, query.first.len())?;
            check_length("query, second dimension", sizes.second, query.second.len())?;
        }
        let packed = queries.iter().enumerate().map(|(index, query)| {
            open_ring_query(self.context, table.leaves(), &query.packed)
                .map_err(|source| ProtocolError::Query { index, source })
        });
        let packed = packed.collect::<Result<Vec<_>, _>>()?;
        let (n, folds) = (table.params().lwe().n(), table.folds());
        let expanded = self.backend.expand(self.ring, keys, &packed, n, folds)?;
        let columns = table.shape().columns;
        let first = unpack_queries(queries, columns, table.query_bits(), |query| &query.first)?;
        let second = match table.second_words() {
            0 => LweQueries { cols: 0, words: Vec::new() },
            cols => unpack_queries(queries, cols, table.query_bits(), |query| &query.second)?,
        };
        Ok(Opened { first, second, expanded })
    }

    /// (3) Packs the first fold of a batch: a ciphertext for every plane of every entry.
    pub(crate) fn pack_first(
        &self,
        folded: &LweBatch<B::Words>,
        selectors: &[&RlweBatch<B::Words>],
    ) -> Result<Vec<RlweBatch<B::Words>>, ProtocolError> {
        let shape = self.table.first_shape();
        Ok(self.backend.pack(self.ring, self.hint, folded, &shape, 0..shape.plaintexts(), selectors)?)
    }

    /// (3) Packs `columns` of the second shape for one query, with a hint that depends on the query: `hint` has the rows of
    /// these columns (n words each), `folded` all rows of the shape.
    pub(crate) fn pack_online(
        &self,
        folded: &LweBatch<B::Words>,
        hint: &B::Words,
        columns: Range<usize>,
        selectors: &RlweBatch<B::Words>,
    ) -> Result<RlweBatch<B::Words>, ProtocolError> {
        let (shape, n) = (self.table.second_shape(), self.table.params().lwe().n());
        let hint = self.backend.lift_hint(self.ring, hint, n, &shape, columns.clone())?;
        let mut packed = self.backend.pack(self.ring, &hint, folded, &shape, columns, &[selectors])?;
        Ok(packed.remove(0))
    }

    /// Packs, switches and joins the ciphertexts that are left of each query.
    pub(crate) fn respond(
        &self,
        keys: &[&B::Keys],
        ciphertexts: &[RlweBatch<B::Words>],
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let ciphertexts: Vec<_> = ciphertexts.iter().collect();
        respond(self.backend, self.ring, self.context, keys, &ciphertexts)
    }
}

/// Client: the bytes of all plaintexts of an answer.
///
/// # Errors
/// [`ProtocolError::Length`] if the answer is not as long as the shape says, [`ProtocolError::Keys`] if the query was
/// made with other keys.
pub(crate) fn decrypt(
    table: &PackTable,
    keys: &RingKeys,
    pending: &Pending,
    answer: &[u8],
) -> Result<Zeroizing<Vec<u32>>, ProtocolError> {
    if pending.key_id != keys.id() {
        return Err(ProtocolError::Keys("the query was made with others".into()));
    }
    decrypt_plaintexts(keys.context(), keys.answer_secrets(), answer, table.answer_plaintexts(), u8::BITS)
}
