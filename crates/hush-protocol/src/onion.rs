//! OnionPIRv2, path (5) offline, then (6)(7)...(7): RLWE selectors pick the row, RGSW bits the entry.
//!
//! A query is one truncated RLWE ciphertext. The server expands it with the client's evaluation keys into a selector for
//! every row and an RGSW ciphertext for every bit of the entry. Nothing is downloaded beforehand.
//!
//! | message | what                                                        | size (`RingTable`) |
//! |---------|-------------------------------------------------------------|--------------------|
//! | keys    | Subs keys, s^2 key, pair-packing key; seeded, uploaded once | `RingParams::key_words_bytes` |
//! | query   | seed, and the coefficients of b that carry messages         | `query_bytes`      |
//! | answer  | a packed pair for every two planes: a, b_0, b_1             | `answer_bytes`     |
//!
//! Source: OnionPIRv2 section 3, VIPIR section 3.2. Ours: the prime dropped after expansion, truncated queries, the s^2
//! key in place of RGSW(s), packed pairs, whitening, and key look-ups (selectors that encrypt any small vector).

use std::{ops::Range, sync::Arc};

use hush_he::{
    algorithms::{encrypt_ring_query, open_ring_query},
    params::RingParams,
};
use hush_math::{constant_time::equal_mask, csprng::Csprng};
use hush_ops::{
    contract::{EntryOrder, Expanded, RingOps, RlweBatch, Steps},
    ntt_tiling::NttTiledDb,
    path::{Content, Step, StepShape},
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    client::Given,
    facts::{DB_FILE, Database, Facts, FileSpec, HintPlan, WordBits},
    layout,
    page::{Batch, Files, Host, Page, Partial},
    registry::Protocol,
    response::{choose_lane, decrypt_plaintexts, respond},
    ring_keys::{RingKeys, RingScheme, given_keys, upload_bytes},
    ring_table::RingTable,
    symbols::from_symbols,
    table::{SegmentShape, TableShape, invalid_descriptor},
    target::Target,
    tournament::Tournament,
    whitening::Whitening,
    wire::{self, KEY_ID_BYTES, QuerySizes},
};

/// The page.
pub struct Onion;

/// What the client has of a table.
pub struct Client {
    keys: Arc<RingKeys>,
    whitening: Whitening,
}

/// What the client keeps between query and answer.
pub struct OnionPending {
    key_id: [u8; KEY_ID_BYTES],
}

/// A part of a table: some entries, in every plane.
pub struct Part<B: RingOps> {
    units: Range<usize>,
    db: B::NttDb,
}

impl Page for Onion {
    const PROTOCOL: Protocol = Protocol::Onion;
    const NAME: &'static str = "onion";
    const IS_FIRST_OF_ITS_SETS: bool = true;

    type Set = RingParams;
    type Table = RingTable;
    type Client = Client;
    type Pending = OnionPending;
    type Scheme<B: Steps> = RingScheme<B>;
    type Part<B: Steps> = Part<B>;
    type Head<B: Steps> = ();
    type Opened<B: Steps> = Arc<Vec<Expanded<B::Words>>>;

    /// The one whose answers are shorter.
    fn default_set(slot_bytes: usize) -> RingParams {
        layout::shorter_answers(slot_bytes)
    }

    fn columns(ring: &RingParams, slots: usize, slot_bytes: usize) -> usize {
        layout::ring_columns(ring, slots, slot_bytes)
    }

    fn table(ring: RingParams, shape: TableShape) -> Result<RingTable, ProtocolError> {
        RingTable::new(ring, shape)
    }

    fn described(
        ring: RingParams,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<RingTable, ProtocolError> {
        match word_bits {
            None => RingTable::new(ring, shape),
            Some(_) => Err(invalid_descriptor("a table over rings has no widths of words")),
        }
    }

    fn segment(base: &RingTable, shape: SegmentShape) -> Result<RingTable, ProtocolError> {
        base.segment(shape)
    }

    fn facts(table: &RingTable) -> Facts {
        let ring = table.ring();
        Facts {
            protocol: Protocol::Onion,
            preset: ring.name(),
            security_bits: ring.security_bits(),
            sigmas: table.noise().sigmas(),
            log2_failure: table.log2_failure(),
            shape: table.shape(),
            word_bits: None,
            query: QuerySizes::rlwe(table.query_bytes()),
            answer_bytes: table.answer_bytes(),
            hint_bytes: 0,
            keys: Some(*ring),
            key_bytes: upload_bytes(ring),
            is_whitened: true,
            encoded_bytes: table.tiling().stored_bytes(),
            units: table.entries(),
            lanes: table.lanes(),
            segments: table.segment_rule(),
            details: vec![
                ("ring_degree", json!(ring.degree())),
                ("symbol_bits", json!(ring.plaintext_bits())),
                ("entries", json!(table.entries())),
                ("folds", json!(table.folds())),
                ("lanes", json!(table.lanes())),
                ("planes", json!(table.planes())),
            ],
        }
    }

    fn database(table: &RingTable) -> Database {
        Database::Plaintexts(*table)
    }

    fn hint(_: &RingTable) -> Option<HintPlan> {
        None
    }

    fn files(table: &RingTable) -> Vec<FileSpec> {
        vec![FileSpec { name: DB_FILE, title: "database", content: Content::Eval(table.tiling()) }]
    }

    fn path(table: &RingTable) -> Vec<Step> {
        let (ring, entries, planes) = (*table.ring(), table.entries(), table.planes());
        let steps = [
            StepShape::Expand { ring, rows: table.shape().columns, folds: table.folds() },
            StepShape::RlweFold { ring, db: table.tiling() },
            StepShape::RgswFold { ring, entries, planes },
            StepShape::Respond { ring, plaintexts: planes },
        ];
        steps.map(Step::of_batch).to_vec()
    }

    fn client(table: &RingTable, given: &Given) -> Result<Client, ProtocolError> {
        let seed = given.whitening.ok_or_else(|| invalid_descriptor("a table over rings has a whitening"))?;
        Ok(Client { keys: given_keys(given)?, whitening: Whitening::new(table.ring(), seed) })
    }

    fn query(
        table: &RingTable,
        client: &Client,
        target: &Target,
        rng: &mut Csprng,
    ) -> (wire::Query, OnionPending) {
        let keys = &client.keys;
        let (entry, _) = table.place(target.block);
        let mut selectors = Zeroizing::new(vec![0u32; table.shape().columns]);
        for (row, selector) in (0u32..).zip(selectors.iter_mut()) {
            // Every row meets every coefficient: no address depends on the target.
            for &(column, coefficient) in &target.columns {
                *selector += u32::from(coefficient) & equal_mask(row, column);
            }
        }
        let bits: Zeroizing<Vec<u32>> =
            Zeroizing::new((0..table.folds()).map(|f| (entry >> f & 1) as u32).collect());
        let packed = encrypt_ring_query(keys.context(), keys.secrets(), &selectors, &bits, rng).into();
        let query = wire::Query { packed, key_id: keys.id().to_vec().into(), ..Default::default() };
        (query, OnionPending { key_id: keys.id() })
    }

    fn recover(
        table: &RingTable,
        client: &Client,
        pending: &OnionPending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let (keys, bits, planes) = (&client.keys, table.ring().plaintext_bits(), table.planes());
        keys.check_id(&pending.key_id)?;
        let (entry, lane) = table.place(target.block);
        let mut symbols = decrypt_plaintexts(keys.context(), keys.answer_secrets(), answer, planes, bits)?;
        for (plane, plaintext) in symbols.chunks_exact_mut(table.ring().degree()).enumerate() {
            let column = plane * table.entries() + entry;
            client.whitening.remove_from(&target.columns, column, plaintext);
        }
        let mut slot = Zeroizing::new(vec![0; table.shape().slot_bytes]);
        let of_slot = choose_lane(&symbols, table.slot_symbols(), table.lanes(), lane);
        from_symbols(&of_slot, bits, &mut slot);
        Ok(slot)
    }

    fn scheme<B: Steps>(backend: &B, table: &RingTable) -> Result<RingScheme<B>, ProtocolError> {
        RingScheme::new(backend, table.ring())
    }

    fn open_part<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        units: Range<usize>,
        files: &F,
    ) -> Result<Part<B>, F::Error> {
        let (table, bytes) = (host.table, files.bytes(DB_FILE)?);
        let columns = match units == (0..table.entries()) {
            true => vec![0..table.tiling().columns()],
            false => table.columns_of(&units),
        };
        let db = NttTiledDb::new(table.tiling(), bytes).map(|db| db.columns(&columns));
        let db = db.and_then(|db| host.backend.open_ntt_db(&host.scheme.ring, db));
        Ok(Part { units, db: db.map_err(ProtocolError::from)? })
    }

    fn open_head<B: Steps, F: Files>(_: &Host<'_, Self, B>, _: &[Part<B>], _: &F) -> Result<(), F::Error> {
        Ok(())
    }

    fn open_keys<B: Steps>(host: &Host<'_, Self, B>, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        host.scheme.open_keys(host.backend, body)
    }

    /// Reads a batch and expands the queries with the clients' keys.
    fn open<B: Steps>(
        host: &Host<'_, Self, B>,
        batch: &Batch<'_, B>,
    ) -> Result<Arc<Vec<Expanded<B::Words>>>, ProtocolError> {
        batch.check_keys()?;
        let (table, scheme) = (host.table, host.scheme);
        let opened = batch.queries.iter().enumerate().map(|(index, query)| {
            open_ring_query(&scheme.context, table.shape().columns, table.folds(), &query.packed)
                .map_err(|source| ProtocolError::Query { index, source })
        });
        let opened = opened.collect::<Result<Vec<_>, _>>()?;
        let (rows, folds) = (table.shape().columns, table.folds());
        Ok(Arc::new(host.backend.expand(&scheme.ring, batch.keys, &opened, rows, folds)?))
    }

    fn wrap<B: Steps>(
        _: &Host<'_, Self, B>,
        opened: &Arc<Vec<Expanded<B::Words>>>,
    ) -> Result<Arc<Vec<Expanded<B::Words>>>, ProtocolError> {
        Ok(opened.clone())
    }

    fn scan<B: Steps>(
        host: &Host<'_, Self, B>,
        part: &Part<B>,
        opened: &Arc<Vec<Expanded<B::Words>>>,
    ) -> Result<Partial<B::Words>, ProtocolError> {
        let selectors: Vec<_> = opened.iter().map(|expanded| &expanded.selectors).collect();
        let bits = bits_of(host.table, opened);
        let folded = host.backend.rlwe_fold(&host.scheme.ring, &part.db, &selectors)?; // (6)  planes x entries
        let (columns, order): (Vec<_>, _) = (folded.iter().collect(), EntryOrder::PlaneMajor);
        let words = tournament(host).play(&part.units, &columns, order, &bits)?; //       (7)  one a plane
        Ok(Partial { units: part.units.clone(), words })
    }

    fn finish<B: Steps>(
        host: &Host<'_, Self, B>,
        _: &(),
        opened: &Arc<Vec<Expanded<B::Words>>>,
        batch: &Batch<'_, B>,
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let bits = bits_of(host.table, opened);
        let chosen = tournament(host).finish(&bits, partials)?;
        let (scheme, chosen) = (host.scheme, chosen.iter().collect::<Vec<_>>());
        respond(host.backend, &scheme.ring, &scheme.context, batch.keys, &chosen)
    }
}

/// The bits of the entry of every query, as many as there are rounds.
fn bits_of<'o, W>(table: &RingTable, opened: &'o [Expanded<W>]) -> Vec<&'o [RlweBatch<W>]> {
    opened.iter().map(|expanded| &expanded.bits[..table.folds()]).collect()
}

fn tournament<'a, B: Steps>(host: &Host<'a, Onion, B>) -> Tournament<'a, B> {
    let (table, kept) = (host.table, host.scheme.context.kept());
    let ciphertext_words = 2 * kept.limbs() * kept.degree();
    let (entries, planes) = (table.entries(), table.planes());
    Tournament { backend: host.backend, ring: &host.scheme.ring, entries, planes, ciphertext_words }
}
