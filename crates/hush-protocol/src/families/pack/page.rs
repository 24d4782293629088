//! The common part of the pages whose answers are packed with a client's uploaded evaluation keys.
//!
//! A query holds a vector over the columns under a fresh LWE secret, and the packed query. In `exppack-d` and `double-pack`
//! it also holds a second vector, over blocks or entries, under the same secret and an independent matrix. The packed query
//! is an RLWE ciphertext. The server expands it to a ciphertext of every coefficient of the LWE secret (ExpPack) and, in
//! `hybrid`, to an RGSW ciphertext of every bit of the entry.

use std::{ops::Range, slice, sync::Arc};

use hush_he::{
    algorithms::{encrypt_pack_query, open_ring_query},
    codec::pack_rounded,
    entities::{LweDecryptionKey, PublicMatrix, PublicSeed},
    params::{PACK_M31, PackParams},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweBatch, LweOps, LweQueries, PackOps, RingOps, RlweBatch, Steps},
    ntt_tiling::NttTiledDb,
    path::{Content, Step},
    steps::{Expand, LweFold, Pack},
    tiling::{TiledDb, Tiling},
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    client::Given,
    expansions::Expansions,
    facts::{
        DB_FILE, Database, Facts, FileSpec, HintPlan, HintProduct, LIFTED_FILE, SECOND_DB_FILE, SecondDb,
        WordBits,
    },
    halves::{HeadFacts, PartFacts},
    message::{check_vectors, unpack_queries},
    pack_host::words_of,
    pack_table::{DIGITS, PackSpec, PackTable, Second},
    page::{Batch, Files, Host, Page, Partial, Partials},
    parts::joined_rows,
    registry::Protocol,
    response::{ciphertext_words, decrypt_plaintexts},
    ring_keys::{RingKeys, RingScheme, given_keys, upload_bytes},
    table::{SegmentShape, TableShape, invalid_descriptor},
    target::Target,
    wire::{self, KEY_ID_BYTES},
};

pub use crate::pack_host::{PackHost, PackedRows};

/// A page whose answers are packed with evaluation keys.
pub trait PackPage: Send + Sync + 'static {
    /// [`Page::NAME`].
    const NAME: &'static str;
    /// The facts in which the protocols of the family differ.
    const SPEC: PackSpec;

    /// [`Page::columns`].
    fn columns(params: &PackParams, slots: usize, slot_bytes: usize) -> usize;

    /// Returns the steps of [`PackPage::pack_rows`] for `units`, and the number of words that these contribute to each query's
    /// answer.
    fn part_behind(table: &PackTable, units: &Range<usize>) -> (Vec<Step>, usize) {
        let ring = *table.params().ring();
        let shape = table.part_shape(units);
        let hint = table.lifted_tiling(shape.plaintexts());
        let pack = Step::of_batch(Pack { ring, hint, shape });
        (vec![pack], shape.plaintexts() * ciphertext_words(&ring))
    }

    /// Returns the steps of [`PackPage::finish`] from the contributions of `parts`.
    fn path_behind(table: &PackTable, parts: &[Range<usize>]) -> Vec<Step>;

    /// Returns an array of words for each query: its rows, packed.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if a step fails.
    fn pack_rows<B: PackOps>(
        host: &PackHost<'_, B>,
        rows: &PackedRows<B>,
        opened: &OpenedPack<B::Words>,
        folded: LweBatch<B::Words>,
    ) -> Result<Vec<B::Words>, ProtocolError> {
        Ok(words_of(host.pack_first(rows, &folded, &opened.selectors())?)) // (3)  a ciphertext a plane and entry
    }

    /// [`Page::finish`].
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if a step fails.
    fn finish<B: PackOps>(
        host: &PackHost<'_, B>,
        head: &PackHead<B>,
        opened: &OpenedPack<B::Words>,
        keys: &[&B::Keys],
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError>;

    /// [`Page::recover`], from the bytes of all plaintexts of an answer.
    fn recover(
        table: &PackTable,
        keys: &RingKeys,
        pending: &PackPending,
        target: &Target,
        bytes: &[u32],
    ) -> Zeroizing<Vec<u8>>;
}

/// A page whose answers are packed with evaluation keys, as a [`Page`].
pub struct Packed<P>(P);

/// A client's half of a table.
pub struct PackClient {
    /// The client's keys.
    pub keys: Arc<RingKeys>,
    /// The seed of the public matrices.
    pub seed: PublicSeed,
}

/// The state that the client keeps between query and answer.
pub struct PackPending {
    /// The part of the LWE secret that decrypts the answer.
    pub(crate) lwe: LweDecryptionKey,
    key_id: [u8; KEY_ID_BYTES],
}

/// A part of a table: some entries, or some blocks in a page with [`Second::Block`].
pub struct PackPart<B: LweOps + RingOps> {
    /// The range of entries or blocks.
    units: Range<usize>,
    db: B::Db,
    /// The rows of the part, unless whoever finishes a query packs them.
    rows: Option<PackedRows<B>>,
}

/// The data that finishing an answer needs beside the parts.
pub struct PackHead<B: LweOps + RingOps> {
    /// The second database and its hint in evaluation form, in a page with [`Second::Block`].
    second: Option<(B::Db, B::NttDb)>,
    /// All rows, in another page, if whoever finishes a query packs them.
    rows: Option<PackedRows<B>>,
}

impl<B: LweOps + RingOps> PackHead<B> {
    /// Returns the second database and its hint.
    ///
    /// # Panics
    /// If the page has no second database.
    pub(crate) fn second(&self) -> &(B::Db, B::NttDb) {
        self.second.as_ref().expect("a page whose second vector selects a block")
    }
}

/// A batch of queries in the form in which a server reads it.
pub struct OpenedPack<W> {
    /// The vectors over the columns.
    pub first: LweQueries,
    /// The second vectors. They have no words if the protocol has none.
    pub second: LweQueries,
    /// The selectors for every coefficient of the LWE secret, and the bits of the entry.
    pub expanded: Expansions<W>,
    /// The number of rounds that fold the entries. They use the lowest bits of the entry.
    folds: usize,
}

impl<W> OpenedPack<W> {
    /// Returns the selectors of every query.
    pub(crate) fn selectors(&self) -> Vec<&RlweBatch<W>> {
        self.expanded.all().iter().map(|expanded| &expanded.selectors).collect()
    }

    /// Returns the bits of the entry of every query.
    pub(crate) fn bits(&self) -> Vec<&[RlweBatch<W>]> {
        self.expanded.all().iter().map(|expanded| &expanded.bits[..self.folds]).collect()
    }
}

impl<P: PackPage> Page for Packed<P> {
    const PROTOCOL: Protocol = P::SPEC.protocol;
    const NAME: &'static str = P::NAME;

    type Set = PackParams;
    type Table = PackTable;
    type Client = PackClient;
    type Prepared = ();
    type Pending = PackPending;
    type Scheme<B: Steps> = RingScheme<B>;
    type Part<B: Steps> = PackPart<B>;
    type Head<B: Steps> = PackHead<B>;
    type Opened<B: Steps> = OpenedPack<B::Words>;

    fn default_set(_: usize) -> PackParams {
        PACK_M31
    }

    fn columns(params: &PackParams, slots: usize, slot_bytes: usize) -> usize {
        P::columns(params, slots, slot_bytes)
    }

    fn table(params: PackParams, shape: TableShape) -> Result<PackTable, ProtocolError> {
        PackTable::new(P::SPEC, params, shape)
    }

    fn described(
        params: PackParams,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<PackTable, ProtocolError> {
        match word_bits {
            Some([query, hint, answer]) if [hint, answer] == [params.ring().plaintext_bits(); 2] => {
                PackTable::with_query_bits(P::SPEC, params, shape, query)
            }
            Some(_) => Err(invalid_descriptor("words are packed at other widths than the parameter set's")),
            None => Err(invalid_descriptor("a table whose answers are packed has widths of words")),
        }
    }

    fn segment(base: &PackTable, shape: SegmentShape) -> Result<PackTable, ProtocolError> {
        base.segment(shape)
    }

    fn facts(table: &PackTable) -> Facts {
        let params = table.params();
        let first = table.first_shape();
        let lwe = params.lwe();
        let ring = params.ring();
        Facts {
            protocol: P::SPEC.protocol,
            preset: params.name(),
            security_bits: params.security_bits(),
            sigmas: table.sigmas(),
            log2_failure: table.log2_failure(),
            shape: table.shape(),
            word_bits: Some([table.query_bits(), ring.plaintext_bits(), ring.plaintext_bits()]),
            query: table.query_bytes(),
            answer_bytes: table.answer_bytes(),
            hint_bytes: 0,
            is_hint_compressed: false,
            keys: Some(*ring),
            key_bytes: upload_bytes(ring),
            prepared_bytes: 0,
            is_whitened: false,
            encoded_bytes: table.tiling().stored_bytes(),
            units: if P::SPEC.second == Second::Block { table.shape().blocks } else { first.entries() },
            lanes: table.chosen_blocks(),
            segments: table.segment_rule(),
            details: vec![
                ("lwe_dimension", json!(lwe.n())),
                ("error_std", json!(lwe.error_std())),
                ("rows", json!(table.rows())),
                ("ring_degree", json!(ring.degree())),
                ("word_bits", json!({ "query": table.query_bits(), "packed": ring.plaintext_bits() })),
                ("entries", json!(first.entries())),
                ("folds", json!(table.folds())),
                ("lanes", json!(table.lanes())),
                ("planes", json!(first.planes())),
                ("lifted_bytes", json!(table.hint_tiling().stored_bytes())),
            ],
        }
    }

    fn partials(table: &PackTable) -> Partials {
        if table.packs_by_query() { Partials::Together } else { Partials::Apart }
    }

    fn scans_expansions(table: &PackTable) -> bool {
        !table.packs_by_query()
    }

    /// Returns the table whose hint every device has, so that the words of the first fold are exchanged, and each device packs for
    /// its own queries (VIPIR, section 4.5).
    fn finished_by_query(table: &PackTable) -> Option<PackTable> {
        (!table.packs_by_query()).then(|| table.packed_by_query())
    }

    fn database(table: &PackTable) -> Database {
        Database::Bytes(table.tiling())
    }

    fn hint(table: &PackTable) -> Option<HintPlan> {
        let second = || SecondDb {
            items: table.shape().slot_bytes * table.params().lwe().n(),
            digits: DIGITS,
            tiling: table.second_tiling(),
            matrix: table.second_matrix(),
        };
        let second = (P::SPEC.second == Second::Block).then(second);
        let product = HintProduct::Lifted { ring: *table.params().ring(), shape: table.hint_shape() };
        Some(HintPlan { matrix: table.first_matrix(), rows: table.rows(), second, product })
    }

    fn files(table: &PackTable) -> Vec<FileSpec> {
        let file = |name, title, content| FileSpec { name, title, content };
        let mut files = vec![file(DB_FILE, "database", Content::Bytes(table.tiling()))];
        files.extend(
            (P::SPEC.second == Second::Block)
                .then(|| file(SECOND_DB_FILE, "second database", Content::Bytes(table.second_tiling()))),
        );
        files.push(file(LIFTED_FILE, "hint", Content::Eval(table.hint_tiling())));
        files
    }

    fn opening(table: &PackTable) -> Vec<Step> {
        let ring = *table.params().ring();
        let rows = table.params().lwe().n();
        vec![Step::of_batch(Expand { ring, rows, folds: table.folds() })]
    }

    fn part(table: &PackTable, units: &Range<usize>) -> PartFacts {
        let db = Tiling::new(table.rows_of(units).len(), table.shape().columns);
        let mut files = vec![FileSpec { name: DB_FILE, title: "database", content: Content::Bytes(db) }];
        let rows = table.rows_of(units).len();
        if table.packs_by_query() {
            return PartFacts { files, steps: vec![Step::of_batch(LweFold { db })], words: rows };
        }
        let lifted = Content::Eval(table.lifted_tiling(table.part_shape(units).plaintexts()));
        files.push(FileSpec { name: LIFTED_FILE, title: "hint", content: lifted });
        let (behind, words) = P::part_behind(table, units);
        PartFacts { files, steps: [vec![Step::of_batch(LweFold { db })], behind].concat(), words }
    }

    fn head(table: &PackTable, parts: &[Range<usize>]) -> HeadFacts {
        if !table.packs_by_query() {
            return HeadFacts { files: Vec::new(), steps: P::path_behind(table, parts) };
        }
        let files = Self::files(table).into_iter().filter(|file| file.name != DB_FILE).collect();
        if P::SPEC.second == Second::Block {
            return HeadFacts { files, steps: P::path_behind(table, parts) };
        }
        let all = 0..table.first_shape().entries();
        let (packing, _) = P::part_behind(table, &all);
        HeadFacts { files, steps: [packing, P::path_behind(table, slice::from_ref(&all))].concat() }
    }

    fn client(_: &PackTable, given: &Given) -> Result<PackClient, ProtocolError> {
        Ok(PackClient { keys: given_keys(given)?, seed: given.seed })
    }

    fn prepare(_: &PackTable, _: &PackClient, _: &mut Csprng) {}

    fn ask(
        table: &PackTable,
        client: &PackClient,
        (): (),
        target: &Target,
        rng: &mut Csprng,
    ) -> (wire::Query, PackPending) {
        let (entry, _) = table.place(target.block);
        let second = match P::SPEC.second {
            Second::None => None,
            Second::Block => Some(target.block),
            Second::Entry => Some(entry),
        };
        encrypt(table, client, target, second, entry, rng)
    }

    fn recover(
        table: &PackTable,
        client: &PackClient,
        pending: &PackPending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let keys = &client.keys;
        keys.check_id(&pending.key_id)?;
        let plaintexts = table.answer_plaintexts();
        let secrets = keys.answer_secrets();
        let bits = table.params().ring().response_bits();
        let bytes = decrypt_plaintexts(keys.context(), secrets, answer, bits, plaintexts, u8::BITS)?;
        Ok(P::recover(table, keys, pending, target, &bytes))
    }

    fn scheme<B: Steps>(
        backend: &B,
        table: &PackTable,
        _: PublicSeed,
    ) -> Result<RingScheme<B>, ProtocolError> {
        RingScheme::new(backend, table.params().ring())
    }

    fn open_part<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        units: Range<usize>,
        files: &F,
    ) -> Result<PackPart<B>, F::Error> {
        let backend = host.backend;
        let table = host.table;
        let tiling = table.tiling();
        let rows = table.rows_of(&units);
        let bytes = files.part(DB_FILE, &[tiling.bytes_of_rows(&rows)])?;
        let db = TiledDb::new(tiling, bytes).map_err(ProtocolError::from)?;
        let db = backend.open_db(db.rows(rows.clone())).map_err(ProtocolError::from)?;
        let rows = (!table.packs_by_query())
            .then(|| PackHost::new(host).open_rows(units.clone(), files))
            .transpose()?;
        Ok(PackPart { units, db, rows })
    }

    fn open_head<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        _: &[PackPart<B>],
        files: &F,
    ) -> Result<PackHead<B>, F::Error> {
        let backend = host.backend;
        let table = host.table;
        if !table.packs_by_query() {
            return Ok(PackHead { second: None, rows: None });
        }
        if P::SPEC.second != Second::Block {
            let rows = PackHost::new(host).open_rows(0..table.first_shape().entries(), files)?;
            return Ok(PackHead { second: None, rows: Some(rows) });
        }
        let db = TiledDb::new(table.second_tiling(), files.bytes(SECOND_DB_FILE)?);
        let db = db.and_then(|db| backend.open_db(db)).map_err(ProtocolError::from)?;
        let hint = NttTiledDb::new(table.hint_tiling(), files.bytes(LIFTED_FILE)?);
        let hint = hint.and_then(|hint| backend.open_ntt_db(&host.scheme.ring, hint));
        Ok(PackHead { second: Some((db, hint.map_err(ProtocolError::from)?)), rows: None })
    }

    fn open_keys<B: Steps>(host: &Host<'_, Self, B>, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        host.scheme.open_keys(host.backend, body)
    }

    /// Parses a batch, and expands its own packed queries with the clients' keys.
    fn open<B: Steps>(
        host: &Host<'_, Self, B>,
        batch: &Batch<'_, B>,
        own: &Range<usize>,
    ) -> Result<OpenedPack<B::Words>, ProtocolError> {
        let table = host.table;
        let queries = batch.queries;
        batch.check_keys()?;
        check_vectors(table.query_bytes(), queries)?;
        let n = table.params().lwe().n();
        let folds = table.folds();
        let bits = table.query_bits();
        let Host { backend, scheme, .. } = host;
        let read = |query: &wire::Query| open_ring_query(&scheme.context, n, folds, &query.packed);
        let packed = batch.read_some(own, read)?;
        let expanded = backend.expand(&scheme.ring, &batch.keys[own.clone()], &packed, n, folds)?;
        let expanded = Expansions::new(own.start, expanded);
        let first = unpack_queries(queries, table.shape().columns, bits, |query| &query.first)?;
        let second = unpack_queries(queries, table.second_words(), bits, |query| &query.second)?;
        Ok(OpenedPack { first, second, expanded, folds })
    }

    fn expansions<B: Steps>(opened: &mut OpenedPack<B::Words>) -> Option<&mut Expansions<B::Words>> {
        Some(&mut opened.expanded)
    }

    fn wrap<B: Steps>(
        host: &Host<'_, Self, B>,
        opened: &OpenedPack<B::Words>,
    ) -> Result<OpenedPack<B::Words>, ProtocolError> {
        let first = opened.first.wrapped(host.table.shape().columns)?;
        let second = opened.second.clone();
        Ok(OpenedPack { first, second, expanded: opened.expanded.clone(), folds: host.table.folds() })
    }

    fn narrow<B: Steps>(opened: &OpenedPack<B::Words>, queries: &Range<usize>) -> OpenedPack<B::Words> {
        let first = opened.first.range(queries);
        let second = opened.second.range(queries);
        OpenedPack { first, second, expanded: opened.expanded.narrow(queries), folds: opened.folds }
    }

    fn scan<B: Steps>(
        host: &Host<'_, Self, B>,
        part: &PackPart<B>,
        opened: &OpenedPack<B::Words>,
    ) -> Result<Partial<B::Words>, ProtocolError> {
        let folded = host.backend.lwe_fold(&part.db, &opened.first)?; //    (1)  a word a row
        let words = match &part.rows {
            Some(rows) => P::pack_rows(&PackHost::new(host), rows, opened, folded)?, // (3)
            None => vec![folded.words],
        };
        Ok(Partial { units: part.units.clone(), words })
    }

    fn finish<B: Steps>(
        host: &Host<'_, Self, B>,
        head: &PackHead<B>,
        opened: &OpenedPack<B::Words>,
        batch: &Batch<'_, B>,
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let backend = host.backend;
        let table = host.table;
        let host = PackHost::new(host);
        let Some(rows) = &head.rows else { return P::finish(&host, head, opened, batch.keys, partials) };
        let words = joined_rows(backend, batch.keys.len(), |units| table.rows_of(units), partials)?;
        let folded = LweBatch { rows: table.rows(), words };
        let words = P::pack_rows(&host, rows, opened, folded)?; //           (3)  for the own queries alone
        P::finish(&host, head, opened, batch.keys, vec![Partial { units: rows.units.clone(), words }])
    }
}

/// Client: encrypts `target`. `second` is the block or entry that the second vector selects. `entry` is the entry whose
/// bits are encrypted for the folds.
fn encrypt(
    table: &PackTable,
    client: &PackClient,
    target: &Target,
    second: Option<usize>,
    entry: usize,
    rng: &mut Csprng,
) -> (wire::Query, PackPending) {
    let bits: Zeroizing<Vec<u32>> =
        Zeroizing::new((0..table.folds()).map(|fold| (entry >> fold & 1) as u32).collect());
    let PackClient { keys, seed } = client;
    let params = table.params();
    let context = keys.context();
    let secrets = keys.secrets();
    let first = PublicMatrix::new(*seed, table.first_matrix());
    let columns = (&first, &target.columns[..]);
    let (first, second, packed, lwe) = match second {
        None => {
            let ([first], packed, lwe) = encrypt_pack_query(params, context, secrets, [columns], &bits, rng);
            (first, Vec::new(), packed, lwe)
        }
        Some(row) => {
            let matrix = PublicMatrix::new(*seed, table.second_matrix());
            let row = Zeroizing::new([(row as u32, 1)]);
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
    (query, PackPending { lwe, key_id: keys.id() })
}
