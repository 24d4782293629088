//! The common part of the pages with column packing.
//!
//! A query holds a vector over the columns and the keys that pack its answer. Both are under one secret, drawn for this
//! query. The client keeps only what decrypts the answer, and the server keeps nothing of a client.

use std::{ops::Range, sync::Arc};

use hush_he::{
    algorithms::{encrypt_column_query, open_column_keys},
    codec::pack_rounded,
    entities::{
        ColumnKeys, ColumnMasks, OneTimeRingSecret, PublicMatrix, PublicSeed, RingDecryptionKey, RlweSecret,
    },
    params::{COLPACK_N2048_Q52, ColumnParams, RingContext, Widths},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{ChainPolys, ColumnOps, LweBatch, LweQueries, RingOps, Steps, key_words},
    path::{Content, Step, pack_columns_tiling},
    steps::{LweFold, PackColumns},
    tiling::{TiledDb, Tiling},
};
use rayon::prelude::*;
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    client::{Given, Hint},
    column_table::{ColumnSpec, ColumnTable},
    facts::{
        CHAIN_FILE, COLUMNS_FILE, DB_FILE, Database, Facts, FileSpec, HINT_FILE, HintPlan, HintProduct,
        WordBits,
    },
    halves::{HeadFacts, PartFacts},
    layout,
    message::{check_length, check_vectors, unpack_queries},
    page::{Batch, Files, Host, Page, Partial, Partials},
    parts::joined_rows,
    registry::Protocol,
    table::{SegmentShape, TableShape, invalid_descriptor},
    target::Target,
    wire,
};

/// A page with column packing.
pub trait ColumnPage: Send + Sync + 'static {
    /// [`Page::NAME`].
    const NAME: &'static str;
    /// The facts that differ between the protocols of the family.
    const SPEC: ColumnSpec;

    /// Returns the steps after the packing.
    fn path_behind(table: &ColumnTable) -> Vec<Step>;

    /// [`Page::finish`], from the packed words: one ciphertext for each plane and entry.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if a step fails.
    fn finish<B: ColumnOps>(
        host: &ColumnHost<'_, B>,
        head: &ColumnHead<B>,
        opened: &OpenedColumn,
        packed: LweBatch<B::Words>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError>;

    /// [`Page::recover`], with the secret of the query.
    ///
    /// # Errors
    /// [`ProtocolError`] if the answer has a wrong length.
    fn recover(
        table: &ColumnTable,
        client: &ColumnClient,
        secret: &RlweSecret,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError>;
}

/// A page with column packing as a [`Page`].
pub struct ColumnPacked<P>(P);

/// The ring of a parameter set and a table's public masks. Clients and servers derive it from the descriptor.
pub struct ColumnRing {
    seed: PublicSeed,
    context: Arc<RingContext>,
    masks: ColumnMasks,
}

impl ColumnRing {
    /// Creates the ring of `params` and the masks of `seed`.
    pub fn new(params: &ColumnParams, seed: PublicSeed) -> Self {
        let context = Arc::new(RingContext::new(*params.ring()));
        let masks = ColumnMasks::new(&context, &seed);
        Self { seed, context, masks }
    }

    /// Returns the ring.
    pub fn context(&self) -> &Arc<RingContext> {
        &self.context
    }

    /// Returns the masks.
    pub fn masks(&self) -> &ColumnMasks {
        &self.masks
    }
}

/// The public data of a client.
pub struct ColumnClient {
    /// The ring and the masks of the keys.
    pub(crate) ring: ColumnRing,
    /// The masks of all plaintexts, as they were downloaded. Empty if entries are folded.
    pub(crate) masks: Hint,
}

/// A parameter set and a table's public masks, on a backend.
pub struct ColumnScheme<B: RingOps> {
    /// The ring and its masks.
    pub public: ColumnRing,
    /// The backend's data of the ring.
    pub ring: B::Ring,
}

/// The operands that the steps of a batch share.
pub struct ColumnHost<'a, B: RingOps> {
    /// The backend.
    pub backend: &'a B,
    /// The parameters.
    pub table: &'a ColumnTable,
    /// The ring and the masks.
    pub scheme: &'a ColumnScheme<B>,
}

/// A part of a table: some entries, with their pack columns and digits.
pub struct ColumnPart<B: ColumnOps> {
    units: Range<usize>,
    db: B::Db,
    columns: B::Db,
    chain: Arc<B::Chain>,
}

/// The polynomials of all plaintexts, if entries are folded. `None` if not: then clients have the masks.
pub type ColumnHead<B> = Option<Arc<<B as ColumnOps>::Chain>>;

/// The state that the client keeps between query and answer.
pub struct ColumnPending {
    key: RingDecryptionKey,
}

/// A batch of queries in the form in which a server reads it.
pub struct OpenedColumn {
    /// The vectors over the columns.
    pub(crate) first: LweQueries,
    /// The keys of each query.
    pub(crate) keys: Vec<Arc<ColumnKeys>>,
}

impl<P: ColumnPage> Page for ColumnPacked<P> {
    const PROTOCOL: Protocol = P::SPEC.protocol;
    const NAME: &'static str = P::NAME;

    type Set = ColumnParams;
    type Table = ColumnTable;
    type Client = ColumnClient;
    type Prepared = ();
    type Pending = ColumnPending;
    type Scheme<B: Steps> = ColumnScheme<B>;
    type Part<B: Steps> = ColumnPart<B>;
    type Head<B: Steps> = ColumnHead<B>;
    type Opened<B: Steps> = OpenedColumn;

    fn default_set(_: usize) -> ColumnParams {
        COLPACK_N2048_Q52
    }

    fn columns(params: &ColumnParams, slots: usize, slot_bytes: usize) -> usize {
        layout::column_packing_columns(P::SPEC.folds, params, slots, slot_bytes)
    }

    fn table(params: ColumnParams, shape: TableShape) -> Result<ColumnTable, ProtocolError> {
        ColumnTable::new(P::SPEC, params, shape)
    }

    fn described(
        params: ColumnParams,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<ColumnTable, ProtocolError> {
        let Some([query, hint, answer]) = word_bits else {
            return Err(invalid_descriptor("a table of column packing has widths of words"));
        };
        if [hint, answer] == [u32::BITS; 2] {
            return Err(invalid_descriptor("an earlier program built the table: build it again"));
        }
        ColumnTable::with_widths(P::SPEC, params, shape, Widths { query, hint, answer })
    }

    fn segment(base: &ColumnTable, shape: SegmentShape) -> Result<ColumnTable, ProtocolError> {
        base.segment(shape)
    }

    fn facts(table: &ColumnTable) -> Facts {
        let params = table.params();
        let shape = table.pack_shape();
        let widths = table.widths();
        Facts {
            protocol: P::SPEC.protocol,
            preset: params.name(),
            security_bits: params.security_bits(),
            sigmas: table.sigmas(),
            log2_failure: table.log2_failure(),
            shape: table.shape(),
            word_bits: Some([widths.query, widths.hint, widths.answer]),
            query: table.query_bytes(),
            answer_bytes: table.answer_bytes(),
            hint_bytes: table.mask_bytes(),
            is_hint_compressed: false,
            keys: None,
            key_bytes: 0,
            prepared_bytes: 0,
            is_whitened: false,
            encoded_bytes: table.tiling().stored_bytes(),
            units: shape.entries(),
            lanes: if P::SPEC.folds { table.lanes() } else { table.shape().blocks },
            segments: table.segment_rule(),
            details: vec![
                ("lwe_dimension", json!(params.lwe().n())),
                ("error_std", json!(params.lwe().error_std())),
                ("rows", json!(table.rows())),
                ("ring_degree", json!(params.ring().degree())),
                ("word_bits", json!({ "query": widths.query, "hint": widths.hint, "answer": widths.answer })),
                ("entries", json!(shape.entries())),
                ("external_products", json!(table.external_products())),
                ("lanes", json!(table.lanes())),
                ("planes", json!(shape.planes())),
                ("pack_column_bytes", json!(table.columns_tiling().stored_bytes())),
            ],
        }
    }

    fn partials(_: &ColumnTable) -> Partials {
        Partials::Together
    }

    fn database(table: &ColumnTable) -> Database {
        Database::Bytes(table.tiling())
    }

    fn hint(table: &ColumnTable) -> Option<HintPlan> {
        let mask_bits = (!P::SPEC.folds).then_some(table.widths().hint);
        let product = HintProduct::Chained { params: *table.params(), shape: table.pack_shape(), mask_bits };
        Some(HintPlan { matrix: table.matrix(), rows: table.rows(), second: None, product })
    }

    fn files(table: &ColumnTable) -> Vec<FileSpec> {
        let file = |name, title, content| FileSpec { name, title, content };
        let mut files = vec![
            file(DB_FILE, "database", Content::Bytes(table.tiling())),
            file(COLUMNS_FILE, "pack columns", Content::Bytes(table.columns_tiling())),
            file(CHAIN_FILE, if P::SPEC.folds { "digits and masks" } else { "digits" }, table.chain()),
        ];
        if !P::SPEC.folds {
            files.push(file(HINT_FILE, "masks", Content::Download { bytes: table.mask_bytes() }));
        }
        files
    }

    fn opening(_: &ColumnTable) -> Vec<Step> {
        Vec::new()
    }

    fn part(table: &ColumnTable, units: &Range<usize>) -> PartFacts {
        let ring = *table.params().ring();
        let all = table.pack_shape();
        let shape = all.part(all.entries_rows(units).len());
        let db = Tiling::new(shape.rows(), table.shape().columns);
        let columns = pack_columns_tiling(&ring, shape.rows());
        let pack = PackColumns { ring, columns, shape };
        // The masks belong to the head.
        let digits = Content::Chain { ring, shape, folds: false };
        let file = |name, title, content| FileSpec { name, title, content };
        let files = vec![
            file(DB_FILE, "database", Content::Bytes(db)),
            file(COLUMNS_FILE, "pack columns", Content::Bytes(columns)),
            file(CHAIN_FILE, "digits", digits),
        ];
        PartFacts {
            files,
            steps: vec![Step::of_batch(LweFold { db }), Step::of_batch(pack)],
            words: shape.rows(),
        }
    }

    fn head(table: &ColumnTable, _: &[Range<usize>]) -> HeadFacts {
        let mut files = Self::files(table);
        files.retain(|file| P::SPEC.folds && file.name == CHAIN_FILE);
        HeadFacts { files, steps: P::path_behind(table) }
    }

    fn client(table: &ColumnTable, given: &Given) -> Result<ColumnClient, ProtocolError> {
        let masks = given.hint.clone().unwrap_or_else(|| Arc::new([]));
        check_length("masks", table.mask_bytes() as usize, (*masks).as_ref().len())?;
        Ok(ColumnClient { ring: ColumnRing::new(table.params(), given.seed), masks })
    }

    fn prepare(_: &ColumnTable, _: &ColumnClient, _: &mut Csprng) {}

    /// Encrypts `target` under a fresh secret. If entries are folded, also encrypts the power of X that selects its entry.
    fn ask(
        table: &ColumnTable,
        client: &ColumnClient,
        (): (),
        target: &Target,
        rng: &mut Csprng,
    ) -> (wire::Query, ColumnPending) {
        let params = table.params();
        let public = &client.ring;
        let matrix = PublicMatrix::new(public.seed, table.matrix());
        let (entry, _) = table.place(target.block);
        let secret = OneTimeRingSecret::sample(params, rng);
        let (words, keys, key) = encrypt_column_query(
            params,
            &public.context,
            &public.masks,
            secret,
            (&matrix, &target.columns),
            table.exponent(entry),
            rng,
        );
        let first = pack_rounded(&words, table.widths().query).into();
        let query = wire::Query { first, packed: keys.into(), ..Default::default() };
        (query, ColumnPending { key })
    }

    fn recover(
        table: &ColumnTable,
        client: &ColumnClient,
        pending: &ColumnPending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        P::recover(table, client, pending.key.secret(), target, answer)
    }

    fn scheme<B: Steps>(
        backend: &B,
        table: &ColumnTable,
        seed: PublicSeed,
    ) -> Result<ColumnScheme<B>, ProtocolError> {
        let public = ColumnRing::new(table.params(), seed);
        let ring = backend.open_ring(public.context.clone())?;
        Ok(ColumnScheme { public, ring })
    }

    fn open_part<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        units: Range<usize>,
        files: &F,
    ) -> Result<ColumnPart<B>, F::Error> {
        let table = host.table;
        let shape = host.table.pack_shape();
        let rows = shape.entries_rows(&units);
        let open = |tiling: Tiling, name| {
            let bytes = files.part(name, &[tiling.bytes_of_rows(&rows)])?;
            let db = TiledDb::new(tiling, bytes).and_then(|db| host.backend.open_db(db.rows(rows.clone())));
            Ok::<_, F::Error>(db.map_err(ProtocolError::from)?)
        };
        let db = open(table.tiling(), DB_FILE)?;
        let columns = open(table.columns_tiling(), COLUMNS_FILE)?;
        let mut polys = chain_polys(table, (*files.bytes(CHAIN_FILE)?).as_ref())?;
        let is_all = units == (0..shape.entries());
        if !(is_all && P::SPEC.folds) {
            // This part folds nothing, so it needs no masks.
            polys.masks = Vec::new();
        }
        if !is_all {
            let words = polys.digits.len() / shape.plaintexts();
            let digits = units.start * shape.planes() * words..units.end * shape.planes() * words;
            polys.digits = polys.digits[digits].to_vec();
        }
        let chain = host.backend.open_chain(&host.scheme.ring, &shape.part(rows.len()), polys);
        let chain = Arc::new(chain.map_err(ProtocolError::from)?);
        Ok(ColumnPart { units, db, columns, chain })
    }

    fn open_head<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        parts: &[ColumnPart<B>],
        files: &F,
    ) -> Result<ColumnHead<B>, F::Error> {
        match parts {
            _ if !P::SPEC.folds => Ok(None),
            [all] => Ok(Some(all.chain.clone())),
            _ => {
                let polys = chain_polys(host.table, (*files.bytes(CHAIN_FILE)?).as_ref())?;
                let chain = host.backend.open_chain(&host.scheme.ring, &host.table.pack_shape(), polys);
                Ok(Some(Arc::new(chain.map_err(ProtocolError::from)?)))
            }
        }
    }

    fn open<B: Steps>(
        host: &Host<'_, Self, B>,
        batch: &Batch<'_, B>,
        _: &Range<usize>,
    ) -> Result<OpenedColumn, ProtocolError> {
        let table = host.table;
        let sizes = host.table.query_bytes();
        let queries = batch.queries;
        check_vectors(sizes, queries)?;
        for query in queries {
            check_length("query, keys", sizes.packed, query.packed.len())?;
            check_length("query, name of keys", sizes.key_id, query.key_id.len())?;
        }
        let context = host.scheme.public.context();
        let keys =
            batch.read(|query| open_column_keys(table.params(), context, table.folds(), &query.packed))?;
        let keys = keys.into_iter().map(Arc::new).collect();
        let first =
            unpack_queries(queries, table.shape().columns, table.widths().query, |query| &query.first)?;
        Ok(OpenedColumn { first, keys })
    }

    fn wrap<B: Steps>(
        host: &Host<'_, Self, B>,
        opened: &OpenedColumn,
    ) -> Result<OpenedColumn, ProtocolError> {
        let first = opened.first.wrapped(host.table.shape().columns)?;
        Ok(OpenedColumn { first, keys: opened.keys.clone() })
    }

    fn narrow<B: Steps>(opened: &OpenedColumn, queries: &Range<usize>) -> OpenedColumn {
        OpenedColumn { first: opened.first.range(queries), keys: opened.keys[queries.clone()].to_vec() }
    }

    fn scan<B: Steps>(
        host: &Host<'_, Self, B>,
        part: &ColumnPart<B>,
        opened: &OpenedColumn,
    ) -> Result<Partial<B::Words>, ProtocolError> {
        let folded = host.backend.lwe_fold(&part.db, &opened.first)?; //   (1)   a word a row
        let packed = pack(host.backend, &host.scheme.ring, host.table, part, folded, &opened.keys)?; // (3c)
        Ok(Partial { units: part.units.clone(), words: vec![packed.words] })
    }

    fn finish<B: Steps>(
        host: &Host<'_, Self, B>,
        head: &ColumnHead<B>,
        opened: &OpenedColumn,
        batch: &Batch<'_, B>,
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let backend = host.backend;
        let table = host.table;
        let shape = host.table.pack_shape();
        let words = joined_rows(backend, batch.queries.len(), |units| shape.entries_rows(units), partials)?;
        let host = ColumnHost { backend, table, scheme: host.scheme };
        P::finish(&host, head, opened, LweBatch { rows: shape.rows(), words })
    }
}

/// (3c) Packs the fold of a batch. The word of each row becomes a coefficient of its plaintext's b.
fn pack<B: ColumnOps>(
    backend: &B,
    ring: &B::Ring,
    table: &ColumnTable,
    part: &ColumnPart<B>,
    folded: LweBatch<B::Words>,
    keys: &[Arc<ColumnKeys>],
) -> Result<LweBatch<B::Words>, OpsError> {
    let degree = table.params().ring().degree();
    let words: Vec<_> = keys.par_iter().map(|keys| key_words(degree, &[&keys.rotation]).words).collect();
    let words = LweQueries { cols: table.columns_tiling().cols(), words: words.concat() };
    let conjugations: Vec<_> = keys.iter().map(|keys| &keys.conjugation).collect();
    backend.pack_columns(ring, &part.columns, &part.chain, folded, &words, &conjugations)
}

/// Reads the file of the chain's polynomials.
///
/// # Errors
/// [`OpsError::Shape`] if the file does not have the length that the table implies.
pub fn chain_polys(table: &ColumnTable, bytes: &[u8]) -> Result<ChainPolys, ProtocolError> {
    let expected = table.chain().bytes() as usize;
    OpsError::check_shape("open_chain", "bytes of the chain", expected, bytes.len())?;
    let words = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let (digits, masks) = bytes.split_at(if table.spec().folds { expected / 2 } else { expected });
    Ok(ChainPolys { digits: words(digits), masks: words(masks) })
}
