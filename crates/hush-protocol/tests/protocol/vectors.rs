//! Known answers with intermediates, one file a protocol in `vectors/`: they fail when any byte of the format,
//! of the public matrix or of a step moves. `HUSH_WRITE_VECTORS=1 cargo test -p hush-protocol known_answers`
//! writes them anew: a change there is a break that the changelog must name.

use std::{env, fs, path::PathBuf, slice, sync::Arc};

use hush_he::{
    algorithms::{open_column_keys, open_ring_query, open_tlwe_query},
    codec::{pack_wide, unpack_scaled},
    entities::{EvaluationKeys, MatrixShape, PublicMatrix},
    params::{
        DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_PRIVKS_N256, ONION_M31, PACK_M31,
        RingContext, RingParams, TFHE_COMPACT,
    },
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{
        BatchWords, ColumnOps, EntryOrder, Expanded, LweBatch, LweOps, LweQueries, PackOps, PowerKeys,
        RingOps, RlweBatch, SentPoly, TfheOps, key_words, round_word_up,
    },
    ntt_tiling::NttTiledDb,
    pack_shape::PackShape,
    reference::Reference,
    symbol_tiling::SymbolDb,
    tiling::TiledDb,
};
use hush_protocol::{
    Protocol, Target,
    column_page::{ColumnRing, chain_polys},
    facts::{CHAIN_FILE, COLUMNS_FILE, DB_FILE, Database, DbForm, HINT_FILE, LIFTED_FILE, SECOND_DB_FILE},
    pack_table::PackTable,
    ring_keys::open_upload,
    ring_table::RingTable,
    table::TableShape,
    wire,
};
use serde_json::{Value, json};

use crate::support::{
    CLIENT_SEED, PUBLIC_SEED, Setup, Stored, WHITENING_SEED, column_table, pack_table, shape, table,
};

fn entry(name: &str, bytes: &[u8]) -> Value {
    let head = hex::encode(&bytes[..bytes.len().min(32)]);
    json!({ "name": name, "bytes": bytes.len(), "head": head, "blake3": blake3::hash(bytes).to_hex().as_str() })
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a table of random bytes.
fn setup(protocol: Protocol, set: &str, shape: TableShape) -> Setup {
    let mut matrix = vec![0; shape.blocks * shape.slot_bytes * shape.columns];
    Csprng::insecure_from_seed(100).fill_bytes(&mut matrix);
    Setup::new(Reference, table(protocol, set, shape), matrix)
}

/// A look-up: its query, its answer, its slot.
struct LookUp {
    query: wire::Query,
    answer: Vec<u8>,
    slot: Vec<u8>,
}

impl LookUp {
    fn new(setup: &Setup, columns: &[(u32, u8)]) -> Self {
        let target = Target { columns: columns.to_vec(), block: setup.table.facts().shape.blocks - 1 };
        let (query, pending) = setup.client.query(target, &mut Csprng::insecure_from_seed(101));
        let answer = setup.answer(slice::from_ref(&query)).unwrap().remove(0);
        let slot = setup.recover(&pending, &answer).unwrap();
        Self { query, answer, slot }
    }

    fn result(&self) -> [Value; 2] {
        [entry("answer", &self.answer), entry("slot", &self.slot)]
    }
}

/// Returns the whole of a file.
fn vector(setup: &Setup, intermediates: Vec<Value>) -> Value {
    let facts = setup.table.facts();
    let mut seeds = json!({ "database": 100, "query": 101 });
    if setup.keys.is_some() {
        seeds["client"] = hex::encode(CLIENT_SEED).into();
    }
    if setup.table.hint().is_some() {
        seeds["public"] = hex::encode(PUBLIC_SEED.0).into();
    }
    if facts.is_whitened {
        seeds["whitening"] = hex::encode(WHITENING_SEED).into();
    }
    let mut vector = json!({
        "protocol": facts.protocol,
        "preset": facts.preset,
        "columns": facts.shape.columns,
        "blocks": facts.shape.blocks,
        "slot_bytes": facts.shape.slot_bytes,
        "seeds": seeds,
        "intermediates": intermediates,
    });
    if let Some(bits) = facts.word_bits {
        vector["word_bits"] = json!(bits);
    }
    vector
}

fn intermediates(protocol: Protocol) -> Value {
    match protocol {
        Protocol::Frodo => lwe_intermediates(protocol, shape(600, 1, 5)),
        Protocol::Simple => lwe_intermediates(protocol, shape(300, 3, 5)),
        Protocol::Double => lwe_intermediates(protocol, shape(300, 3, 1)),
        Protocol::Onion => onion_intermediates(),
        Protocol::Tfhe => tfhe_intermediates(),
        Protocol::TfhePrivks => privks_intermediates(),
        Protocol::ExppackS | Protocol::ExppackD | Protocol::DoublePack | Protocol::Hybrid => {
            pack_intermediates(protocol)
        }
        Protocol::ColpackS | Protocol::Colpack => column_intermediates(protocol),
        Protocol::Download => download_intermediates(),
    }
}

fn database(setup: &Setup) -> TiledDb {
    let Database::Bytes(tiling) = setup.table.database() else { panic!("a byte database") };
    setup.files.tiled(DB_FILE, tiling)
}

fn last_row(shape: MatrixShape) -> Value {
    let mut row = vec![0; shape.n()];
    PublicMatrix::new(PUBLIC_SEED, shape).row_into(shape.cols() - 1, &mut row);
    entry("public matrix, last row", &words(&row))
}

/// (1) of one query.
fn fold(db: &TiledDb, vector: &[u8], cols: usize, bits: u32) -> LweBatch {
    let words = unpack_scaled(vector, cols, bits).unwrap();
    Reference.lwe_fold(db, &LweQueries { cols, words }).unwrap()
}

fn lwe_intermediates(protocol: Protocol, shape: TableShape) -> Value {
    let setup = setup(protocol, DEFAULT_LWE.name(), shape);
    let look_up = LookUp::new(&setup, &[(7, 1), (299, 3)]);
    let (db, plan, facts) = (database(&setup), setup.table.hint().unwrap(), setup.table.facts());
    let mut list = vec![
        entry("database, row-major", &setup.matrix),
        entry("database, tiled", db.bytes()),
        last_row(plan.matrix),
        entry("hint of the first fold, words", &words(&setup.files.hints[0])),
    ];
    if protocol == Protocol::Double {
        list.push(entry("second database, tiled", setup.files.get(SECOND_DB_FILE)));
    }
    list.push(entry("hint, packed", setup.files.get(HINT_FILE)));
    list.push(entry("query, first", &look_up.query.first));
    if protocol == Protocol::Double {
        list.push(entry("query, second", &look_up.query.second));
    } else {
        let folded = fold(&db, &look_up.query.first, shape.columns, facts.word_bits.unwrap()[0]);
        list.push(entry("folded words", &words(&folded.words)));
    }
    list.extend(look_up.result());
    vector(&setup, list)
}

/// Returns a sum of two slots, of which nothing is sent.
fn download_intermediates() -> Value {
    let setup = setup(Protocol::Download, "DOWNLOAD", shape(300, 3, 5));
    let look_up = LookUp::new(&setup, &[(7, 1), (299, 3)]);
    let mut list = vec![
        entry("database, row-major", &setup.matrix),
        entry("slots", setup.files.get(HINT_FILE)),
        entry("query, first", &look_up.query.first),
    ];
    list.extend(look_up.result());
    vector(&setup, list)
}

/// Two planes, three entries, four rows of random plaintexts.
fn onion_intermediates() -> Value {
    let shape = shape(4, 3, 2 * ONION_M31.plaintext_bytes());
    let params = table(Protocol::Onion, ONION_M31.name(), shape);
    let table = RingTable::new(ONION_M31, shape).unwrap();
    let context = Arc::new(RingContext::new(ONION_M31));
    let tiling = table.tiling();
    let symbols = random_symbols(&ONION_M31, tiling.rows() * tiling.columns());
    let polys = Reference.ntt_db(&context, &symbols).unwrap();
    let db = NttTiledDb::from_polys(tiling, &polys);
    let files = Stored::of_ntt(&params, db.clone());
    let setup = Setup::of_files(Reference, params, Vec::new(), files);
    let look_up = LookUp::new(&setup, &[(3, 1)]);
    let upload = setup.keys.as_ref().unwrap().upload();
    let keys = open_upload(&context, upload).unwrap();
    let opened = open_ring_query(&context, shape.columns, table.folds(), &look_up.query.packed).unwrap();
    let (rows, folds) = (shape.columns, table.folds());
    let expanded = Reference.expand(&context, &[&keys], &[opened], rows, folds).unwrap().remove(0);
    let folded = Reference.rlwe_fold(&context, &db, &[&expanded.selectors]).unwrap().remove(0);
    let db = entry("database, tiled", db.bytes());
    let mut list = over_ring(&symbols, db, upload, &look_up.query, &expanded, &folded);
    list.extend(look_up.result());
    vector(&setup, list)
}

/// Three entries of four lanes, the last not full, four rows of random symbols: of the default set, kept as symbols.
fn tfhe_intermediates() -> Value {
    let (ring, shape) = (*TFHE_COMPACT.ring(), shape(4, 11, 256));
    let params = table(Protocol::Tfhe, ring.name(), shape).in_form(DbForm::Symbols).unwrap();
    let Database::Plaintexts(table) = params.database() else { panic!("a table over rings") };
    let (context, tiling) = (Arc::new(RingContext::new(ring)), table.symbol_tiling());
    let symbols = random_symbols(&ring, tiling.rows() * tiling.columns());
    let db = SymbolDb::from_symbols(tiling, &symbols);
    let setup = Setup::of_files(Reference, params, Vec::new(), Stored::of_symbols(db.bytes().to_vec()));
    let look_up = LookUp::new(&setup, &[(3, 1)]);
    let upload = setup.keys.as_ref().unwrap().upload();
    let keys = open_upload(&context, upload).unwrap();
    let (rows, bits) = (shape.columns, table.bits());
    let opened = open_ring_query(&context, rows, bits, &look_up.query.packed).unwrap();
    let expanded = Reference.expand(&context, &[&keys], &[opened], rows, bits).unwrap().remove(0);
    let folded = Reference.symbol_fold(&context, &db, &[&expanded.selectors]).unwrap().remove(0);
    let (entry_bits, lane_bits) = expanded.bits.split_at(table.folds());
    let chosen = Reference.rgsw_fold(&context, &[&folded], 1, EntryOrder::PlaneMajor, &[entry_bits]).unwrap();
    let rotated = Reference.rotate(&context, &[&chosen[0]], &[lane_bits]).unwrap();
    let db = entry("database, packed", db.bytes());
    let mut list = over_ring(&symbols, db, upload, &look_up.query, &expanded, &folded);
    list.extend([
        entry("chosen ciphertext", &words(&chosen[0].words)),
        entry("rotated ciphertext", &words(&rotated[0].words)),
    ]);
    list.extend(look_up.result());
    vector(&setup, list)
}

/// Three entries of two lanes, a row, in a ring that is much too small: the key is long.
fn privks_intermediates() -> Value {
    let (ring, shape) = (*INSECURE_PRIVKS_N256.ring(), shape(1, 5, 32));
    let params = table(Protocol::TfhePrivks, ring.name(), shape);
    let Database::Plaintexts(table) = params.database() else { panic!("a table over rings") };
    let (context, tiling) = (Arc::new(RingContext::new(ring)), table.tiling());
    let symbols = random_symbols(&ring, tiling.rows() * tiling.columns());
    let db = NttTiledDb::from_polys(tiling, &Reference.ntt_db(&context, &symbols).unwrap());
    let files = Stored::of_ntt(&params, db.clone());
    let setup = Setup::of_files(Reference, params, Vec::new(), files);
    let look_up = LookUp::new(&setup, &[(0, 1)]);
    let upload = setup.keys.as_ref().unwrap().upload();
    let keys = open_upload(&context, upload).unwrap();
    let (rows, bits) = (shape.columns, table.bits());
    let opened = open_tlwe_query(&context, rows, bits, &look_up.query.packed).unwrap();
    let expanded = Reference.private_key_switch(&context, &[&keys], &[opened], rows, bits).unwrap().remove(0);
    let folded = Reference.rlwe_fold(&context, &db, &[&expanded.selectors]).unwrap().remove(0);
    let db = entry("database, tiled", db.bytes());
    let mut list = over_ring(&symbols, db, upload, &look_up.query, &expanded, &folded);
    list.extend(look_up.result());
    vector(&setup, list)
}

/// Random symbols of so many plaintexts.
fn random_symbols(ring: &RingParams, plaintexts: usize) -> Vec<u32> {
    let rng = &mut Csprng::insecure_from_seed(100);
    (0..plaintexts * ring.degree()).map(|_| rng.next_u32() >> (32 - ring.plaintext_bits())).collect()
}

/// Returns the common part of all tables over rings, up to the first dimension.
fn over_ring(
    symbols: &[u32],
    db: Value,
    upload: &[u8],
    query: &wire::Query,
    expanded: &Expanded,
    folded: &RlweBatch,
) -> Vec<Value> {
    vec![
        entry("symbols", &words(symbols)),
        db,
        entry("evaluation keys, uploaded", upload),
        entry("query", &query.packed),
        entry("selectors", &words(&expanded.selectors.words)),
        entry("RGSW rows", &rgsw_rows(&expanded.bits)),
        entry("folded first dimension", &words(&folded.words)),
    ]
}

fn rgsw_rows(bits: &[RlweBatch]) -> Vec<u8> {
    bits.iter().flat_map(|bit| words(&bit.words)).collect()
}

/// Returns a few columns of random bytes: three entries with a short one at the end, lanes in `exppack-s`, two planes in
/// `double-pack`, online rows that start in the middle of a plaintext in `exppack-d`. The default set once, in `hybrid`: an
/// expansion under it takes the scalar reference seconds.
fn pack_intermediates(protocol: Protocol) -> Value {
    let (params, blocks, slot_bytes) = match protocol {
        Protocol::ExppackS => (INSECURE_PACK_N256, 5, 125),
        Protocol::ExppackD => (INSECURE_PACK_N256, 3, 3),
        Protocol::DoublePack => (INSECURE_PACK_N256, 3, 300),
        _ => (PACK_M31, 3, 4096),
    };
    let shape = shape(8, blocks, slot_bytes);
    let setup = setup(protocol, params.name(), shape);
    let look_up = LookUp::new(&setup, &[(3, 1), (7, 2)]);
    let (query, files) = (&look_up.query, &setup.files);
    let mut list = vec![
        entry("database, row-major", &setup.matrix),
        entry("hint of the first fold, words", &words(&files.hints[0])),
    ];
    if protocol == Protocol::ExppackD {
        list.push(entry("second database, tiled", files.get(SECOND_DB_FILE)));
        list.push(entry("hint of the second fold, words", &words(&files.hints[1])));
    }
    let upload = setup.keys.as_ref().unwrap().upload();
    list.extend([
        entry("hint, lifted and tiled", files.get(LIFTED_FILE)),
        entry("evaluation keys, uploaded", upload),
        entry("query, first", &query.first),
        entry("query, second", &query.second),
        entry("query, packed", &query.packed),
    ]);
    let context = Arc::new(RingContext::new(*params.ring()));
    let keys = open_upload(&context, upload).unwrap();
    let (steps, last) = pack_steps(&setup, &pack_table(protocol, params, shape), &context, query, &keys);
    assert_eq!(respond(&context, &keys, &last), look_up.answer, "{protocol}: the steps lead to the answer");
    list.extend(steps);
    list.extend(look_up.result());
    vector(&setup, list)
}

/// Returns the answer that ciphertexts make: packed in pairs, rounded.
fn respond(context: &Arc<RingContext>, keys: &EvaluationKeys, ciphertexts: &RlweBatch) -> Vec<u8> {
    let (bits, ciphertext_words) = (context.params().response_bits(), ciphertexts.ciphertext_words);
    let mut out = Vec::new();
    for words in ciphertexts.words.chunks(2 * ciphertext_words) {
        let batch = RlweBatch { ciphertext_words, words: words.to_vec().into() };
        let (polys, widths) = match batch.count() {
            1 => (batch.words, &[bits.a, bits.b][..]),
            _ => {
                let packed = Reference.pack_pairs(context, &[keys], &[&batch]).unwrap().remove(0);
                (packed, &[bits.a, bits.b, bits.b][..])
            }
        };
        switch(context, &polys, widths, &mut out);
    }
    out
}

/// Polynomials at their widths.
fn switch(context: &Arc<RingContext>, polys: &BatchWords, widths: &[u32], out: &mut Vec<u8>) {
    let degree = context.params().degree();
    let sent: Vec<_> = widths.iter().map(|&bits| SentPoly::whole(degree, bits)).collect();
    out.extend(Reference.mod_switch(context, &[polys], 0, &sent).unwrap().remove(0));
}

/// Returns the server's steps for a query, and the ciphertexts that it answers with.
fn pack_steps(
    setup: &Setup,
    table: &PackTable,
    context: &Arc<RingContext>,
    query: &wire::Query,
    keys: &EvaluationKeys,
) -> (Vec<Value>, RlweBatch) {
    let (n, folds) = (table.params().lwe().n(), table.folds());
    let opened = open_ring_query(context, n, folds, &query.packed).unwrap();
    let expanded = Reference.expand(context, &[keys], &[opened], n, folds).unwrap().remove(0);
    let steps = Steps { table, context, selectors: &expanded.selectors };
    let db = setup.files.tiled(DB_FILE, table.tiling());
    let folded = fold(&db, &query.first, table.shape().columns, table.query_bits()).words;
    let mut list =
        vec![entry("selectors", &words(&expanded.selectors.words)), entry("folded words", &words(&folded))];
    if table.spec().protocol == Protocol::ExppackD {
        let (steps, last) = steps.exppack_d(
            &setup.files.tiled(SECOND_DB_FILE, table.second_tiling()),
            &folded,
            &query.second,
        );
        list.extend(steps);
        return (list, last);
    }
    let hint = setup.files.ntt(LIFTED_FILE, table.hint_tiling());
    let packed = steps.pack(&hint, &folded, table.first_shape());
    list.push(entry("packed ciphertexts", &words(&packed.words)));
    if table.spec().protocol == Protocol::Hybrid {
        let (order, bits) = (EntryOrder::EntryMajor, &expanded.bits[..]);
        let chosen = Reference.rgsw_fold(context, &[&packed], 1, order, &[bits]).unwrap().remove(0);
        list.push(entry("RGSW rows", &rgsw_rows(bits)));
        list.push(entry("chosen ciphertext", &words(&chosen.words)));
        return (list, chosen);
    }
    if table.spec().protocol == Protocol::DoublePack {
        let (steps, last) = steps.double_pack(&packed, &query.second);
        list.extend(steps);
        return (list, last);
    }
    (list, packed)
}

struct Steps<'a> {
    table: &'a PackTable,
    context: &'a Arc<RingContext>,
    selectors: &'a RlweBatch,
}

impl Steps<'_> {
    fn fold_second(&self, db: &TiledDb, vector: &[u8]) -> BatchWords {
        fold(db, vector, self.table.second_words(), self.table.query_bits()).words
    }

    /// Returns the hint of the first `rows` rows of a database of the second fold.
    fn second_hint(&self, db: &TiledDb, rows: usize) -> BatchWords {
        let matrix = PublicMatrix::new(PUBLIC_SEED, self.table.second_matrix());
        Reference.lwe_hint(db, &matrix, 0..rows).unwrap()
    }

    fn pack(&self, hint: &NttTiledDb, words: &[u32], shape: PackShape) -> RlweBatch {
        let folded = LweBatch { rows: shape.rows(), words: words.to_vec().into() };
        let columns = 0..shape.plaintexts();
        Reference.pack(self.context, hint, &folded, &shape, columns, &[self.selectors]).unwrap().remove(0)
    }

    /// Packs the rows of the second fold with a hint that is lifted at once.
    fn pack_second(&self, hint: &BatchWords, words: &[u32]) -> RlweBatch {
        let (n, shape) = (self.table.params().lwe().n(), self.table.second_shape());
        let hint = Reference.lift_hint(self.context, hint, n, &shape, 0..shape.plaintexts()).unwrap();
        self.pack(&hint, words, shape)
    }

    /// Returns the server lifts and packs the rows that stem from the answer by themselves; here they are not told apart.
    fn exppack_d(&self, hint_db: &TiledDb, folded: &BatchWords, second: &[u8]) -> ([Value; 3], RlweBatch) {
        let table = self.table;
        let answer_db = Reference.reinterpret_lwe(folded, 1, table.shape().slot_bytes, 2).unwrap();
        let fold = |db| self.fold_second(db, second);
        let rows = [&fold(hint_db)[..], &fold(&answer_db)].concat();
        let hint = [
            &self.second_hint(hint_db, table.second_hint_rows())[..],
            &self.second_hint(&answer_db, table.second_answer_rows()),
        ];
        let packed = self.pack_second(&hint.concat().into(), &rows);
        let list = [
            entry("database of the answer, tiled", answer_db.bytes()),
            entry("folded words of both databases", &words(&rows)),
            entry("packed ciphertexts", &words(&packed.words)),
        ];
        (list, packed)
    }

    fn double_pack(&self, packed: &RlweBatch, second: &[u8]) -> ([Value; 3], RlweBatch) {
        let planes = self.table.first_shape().planes();
        let db = Reference.reinterpret_rlwe(self.context, packed, planes).unwrap();
        let rows = self.fold_second(&db, second);
        let hint = self.second_hint(&db, self.table.second_shape().rows());
        let packed = self.pack_second(&hint, &rows);
        let list = [
            entry("second database, tiled", db.bytes()),
            entry("second folded words", &words(&rows)),
            entry("second packed ciphertexts", &words(&packed.words)),
        ];
        (list, packed)
    }
}

/// More columns than a ring element of the public matrix has, three entries of four: of two lanes each, the last of one, in
/// `colpack-s`; of two planes in `colpack`.
fn column_intermediates(protocol: Protocol) -> Value {
    let params = INSECURE_COLPACK_N256;
    let shape = if protocol == Protocol::Colpack { shape(300, 3, 300) } else { shape(300, 5, 100) };
    let setup = setup(protocol, params.name(), shape);
    let look_up = LookUp::new(&setup, &[(7, 1), (299, 3)]);
    let (public, table, files) =
        (ColumnRing::new(&params, PUBLIC_SEED), column_table(protocol, params, shape), &setup.files);
    let masks = public.masks();
    let polys = chain_polys(&table, files.get(CHAIN_FILE)).unwrap();
    let mut list = vec![
        entry("database, row-major", &setup.matrix),
        last_row(table.matrix()),
        entry("mask of the rotation key", &words(masks.rotation().words())),
        entry("mask of the conjugation key", &words(masks.conjugation().words())),
        entry("mask of the RGSW row that meets the digit of a", &words(masks.power()[0].words())),
        entry("mask of the RGSW row that meets the digit of b", &words(masks.power()[1].words())),
        entry("hint of the first fold, words", &words(&files.hints[0])),
        entry("pack columns, tiled", files.get(COLUMNS_FILE)),
        entry("digits of the chain", &words(&polys.digits)),
    ];
    list.push(match protocol {
        Protocol::ColpackS => entry("masks of the plaintexts as they travel", files.get(HINT_FILE)),
        _ => entry("masks of the plaintexts", &words(&polys.masks)),
    });
    list.push(entry("query, first", &look_up.query.first));
    list.push(entry("query, packed", &look_up.query.packed));
    let (steps, last) = column_steps(&setup, &public, &look_up.query);
    assert_eq!(last, look_up.answer, "{protocol}: the steps lead to the answer");
    list.extend(steps);
    list.extend(look_up.result());
    vector(&setup, list)
}

/// Returns the server's steps for a query, and its answer.
fn column_steps(setup: &Setup, public: &ColumnRing, query: &wire::Query) -> (Vec<Value>, Vec<u8>) {
    let (facts, params, context) = (setup.table.facts(), INSECURE_COLPACK_N256, public.context());
    let table = column_table(facts.protocol, params, facts.shape);
    let polys = chain_polys(&table, setup.files.get(CHAIN_FILE)).unwrap();
    let chain = Reference.open_chain(context, &table.pack_shape(), polys).unwrap();
    let keys = open_column_keys(&params, context, table.folds(), &query.packed).unwrap();
    let folded = fold(&database(setup), &query.first, table.shape().columns, table.widths().query);
    let key_words = key_words(keys.rotation.len(), &[&keys.rotation]);
    let mut list =
        vec![entry("folded words", &words(&folded.words)), entry("key words", &words(&key_words.words))];
    let columns = setup.files.tiled(COLUMNS_FILE, table.columns_tiling());
    let conjugation = [&keys.conjugation];
    let packed = Reference.pack_columns(context, &columns, &chain, folded, &key_words, &conjugation).unwrap();
    list.push(entry("packed words", &words(&packed.words)));
    let (bits, mut answer) = (table.response_bits(), Vec::new());
    if table.folds() {
        let (masks, bodies) = (public.masks().power(), keys.power.expect("of a query that is folded"));
        let powers = PowerKeys { masks, bodies: &[Some(&bodies)] };
        let chosen = Reference.rgsw_power_fold(context, &chain, &packed, powers).unwrap();
        let bodies = bodies.map(|body| context.kept().forward(body));
        let rows = masks.iter().zip(&bodies).flat_map(|(mask, body)| [mask.words(), body.words()]);
        list.push(entry("RGSW rows", &words(&rows.collect::<Vec<_>>().concat())));
        list.push(entry("chosen ciphertexts", &words(&chosen.words)));
        switch(context, &chosen.words, &[bits.a, bits.b].repeat(chosen.count()), &mut answer);
    } else {
        let rounded = packed.words.iter().map(|&b| round_word_up(b, bits.b).into());
        pack_wide(rounded, bits.b, &mut answer);
    }
    (list, answer)
}

#[test]
fn known_answers_hold() {
    std::thread::scope(|scope| {
        for &protocol in Protocol::ALL {
            scope.spawn(move || check(protocol));
        }
    });
}

fn check(protocol: Protocol) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../vectors/{protocol}.json"));
    let actual = intermediates(protocol);
    if env::var_os("HUSH_WRITE_VECTORS").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&actual).unwrap() + "\n").unwrap();
    }
    let expected: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(actual, expected, "{protocol}: the first entry that differs is where the change is");
}
