//! The common part of the pages over rings. RLWE selectors choose the row, and RGSW bits choose the entry.
//!
//! A query is one truncated RLWE ciphertext. The server expands it with the client's evaluation keys to a selector for
//! every row and an RGSW ciphertext for every bit of the entry. If the server rotates, the lane has such bits too. Clients
//! download nothing beforehand.
//!
//! | message | content                                                       | size (`RingTable`)            |
//! |---------|---------------------------------------------------------------|-------------------------------|
//! | keys    | Subs keys, s^2 key, keys for answers; seeded, uploaded once   | `RingParams::key_words_bytes` |
//! | query   | seed, and the coefficients of b that carry messages           | `query_bytes`                 |
//! | answer  | packed pairs, or the polynomials listed in `answer.rs`        | `answer_bytes`                |

use std::{hint::black_box, ops::Range, sync::Arc};

use hush_he::{
    algorithms::{encrypt_ring_query, encrypt_tlwe_query, open_ring_query, open_tlwe_query},
    entities::PublicSeed,
    params::{ParameterSet, RingParams},
};
use hush_math::{constant_time::equal_mask, csprng::Csprng};
use hush_ops::{
    contract::{EntryOrder, RlweBatch, Steps},
    ntt_tiling::NttTiledDb,
    path::{Content, Step},
    steps::{Expand, PrivateKeySwitch, Respond, RingSwitch, RlweFold, Rotate, SymbolFold},
    symbol_tiling::SymbolDb,
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    client::Given,
    expansions::Expansions,
    facts::{DB_FILE, Database, DbForm, Facts, FileSpec, HintPlan, WordBits},
    halves::{HeadFacts, PartFacts},
    page::{Batch, Files, Host, Page, Partial, Partials, no_symbols},
    registry::Protocol,
    response::{choose_lane, ciphertext_words},
    ring_answer,
    ring_keys::{RingKeys, RingScheme, given_keys, upload_bytes},
    ring_table::RingTable,
    symbols::from_symbols,
    table::{SegmentShape, TableShape, invalid_descriptor},
    target::Target,
    tournament::{self, Tournament},
    whitening::Whitening,
    wire::{self, KEY_ID_BYTES, QuerySizes},
};

/// The entries of a table of symbols that are folded at a time: 32 MiB of ciphertexts for each query and plane, at N =
/// 2048. The number is a power of two, so that a part is a subtree of the folds.
const PART_ENTRIES: usize = 1 << 11;

/// A page over rings.
pub trait RingPage: Send + Sync + 'static {
    /// [`Page::PROTOCOL`].
    const PROTOCOL: Protocol;
    /// [`Page::NAME`].
    const NAME: &'static str;
    /// [`Page::KEY_COLUMNS`].
    const KEY_COLUMNS: usize;
    /// Whether plaintexts may be kept as symbols.
    const HAS_SYMBOLS: bool;
    /// [`Page::Set`].
    type Set: ParameterSet;

    /// Returns the RLWE parameters of a set.
    fn ring(set: &Self::Set) -> &RingParams;

    /// [`Page::default_set`].
    fn default_set(slot_bytes: usize) -> Self::Set;

    /// [`Page::columns`].
    fn columns(ring: &RingParams, slots: usize, slot_bytes: usize) -> usize;

    /// [`Page::table`].
    fn table(ring: RingParams, shape: TableShape) -> Result<RingTable, ProtocolError>;
}

/// A page over rings as a [`Page`].
pub struct OverRing<P>(P);

/// A client's half of a table.
pub struct Client {
    keys: Arc<RingKeys>,
    whitening: Whitening,
}

/// The state that the client keeps between query and answer.
pub struct RingPending {
    key_id: [u8; KEY_ID_BYTES],
}

/// A part of a table: some entries, in every plane.
pub struct Part<B: Steps> {
    units: Range<usize>,
    db: PartDb<B>,
}

/// The database of a part, in the form of the table.
enum PartDb<B: Steps> {
    Evaluation(B::NttDb),
    Symbols(B::Symbols),
}

impl<P: RingPage> Page for OverRing<P> {
    const PROTOCOL: Protocol = P::PROTOCOL;
    const NAME: &'static str = P::NAME;
    const KEY_COLUMNS: usize = P::KEY_COLUMNS;

    type Set = P::Set;
    type Table = RingTable;
    type Client = Client;
    type Prepared = ();
    type Pending = RingPending;
    type Scheme<B: Steps> = RingScheme<B>;
    type Part<B: Steps> = Part<B>;
    type Head<B: Steps> = ();
    type Opened<B: Steps> = Expansions<B::Words>;

    fn default_set(slot_bytes: usize) -> P::Set {
        P::default_set(slot_bytes)
    }

    fn columns(set: &P::Set, slots: usize, slot_bytes: usize) -> usize {
        P::columns(P::ring(set), slots, slot_bytes)
    }

    fn table(set: P::Set, shape: TableShape) -> Result<RingTable, ProtocolError> {
        P::table(*P::ring(&set), shape)
    }

    fn described(
        set: P::Set,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<RingTable, ProtocolError> {
        match word_bits {
            None => Self::table(set, shape),
            Some(_) => Err(invalid_descriptor("a table over rings has no widths of words")),
        }
    }

    fn segment(base: &RingTable, shape: SegmentShape) -> Result<RingTable, ProtocolError> {
        base.segment(shape)
    }

    fn in_form(table: RingTable, form: DbForm) -> Result<RingTable, ProtocolError> {
        match form {
            DbForm::Symbols if !P::HAS_SYMBOLS => Err(no_symbols(P::PROTOCOL)),
            _ => Ok(table.in_form(form)),
        }
    }

    fn facts(table: &RingTable) -> Facts {
        let ring = table.ring();
        Facts {
            protocol: P::PROTOCOL,
            preset: ring.name(),
            security_bits: ring.security_bits(),
            sigmas: table.noise().sigmas(),
            log2_failure: table.log2_failure(),
            shape: table.shape(),
            word_bits: None,
            query: QuerySizes::rlwe(table.query_bytes()),
            answer_bytes: table.answer_bytes(),
            hint_bytes: 0,
            is_hint_compressed: false,
            keys: Some(*ring),
            key_bytes: upload_bytes(ring),
            prepared_bytes: 0,
            is_whitened: true,
            encoded_bytes: table.content().bytes(),
            units: table.entries(),
            lanes: table.lanes(),
            segments: table.segment_rule(),
            details: vec![
                ("ring_degree", json!(ring.degree())),
                ("symbol_bits", json!(ring.plaintext_bits())),
                ("entries", json!(table.entries())),
                ("folds", json!(table.folds())),
                ("rotations", json!(table.rotations())),
                ("lanes", json!(table.lanes())),
                ("planes", json!(table.planes())),
            ],
        }
    }

    fn partials(_: &RingTable) -> Partials {
        Partials::Apart
    }

    fn scans_expansions(_: &RingTable) -> bool {
        true
    }

    fn database(table: &RingTable) -> Database {
        Database::Plaintexts(*table)
    }

    /// Returns the ranges of entries that are scanned at a time. A scan of symbols yields ciphertexts of half the table's
    /// size, so it is limited to `PART_ENTRIES` entries.
    fn parts(table: &RingTable) -> Vec<Range<usize>> {
        let some = match table.form() {
            DbForm::Evaluation => table.entries(),
            DbForm::Symbols => PART_ENTRIES,
        };
        let firsts = (0..table.entries()).step_by(some);
        firsts.map(|first| first..table.entries().min(first + some)).collect()
    }

    fn hint(_: &RingTable) -> Option<HintPlan> {
        None
    }

    fn files(table: &RingTable) -> Vec<FileSpec> {
        vec![FileSpec { name: DB_FILE, title: "database", content: table.content() }]
    }

    fn opening(table: &RingTable) -> Vec<Step> {
        let ring = *table.ring();
        let rows = table.shape().columns;
        let folds = table.bits();
        vec![match ring.tlwe() {
            None => Step::of_batch(Expand { ring, rows, folds }),
            Some(_) => Step::of_batch(PrivateKeySwitch { ring, rows, folds }),
        }]
    }

    fn part(table: &RingTable, units: &Range<usize>) -> PartFacts {
        let ring = *table.ring();
        let planes = table.planes();
        // The pieces are scanned one after another.
        let pieces = Self::pieces(table, units);
        let parts = pieces.len();
        let (fold, file) = match table.form() {
            DbForm::Evaluation => {
                let db = table.part_tiling(units.len());
                (Step::of_batch(RlweFold { ring, db }), Content::Eval(db))
            }
            DbForm::Symbols => {
                let db = table.part_symbol_tiling(units.len());
                (Step::of_batch(SymbolFold { ring, db, parts }), Content::Symbols { ring, db })
            }
        };
        let steps = vec![fold, tournament::folds(ring, units.len(), planes, parts)];
        let roots: usize = pieces.iter().map(|piece| tournament::roots(table.entries(), piece)).sum();
        let words = roots * planes * ciphertext_words(&ring);
        let file = FileSpec { name: DB_FILE, title: "database", content: file };
        PartFacts { files: vec![file], steps, words }
    }

    fn head(table: &RingTable, parts: &[Range<usize>]) -> HeadFacts {
        let ring = *table.ring();
        let planes = table.planes();
        let pieces: Vec<_> = parts.iter().flat_map(|units| Self::pieces(table, units)).collect();
        let folds = tournament::last_folds(ring, table.entries(), planes, &pieces);
        let rotate = Step::of_batch(Rotate { ring, count: planes, bits: table.rotations() });
        let answer = match table.switch() {
            Some(_) => Step::of_batch(RingSwitch { ring }),
            None => Step::of_batch(Respond { ring, plaintexts: planes }),
        };
        let rotate = (table.rotations() > 0).then_some(rotate);
        HeadFacts { files: Vec::new(), steps: folds.into_iter().chain(rotate).chain([answer]).collect() }
    }

    fn client(table: &RingTable, given: &Given) -> Result<Client, ProtocolError> {
        let seed = given.whitening.ok_or_else(|| invalid_descriptor("a table over rings has a whitening"))?;
        Ok(Client { keys: given_keys(given)?, whitening: Whitening::new(table.ring(), seed) })
    }

    fn prepare(_: &RingTable, _: &Client, _: &mut Csprng) {}

    fn ask(
        table: &RingTable,
        client: &Client,
        (): (),
        target: &Target,
        rng: &mut Csprng,
    ) -> (wire::Query, RingPending) {
        let keys = &client.keys;
        let (entry, lane) = table.place(target.block);
        let mut selectors = Zeroizing::new(vec![0u32; table.shape().columns]);
        for (row, selector) in (0u32..).zip(selectors.iter_mut()) {
            // Every row is compared with every column of the target, so no memory address depends on the target.
            for &(column, coefficient) in &target.columns {
                *selector += u32::from(coefficient) & equal_mask(row, column);
            }
        }
        let bits = |value: usize, count| (0..count).map(move |bit| (value >> bit & 1) as u32);
        let bits = bits(entry, table.folds()).chain(bits(lane, table.rotations()));
        let bits: Zeroizing<Vec<u32>> = Zeroizing::new(bits.collect());
        let encrypt = if table.ring().tlwe().is_some() { encrypt_tlwe_query } else { encrypt_ring_query };
        let packed = encrypt(keys.context(), keys.secrets(), &selectors, &bits, rng).into();
        let query = wire::Query { packed, key_id: keys.id().to_vec().into(), ..Default::default() };
        (query, RingPending { key_id: keys.id() })
    }

    fn recover(
        table: &RingTable,
        client: &Client,
        pending: &RingPending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let keys = &client.keys;
        let bits = table.ring().plaintext_bits();
        keys.check_id(&pending.key_id)?;
        let (entry, lane) = table.place(target.block);
        let mut symbols = ring_answer::symbols(table, keys, answer)?;
        let column = |plane: usize| plane * table.entries() + entry;
        let of_slot = if table.rotations() > 0 {
            let mut white = Zeroizing::new(vec![0; table.ring().degree()]);
            client.whitening.remove_from(&target.columns, column(0), &mut white);
            let white = choose_interleaved(&white, table.slot_symbols(), table.stride(), lane);
            symbols
                .iter_mut()
                .zip(white.iter())
                .for_each(|(symbol, &white)| *symbol = symbol.wrapping_add(white));
            symbols
        } else {
            for (plane, plaintext) in symbols.chunks_mut(table.ring().degree()).enumerate() {
                client.whitening.remove_from(&target.columns, column(plane), plaintext);
            }
            choose_lane(&symbols, table.slot_symbols(), table.lanes(), lane)
        };
        let mut slot = Zeroizing::new(vec![0; table.shape().slot_bytes]);
        from_symbols(&of_slot, bits, &mut slot);
        Ok(slot)
    }

    fn scheme<B: Steps>(
        backend: &B,
        table: &RingTable,
        _: PublicSeed,
    ) -> Result<RingScheme<B>, ProtocolError> {
        RingScheme::new(backend, table.ring())
    }

    fn open_part<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        units: Range<usize>,
        files: &F,
    ) -> Result<Part<B>, F::Error> {
        let table = host.table;
        let columns = match units == (0..table.entries()) {
            true => vec![0..table.tiling().columns()],
            false => table.columns_of(&units),
        };
        let backend = host.backend;
        let ring = &host.scheme.ring;
        let db = match table.form() {
            DbForm::Evaluation => {
                let tiling = table.tiling();
                NttTiledDb::new(tiling, files.part(DB_FILE, &tiling.bytes_of_columns(&columns))?)
                    .and_then(|db| Ok(PartDb::Evaluation(backend.open_ntt_db(ring, db.columns(&columns))?)))
            }
            DbForm::Symbols => {
                let tiling = table.symbol_tiling();
                SymbolDb::new(tiling, files.part(DB_FILE, &tiling.bytes_of_columns(&columns))?)
                    .and_then(|db| Ok(PartDb::Symbols(backend.open_symbols(ring, db.columns(&columns))?)))
            }
        };
        Ok(Part { units, db: db.map_err(ProtocolError::from)? })
    }

    fn open_head<B: Steps, F: Files>(_: &Host<'_, Self, B>, _: &[Part<B>], _: &F) -> Result<(), F::Error> {
        Ok(())
    }

    fn open_keys<B: Steps>(host: &Host<'_, Self, B>, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        host.scheme.open_keys(host.backend, body)
    }

    /// Parses a batch, and expands its own queries with the clients' keys.
    fn open<B: Steps>(
        host: &Host<'_, Self, B>,
        batch: &Batch<'_, B>,
        own: &Range<usize>,
    ) -> Result<Expansions<B::Words>, ProtocolError> {
        batch.check_keys()?;
        let table = host.table;
        let Host { backend, scheme, .. } = host;
        let rows = table.shape().columns;
        let folds = table.bits();
        let keys = &batch.keys[own.clone()];
        let expanded = if table.ring().tlwe().is_some() {
            let read = |query: &wire::Query| open_tlwe_query(&scheme.context, rows, folds, &query.packed);
            let words = batch.read_some(own, read)?;
            backend.private_key_switch(&scheme.ring, keys, &words, rows, folds)?
        } else {
            let read = |query: &wire::Query| open_ring_query(&scheme.context, rows, folds, &query.packed);
            let packed = batch.read_some(own, read)?;
            backend.expand(&scheme.ring, keys, &packed, rows, folds)?
        };
        Ok(Expansions::new(own.start, expanded))
    }

    fn expansions<B: Steps>(opened: &mut Expansions<B::Words>) -> Option<&mut Expansions<B::Words>> {
        Some(opened)
    }

    fn wrap<B: Steps>(
        _: &Host<'_, Self, B>,
        opened: &Expansions<B::Words>,
    ) -> Result<Expansions<B::Words>, ProtocolError> {
        Ok(opened.clone())
    }

    fn narrow<B: Steps>(opened: &Expansions<B::Words>, queries: &Range<usize>) -> Expansions<B::Words> {
        opened.narrow(queries)
    }

    fn scan<B: Steps>(
        host: &Host<'_, Self, B>,
        part: &Part<B>,
        opened: &Expansions<B::Words>,
    ) -> Result<Partial<B::Words>, ProtocolError> {
        let selectors: Vec<_> = opened.all().iter().map(|expanded| &expanded.selectors).collect();
        let ring = &host.scheme.ring;
        let bits = entry_bits(host.table, opened);
        let folded = match &part.db {
            PartDb::Evaluation(db) => host.backend.rlwe_fold(ring, db, &selectors)?, //       (6)  planes x entries
            PartDb::Symbols(db) => host.backend.symbol_fold(ring, db, &selectors)?,
        };
        let (columns, order): (Vec<_>, _) = (folded.iter().collect(), EntryOrder::PlaneMajor);
        let words = tournament(host).play(&part.units, &columns, order, &bits)?; //       (7)  one a plane
        Ok(Partial { units: part.units.clone(), words })
    }

    fn finish<B: Steps>(
        host: &Host<'_, Self, B>,
        _: &(),
        opened: &Expansions<B::Words>,
        batch: &Batch<'_, B>,
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let table = host.table;
        let ring = &host.scheme.ring;
        let mut chosen = tournament(host).finish(&entry_bits(table, opened), partials)?;
        if table.rotations() > 0 {
            let bits = lane_bits(table, opened);
            chosen = host.backend.rotate(ring, &chosen.iter().collect::<Vec<_>>(), &bits)?;
        }
        ring_answer::answer(host, batch.keys, &chosen.iter().collect::<Vec<_>>())
    }
}

/// Returns the RGSW bits of the entry of every query, one for each round.
fn entry_bits<'o, W>(table: &RingTable, opened: &'o Expansions<W>) -> Vec<&'o [RlweBatch<W>]> {
    opened.all().iter().map(|expanded| &expanded.bits[..table.folds()]).collect()
}

/// Returns the RGSW bits of the lane of every query, which follow those of the entry.
fn lane_bits<'o, W>(table: &RingTable, opened: &'o Expansions<W>) -> Vec<&'o [RlweBatch<W>]> {
    opened.all().iter().map(|expanded| &expanded.bits[table.folds()..][..table.rotations()]).collect()
}

/// Client: returns the `length` values of a lane of an interleaved plaintext. It reads every lane, so no memory address
/// depends on the target.
fn choose_interleaved(values: &[u32], length: usize, lanes: usize, lane: usize) -> Zeroizing<Vec<u32>> {
    let mut chosen = Zeroizing::new(vec![0; length]);
    for (chosen, values) in chosen.iter_mut().zip(values.chunks_exact(lanes)) {
        for (index, value) in (0u32..).zip(values) {
            *chosen |= value & black_box(equal_mask(index, lane as u32));
        }
    }
    chosen
}

fn tournament<'a, P: RingPage, B: Steps>(host: &Host<'a, OverRing<P>, B>) -> Tournament<'a, B> {
    let table = host.table;
    let ciphertext_words = ciphertext_words(host.table.ring());
    let entries = table.entries();
    let planes = table.planes();
    Tournament { backend: host.backend, ring: &host.scheme.ring, entries, planes, ciphertext_words }
}
