//! The common part of the pages over LWE: a database of bytes, one `lwe_fold` of it, and a hint that clients download.

use std::{ops::Range, sync::Arc};

use hush_he::{
    codec::unpack_scaled,
    entities::{PublicMatrix, PublicSeed},
    params::{DEFAULT_LWE, LweParams, Widths},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{LweBatch, LweOps, LweQueries, Steps},
    path::{Content, Step},
    steps::LweFold,
    tiling::{TILE_COLS, TiledDb, Tiling},
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    client::{Given, Hint},
    facts::{
        DB_FILE, Database, Facts, FileSpec, HINT_FILE, HintPlan, HintProduct, SECOND_DB_FILE, SecondDb,
        WordBits,
    },
    halves::{HeadFacts, PartFacts},
    lwe_table::{LweSpec, LweTable},
    message::{check_length, check_vectors, unpack_queries},
    page::{Batch, Files, Host, Page, Partial, Partials},
    parts::joined_rows,
    registry::Protocol,
    table::{SegmentShape, TableShape, invalid_descriptor},
    target::Target,
    wire::{self, QuerySizes},
};

/// A page over LWE.
pub trait LwePage: Send + Sync + 'static {
    /// [`Page::NAME`].
    const NAME: &'static str;
    /// The facts in which the protocols of the family differ.
    const SPEC: LweSpec;
    /// [`Page::Prepared`].
    type Prepared: Send + Sync + 'static;
    /// [`Page::Pending`].
    type Pending: Send + Sync + 'static;

    /// [`Page::columns`].
    fn columns(lwe: &LweParams, slots: usize, slot_bytes: usize) -> usize;

    /// [`Page::prepare`].
    fn prepare(table: &LweTable, seed: PublicSeed, rng: &mut Csprng) -> Self::Prepared;

    /// [`Page::prepare_recovery`], for a hint whose length was checked.
    ///
    /// # Errors
    /// [`ProtocolError`] if the hint is malformed.
    fn prepare_recovery(
        _table: &LweTable,
        _hint: &[u8],
        _prepared: &mut Self::Prepared,
    ) -> Result<(), ProtocolError> {
        Ok(())
    }

    /// [`Page::ask`].
    fn ask(table: &LweTable, prepared: Self::Prepared, target: &Target) -> (wire::Query, Self::Pending);

    /// Returns the steps after the first fold.
    fn path_behind(table: &LweTable) -> Vec<Step>;

    /// Returns the answers, from the words of the first fold. `second` is the second database and its matrix. It is `Some`
    /// if the spec has a second fold.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if a step fails.
    fn finish<B: LweOps>(
        backend: &B,
        table: &LweTable,
        second: Option<(&B::Db, PublicMatrix)>,
        opened: &OpenedLwe,
        folded: &LweBatch<B::Words>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError>;

    /// [`Page::recover`], for a hint and an answer whose lengths were checked.
    fn recover(
        table: &LweTable,
        hint: &[u8],
        pending: &Self::Pending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Vec<u8>, ProtocolError>;
}

/// A client's half of a table over LWE.
pub struct LweClient {
    /// The hint.
    pub hint: Hint,
    /// The seed of the public matrices.
    pub seed: PublicSeed,
}

/// A batch of queries over LWE as words modulo 2^32.
pub struct OpenedLwe {
    /// The vectors over the columns.
    pub first: LweQueries,
    /// The vectors over the blocks. They have no words if there is no second fold.
    pub second: LweQueries,
}

/// A part of a table over LWE: some rows, or some columns of a table with a single block.
pub struct LwePart<B: LweOps> {
    units: Range<usize>,
    db: B::Db,
}

/// A page over LWE as a [`Page`].
pub struct OverLwe<P>(P);

impl<P: LwePage> Page for OverLwe<P> {
    const PROTOCOL: Protocol = P::SPEC.protocol;
    const NAME: &'static str = P::NAME;
    const HAS_COLUMNS: bool = !P::SPEC.one_block;
    const KEY_COLUMNS: usize = 1;

    type Set = LweParams;
    type Table = LweTable;
    type Client = LweClient;
    type Prepared = P::Prepared;
    type Pending = P::Pending;
    type Scheme<B: Steps> = ();
    type Part<B: Steps> = LwePart<B>;
    type Head<B: Steps> = Option<B::Db>;
    type Opened<B: Steps> = OpenedLwe;

    fn default_set(_: usize) -> LweParams {
        DEFAULT_LWE
    }

    fn columns(lwe: &LweParams, slots: usize, slot_bytes: usize) -> usize {
        P::columns(lwe, slots, slot_bytes)
    }

    fn table(lwe: LweParams, shape: TableShape) -> Result<LweTable, ProtocolError> {
        LweTable::new(P::SPEC, lwe, shape)
    }

    fn described(
        lwe: LweParams,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<LweTable, ProtocolError> {
        let Some([query, hint, answer]) = word_bits else {
            return Err(invalid_descriptor("a table over LWE has widths of words"));
        };
        LweTable::with_widths(P::SPEC, lwe, shape, Widths { query, hint, answer })
    }

    fn segment(base: &LweTable, shape: SegmentShape) -> Result<LweTable, ProtocolError> {
        base.segment(shape)
    }

    fn facts(table: &LweTable) -> Facts {
        let lwe = table.lwe();
        let widths = table.widths();
        let shape = table.shape();
        let (first, second) = table.query_bytes();
        Facts {
            protocol: P::SPEC.protocol,
            preset: lwe.name(),
            security_bits: lwe.security_bits(),
            sigmas: table.noise().sigmas(),
            log2_failure: table.log2_failure(),
            shape,
            word_bits: Some([widths.query, widths.hint, widths.answer]),
            query: QuerySizes { first, second, ..QuerySizes::default() },
            answer_bytes: table.answer_bytes(),
            hint_bytes: table.hint_bytes(),
            is_hint_compressed: false,
            keys: None,
            key_bytes: 0,
            prepared_bytes: table.prepared_bytes(),
            is_whitened: false,
            encoded_bytes: table.tiling().stored_bytes(),
            units: if P::SPEC.one_block { shape.columns.div_ceil(TILE_COLS) } else { shape.blocks },
            lanes: if P::SPEC.second_fold { 1 } else { shape.blocks },
            segments: table.segment_rule(),
            details: vec![
                ("lwe_dimension", json!(lwe.n())),
                ("error_std", json!(lwe.error_std())),
                ("rows", json!(table.rows())),
                ("word_bits", json!({ "query": widths.query, "hint": widths.hint, "answer": widths.answer })),
            ],
        }
    }

    fn partials(_: &LweTable) -> Partials {
        Partials::Together
    }

    fn database(table: &LweTable) -> Database {
        Database::Bytes(table.tiling())
    }

    fn hint(table: &LweTable) -> Option<HintPlan> {
        let second = P::SPEC.second_fold.then(|| SecondDb {
            items: table.shape().slot_bytes * table.lwe().n(),
            digits: table.digits(),
            tiling: table.second_tiling(),
            matrix: table.second_matrix(),
        });
        let product = HintProduct::Download { bits: table.widths().hint };
        Some(HintPlan { matrix: table.first_matrix(), rows: table.rows(), second, product })
    }

    fn files(table: &LweTable) -> Vec<FileSpec> {
        let file = |name, title, content| FileSpec { name, title, content };
        let mut files = vec![file(DB_FILE, "database", Content::Bytes(table.tiling()))];
        files.extend(
            P::SPEC
                .second_fold
                .then(|| file(SECOND_DB_FILE, "second database", Content::Bytes(table.second_tiling()))),
        );
        files.push(file(HINT_FILE, "hint", Content::Download { bytes: table.hint_bytes() }));
        files
    }

    fn opening(_: &LweTable) -> Vec<Step> {
        Vec::new()
    }

    fn part(table: &LweTable, units: &Range<usize>) -> PartFacts {
        let db = match P::SPEC.one_block {
            true => Tiling::new(table.rows(), columns_of(table, units).len()),
            false => Tiling::new(rows_of(table, units).len(), table.shape().columns),
        };
        let steps = vec![Step::of_batch(LweFold { db })];
        let file = FileSpec { name: DB_FILE, title: "database", content: Content::Bytes(db) };
        PartFacts { files: vec![file], steps, words: db.rows() }
    }

    fn head(table: &LweTable, _: &[Range<usize>]) -> HeadFacts {
        let files = Self::files(table).into_iter().filter(|file| file.name == SECOND_DB_FILE).collect();
        HeadFacts { files, steps: P::path_behind(table) }
    }

    fn client(table: &LweTable, given: &Given) -> Result<LweClient, ProtocolError> {
        let hint = given.hint.clone().unwrap_or_else(|| Arc::new([]));
        check_hint(table, (*hint).as_ref())?;
        Ok(LweClient { hint, seed: given.seed })
    }

    fn prepare(table: &LweTable, client: &LweClient, rng: &mut Csprng) -> P::Prepared {
        P::prepare(table, client.seed, rng)
    }

    fn prepare_recovery(
        table: &LweTable,
        client: &LweClient,
        prepared: &mut P::Prepared,
    ) -> Result<(), ProtocolError> {
        let hint = (*client.hint).as_ref();
        check_hint(table, hint)?;
        P::prepare_recovery(table, hint, prepared)
    }

    fn ask(
        table: &LweTable,
        _: &LweClient,
        prepared: P::Prepared,
        target: &Target,
        _: &mut Csprng,
    ) -> (wire::Query, P::Pending) {
        P::ask(table, prepared, target)
    }

    fn recover(
        table: &LweTable,
        client: &LweClient,
        pending: &P::Pending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let hint = (*client.hint).as_ref();
        check_hint(table, hint)?;
        check_length("answer", table.answer_bytes(), answer.len())?;
        P::recover(table, hint, pending, target, answer).map(Zeroizing::new)
    }

    fn scheme<B: Steps>(_: &B, _: &LweTable, _: PublicSeed) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn open_part<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        units: Range<usize>,
        files: &F,
    ) -> Result<LwePart<B>, F::Error> {
        let tiling = host.table.tiling();
        let open = |ranges: &[Range<usize>]| -> Result<TiledDb, F::Error> {
            Ok(TiledDb::new(tiling, files.part(DB_FILE, ranges)?).map_err(ProtocolError::from)?)
        };
        let db = if P::SPEC.one_block {
            let columns = columns_of(host.table, &units);
            open(&tiling.bytes_of_columns(&columns))?.columns(columns)
        } else {
            let rows = rows_of(host.table, &units);
            open(&[tiling.bytes_of_rows(&rows)])?.rows(rows)
        };
        let db = host.backend.open_db(db).map_err(ProtocolError::from)?;
        Ok(LwePart { units, db })
    }

    fn open_head<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        _: &[LwePart<B>],
        files: &F,
    ) -> Result<Option<B::Db>, F::Error> {
        if !P::SPEC.second_fold {
            return Ok(None);
        }
        let bytes = files.bytes(SECOND_DB_FILE)?;
        let db = TiledDb::new(host.table.second_tiling(), bytes).and_then(|db| host.backend.open_db(db));
        Ok(Some(db.map_err(ProtocolError::from)?))
    }

    fn open<B: Steps>(
        host: &Host<'_, Self, B>,
        batch: &Batch<'_, B>,
        _: &Range<usize>,
    ) -> Result<OpenedLwe, ProtocolError> {
        let table = host.table;
        let bits = host.table.widths().query;
        let (first, second) = table.query_bytes();
        check_vectors(QuerySizes { first, second, ..QuerySizes::default() }, batch.queries)?;
        let cols = if P::SPEC.second_fold { table.shape().blocks } else { 0 };
        Ok(OpenedLwe {
            first: unpack_queries(batch.queries, table.shape().columns, bits, |query| &query.first)?,
            second: unpack_queries(batch.queries, cols, bits, |query| &query.second)?,
        })
    }

    fn wrap<B: Steps>(host: &Host<'_, Self, B>, opened: &OpenedLwe) -> Result<OpenedLwe, ProtocolError> {
        let first = opened.first.wrapped(host.table.shape().columns)?;
        Ok(OpenedLwe { first, second: opened.second.clone() })
    }

    fn narrow<B: Steps>(opened: &OpenedLwe, queries: &Range<usize>) -> OpenedLwe {
        OpenedLwe { first: opened.first.range(queries), second: opened.second.range(queries) }
    }

    fn scan<B: Steps>(
        host: &Host<'_, Self, B>,
        part: &LwePart<B>,
        opened: &OpenedLwe,
    ) -> Result<Partial<B::Words>, ProtocolError> {
        let columns = columns_of(host.table, &part.units);
        let folded = if P::SPEC.one_block && columns.len() < opened.first.cols {
            host.backend.lwe_fold(&part.db, &columns_of_queries(&opened.first, &columns))?
        } else {
            host.backend.lwe_fold(&part.db, &opened.first)? // (1)
        };
        Ok(Partial { units: part.units.clone(), words: vec![folded.words] })
    }

    fn finish<B: Steps>(
        host: &Host<'_, Self, B>,
        head: &Option<B::Db>,
        opened: &OpenedLwe,
        batch: &Batch<'_, B>,
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let backend = host.backend;
        let table = host.table;
        let queries = batch.queries.len();
        let words = match P::SPEC.one_block {
            true => sum(backend, partials)?,
            false => joined_rows(backend, queries, |units| rows_of(table, units), partials)?,
        };
        let folded = LweBatch { rows: table.rows(), words };
        let second = head.as_ref().map(|db| (db, PublicMatrix::new(host.seed, table.second_matrix())));
        P::finish(backend, table, second, opened, &folded)
    }
}

/// Returns the rows of the range `blocks`.
fn rows_of(table: &LweTable, blocks: &Range<usize>) -> Range<usize> {
    let slot = table.shape().slot_bytes;
    blocks.start * slot..blocks.end * slot
}

/// Returns the columns of the range `tiles`, which counts tiles of columns.
fn columns_of(table: &LweTable, tiles: &Range<usize>) -> Range<usize> {
    tiles.start * TILE_COLS..(tiles.end * TILE_COLS).min(table.shape().columns)
}

/// Returns the range `columns` of every query.
fn columns_of_queries(queries: &LweQueries, columns: &Range<usize>) -> LweQueries {
    let words = queries.words.chunks(queries.cols).flat_map(|words| &words[columns.clone()]);
    LweQueries { cols: columns.len(), words: words.copied().collect() }
}

/// Returns the sums, modulo 2^32, of the contributions of all parts, which are ranges of columns.
fn sum<B: LweOps>(backend: &B, mut partials: Vec<Partial<B::Words>>) -> Result<B::Words, OpsError> {
    if partials.len() == 1 {
        return Ok(partials.remove(0).words.remove(0));
    }
    let mut sums: Vec<u32> = Vec::new();
    for partial in &partials {
        let words = backend.read(&partial.words[0])?;
        sums.resize(words.len(), 0);
        sums.iter_mut().zip(words.iter()).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
    }
    backend.keep(sums)
}

fn check_hint(table: &LweTable, hint: &[u8]) -> Result<(), ProtocolError> {
    // A hint longer than the address space is refused, as no hint in memory has that length.
    check_length("hint", usize::try_from(table.hint_bytes()).unwrap_or(usize::MAX), hint.len())
}

/// Returns row `row` of a packed hint.
pub(crate) fn hint_row(table: &LweTable, hint: &[u8], row: usize) -> Result<Vec<u32>, ProtocolError> {
    let bytes = table.hint_row_bytes();
    Ok(unpack_scaled(&hint[row * bytes..][..bytes], table.lwe().n(), table.widths().hint)?)
}
