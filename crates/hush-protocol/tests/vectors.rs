//! Known answers with intermediates, one file a protocol in `vectors/`: they fail when any byte of the format,
//! of the public matrix or of a step moves. `HUSH_WRITE_VECTORS=1 cargo test -p hush-protocol --test vectors`
//! writes them anew: a change there is a break that the changelog must name.

mod column_setup;

use std::{env, fs, iter::repeat, path::PathBuf, sync::Arc};

use column_setup::Setup;
use hush_he::{
    algorithms::{open_column_keys, open_ring_query},
    codec::{pack_rounded, pack_wide, unpack_scaled},
    entities::EvaluationKeys,
    params::{DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_PACK_N256, ONION_M31, PACK_M31, RingContext},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{
        BatchWords, ColumnOps, EntryOrder, LweBatch, LweOps, LweQueries, PackOps, PowerKeys, RingOps,
        RlweBatch, key_words, round_word_up,
    },
    ntt_tiling::NttTiledDb,
    pack_shape::PackShape,
    reference::Reference,
    tiling::TiledDb,
};
use hush_protocol::{
    Target, column_packing,
    column_table::ColumnTable,
    double, exppack_d,
    lwe_table::LweTable,
    onion,
    pack_table::PackTable,
    packing::{self, PackHost},
    ring_keys::{RingKeys, open_upload},
    ring_table::RingTable,
    simple,
    table::{Family, Protocol, TableShape},
    whitening::Whitening,
    wire,
};
use serde_json::{Value, json};

fn entry(name: &str, bytes: &[u8]) -> Value {
    let head = hex::encode(&bytes[..bytes.len().min(32)]);
    json!({ "name": name, "bytes": bytes.len(), "head": head, "blake3": blake3::hash(bytes).to_hex().as_str() })
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn intermediates(protocol: Protocol) -> Value {
    let shape = match protocol {
        _ if protocol.family() == Family::Column => return column_intermediates(protocol),
        Protocol::Frodo => TableShape { columns: 600, blocks: 1, slot_bytes: 5 },
        Protocol::Simple => TableShape { columns: 300, blocks: 3, slot_bytes: 5 },
        Protocol::Double => TableShape { columns: 300, blocks: 3, slot_bytes: 1 },
        Protocol::Onion => return onion_intermediates(),
        _ => return pack_intermediates(protocol),
    };
    let params = LweTable::new(protocol, DEFAULT_LWE, shape).unwrap();
    let mut matrix = vec![0; shape.blocks * shape.slot_bytes * shape.columns];
    Csprng::insecure_from_seed(100).fill_bytes(&mut matrix);
    let tiled = TiledDb::from_matrix(shape.blocks * shape.slot_bytes, shape.columns, &matrix);
    let mut a_row = vec![0; params.lwe().n()];
    params.first_matrix().row_into(shape.columns - 1, &mut a_row);
    let hint =
        Reference.lwe_hint(&tiled, &params.first_matrix(), 0..shape.blocks * shape.slot_bytes).unwrap();
    let target = Target { columns: vec![(7, 1), (299, 3)], block: shape.blocks - 1 };
    let rng = &mut Csprng::insecure_from_seed(101);
    let mut list = vec![
        entry("database, row-major", &matrix),
        entry("database, tiled", tiled.bytes()),
        entry("public matrix, last row", &words(&a_row)),
        entry("hint of the first fold, words", &words(&hint)),
    ];
    if protocol == Protocol::Double {
        let second = double::second_db(&Reference, &params, &hint).unwrap();
        let rows = params.second_hint_rows();
        let second_hint = Reference.lwe_hint(&second, &params.second_matrix(), 0..rows).unwrap();
        let packed = pack_rounded(&second_hint, params.widths().hint);
        let (query, pending) = double::query(&params, &target, rng);
        let answer =
            double::answer(&Reference, &tiled, &second, &params, std::slice::from_ref(&query)).unwrap();
        let slot = double::recover(&params, &packed, &pending, &answer[0]).unwrap();
        list.extend([
            entry("second database, tiled", second.bytes()),
            entry("hint, packed", &packed),
            entry("query, first", &query.first),
            entry("query, second", &query.second),
            entry("answer", &answer[0]),
            entry("slot", &slot),
        ]);
    } else {
        let packed = pack_rounded(&hint, params.widths().hint);
        let (query, pending) = simple::query(&params, &target, rng);
        let bits = params.widths().query;
        let scaled = unpack_scaled(&query.first, shape.columns, bits).unwrap();
        let folded = Reference.lwe_fold(&tiled, &LweQueries { cols: shape.columns, words: scaled }).unwrap();
        let answer = simple::answer(&Reference, &tiled, &params, std::slice::from_ref(&query)).unwrap();
        let slot = simple::recover(&params, &packed, &pending, &answer[0]).unwrap();
        list.extend([
            entry("hint, packed", &packed),
            entry("query, first", &query.first),
            entry("folded words", &words(&folded.words)),
            entry("answer", &answer[0]),
            entry("slot", &slot),
        ]);
    }
    let widths = params.widths();
    json!({
        "protocol": protocol,
        "preset": params.lwe().name(),
        "columns": shape.columns,
        "blocks": shape.blocks,
        "slot_bytes": shape.slot_bytes,
        "word_bits": [widths.query, widths.hint, widths.answer],
        "seeds": { "database": 100, "query": 101 },
        "intermediates": list,
    })
}

/// Two planes, three entries, four rows of random plaintexts.
fn onion_intermediates() -> Value {
    let shape = TableShape { columns: 4, blocks: 3, slot_bytes: 2 * ONION_M31.plaintext_bytes() };
    let table = RingTable::new(ONION_M31, shape).unwrap();
    let context = Arc::new(RingContext::new(ONION_M31));
    let tiling = table.tiling();
    let rng = &mut Csprng::insecure_from_seed(100);
    let count = tiling.rows() * tiling.columns() * ONION_M31.degree();
    let symbols: Vec<u32> = (0..count).map(|_| rng.next_u32() >> (32 - ONION_M31.plaintext_bits())).collect();
    let polys = Reference.ntt_db(&context, &symbols).unwrap();
    let db = NttTiledDb::from_polys(tiling, &polys);
    let client = RingKeys::from_seed(&ONION_M31, &[7; 32]);
    let keys = open_upload(&context, client.upload()).unwrap();
    let target = Target { columns: vec![(3, 1)], block: 2 };
    let (query, pending) = onion::query(&table, &client, target, &mut Csprng::insecure_from_seed(101));
    let opened = open_ring_query(&context, table.leaves(), &query).unwrap();
    let (rows, folds) = (shape.columns, table.folds());
    let expanded = Reference.expand(&context, &[&keys], &[opened], rows, folds).unwrap().remove(0);
    let folded = Reference.rlwe_fold(&context, &db, &[&expanded.selectors]).unwrap().remove(0);
    let rgsw: Vec<u32> = expanded.bits.iter().flat_map(|bit| bit.words.to_vec()).collect();
    let answer = onion::answer(&Reference, &context, &db, &context, &table, &[&query], &[&keys]).unwrap();
    let whitening = Whitening::new(&ONION_M31, [9; 32]);
    let slot = onion::recover(&table, &client, &whitening, &pending, &answer[0]).unwrap();
    json!({
        "protocol": Protocol::Onion,
        "preset": ONION_M31.name(),
        "columns": shape.columns,
        "blocks": shape.blocks,
        "slot_bytes": shape.slot_bytes,
        "seeds": { "database": 100, "query": 101, "client": hex::encode([7; 32]), "whitening": hex::encode([9; 32]) },
        "intermediates": [
            entry("symbols", &words(&symbols)),
            entry("database, tiled", db.bytes()),
            entry("evaluation keys, uploaded", client.upload()),
            entry("query", &query),
            entry("selectors", &words(&expanded.selectors.words)),
            entry("RGSW rows", &words(&rgsw)),
            entry("folded first dimension", &words(&folded.words)),
            entry("answer", &answer[0]),
            entry("slot", &slot),
        ],
    })
}

/// A few columns of random bytes: three entries with a short one at the end, lanes in `exppack-s`, two planes in
/// `double-pack`, online rows that start in the middle of a plaintext in `exppack-d`. The default set once, in `hybrid`: an
/// expansion under it takes the scalar reference seconds.
fn pack_intermediates(protocol: Protocol) -> Value {
    let (params, blocks, slot_bytes) = match protocol {
        Protocol::ExppackS => (INSECURE_PACK_N256, 5, 125),
        Protocol::ExppackD => (INSECURE_PACK_N256, 3, 3),
        Protocol::DoublePack => (INSECURE_PACK_N256, 3, 300),
        _ => (PACK_M31, 3, 4096),
    };
    let shape = TableShape { columns: 8, blocks, slot_bytes };
    let table = PackTable::new(protocol, params, shape).unwrap();
    let (n, ring) = (params.lwe().n(), params.ring());
    let mut matrix = vec![0; table.rows() * shape.columns];
    Csprng::insecure_from_seed(100).fill_bytes(&mut matrix);
    let context = &Arc::new(RingContext::new(*ring));
    let db = TiledDb::from_matrix(table.rows(), shape.columns, &matrix);
    let mut hint = Reference.lwe_hint(&db, &table.first_matrix(), 0..table.rows()).unwrap();
    let mut list =
        vec![entry("database, row-major", &matrix), entry("hint of the first fold, words", &words(&hint))];
    let second_db = (protocol == Protocol::ExppackD).then(|| {
        let second = exppack_d::second_db(&Reference, &table, &hint).unwrap();
        hint = Reference.lwe_hint(&second, &table.second_matrix(), 0..table.second_hint_rows()).unwrap();
        list.push(entry("second database, tiled", second.bytes()));
        list.push(entry("hint of the second fold, words", &words(&hint)));
        let mut padded = hint.to_vec();
        padded.resize(table.second_shape().rows() * n, 0);
        hint = padded.into();
        second
    });
    let lifted = table.hint_shape();
    let hint = Reference.lift_hint(context, &hint, n, &lifted, 0..lifted.plaintexts()).unwrap();
    let client = RingKeys::from_seed(ring, &[7; 32]);
    let keys = open_upload(context, client.upload()).unwrap();
    let target = Target { columns: vec![(3, 1), (7, 2)], block: shape.blocks - 1 };
    let (query, pending) = packing::query(&table, &client, target, &mut Csprng::insecure_from_seed(101));
    let host = PackHost {
        backend: &Reference,
        ring: context,
        context,
        table: &table,
        db: &db,
        second_db: second_db.as_ref(),
        hint: &hint,
    };
    let answer = packing::answer(&host, std::slice::from_ref(&query), &[&keys]).unwrap();
    let slot = packing::recover(&table, &client, &pending, &answer[0]).unwrap();
    list.extend([
        entry("hint, lifted and tiled", hint.bytes()),
        entry("evaluation keys, uploaded", client.upload()),
        entry("query, first", &query.first),
        entry("query, second", &query.second),
        entry("query, packed", &query.packed),
    ]);
    let (steps, last) = pack_steps(&host, &query, &keys);
    assert_eq!(respond(context, &keys, &last), answer[0], "{protocol}: the steps lead to the answer");
    list.extend(steps);
    list.extend([entry("answer", &answer[0]), entry("slot", &slot)]);
    json!({
        "protocol": protocol,
        "preset": params.name(),
        "columns": shape.columns,
        "blocks": shape.blocks,
        "slot_bytes": shape.slot_bytes,
        "word_bits": [table.query_bits(), ring.plaintext_bits(), ring.plaintext_bits()],
        "seeds": { "database": 100, "query": 101, "client": hex::encode([7; 32]) },
        "intermediates": list,
    })
}

/// The answer that ciphertexts make: packed in pairs, rounded.
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
        let switched = Reference.mod_switch(context, &[&polys], 0..widths.len(), widths).unwrap().remove(0);
        for (words, &bits) in switched.into_iter().zip(widths) {
            pack_wide(words.into_iter().map(u128::from), bits, &mut out);
        }
    }
    out
}

/// What the server makes of a query, step by step, and the ciphertexts that it answers with.
fn pack_steps(
    host: &PackHost<Reference>,
    query: &wire::Query,
    keys: &EvaluationKeys,
) -> (Vec<Value>, RlweBatch) {
    let (table, context) = (host.table, host.ring);
    let opened = open_ring_query(context, table.leaves(), &query.packed).unwrap();
    let (n, folds) = (table.params().lwe().n(), table.folds());
    let expanded = Reference.expand(context, &[keys], &[opened], n, folds).unwrap().remove(0);
    let steps = Steps { host, selectors: &expanded.selectors };
    let folded = steps.fold(host.db, &query.first, table.shape().columns);
    let mut list =
        vec![entry("selectors", &words(&expanded.selectors.words)), entry("folded words", &words(&folded))];
    if table.protocol() == Protocol::ExppackD {
        let (steps, last) = steps.exppack_d(&folded, &query.second);
        list.extend(steps);
        return (list, last);
    }
    let packed = steps.pack(host.hint, &folded, table.first_shape());
    list.push(entry("packed ciphertexts", &words(&packed.words)));
    if table.protocol() == Protocol::Hybrid {
        let rgsw: Vec<u32> = expanded.bits.iter().flat_map(|bit| bit.words.to_vec()).collect();
        let (order, bits) = (EntryOrder::EntryMajor, &expanded.bits[..]);
        let chosen = Reference.rgsw_fold(context, &[&packed], 1, order, &[bits]).unwrap().remove(0);
        list.extend([entry("RGSW rows", &words(&rgsw)), entry("chosen ciphertext", &words(&chosen.words))]);
        return (list, chosen);
    }
    if table.protocol() == Protocol::DoublePack {
        let (steps, last) = steps.double_pack(&packed, &query.second);
        list.extend(steps);
        return (list, last);
    }
    (list, packed)
}

struct Steps<'a> {
    host: &'a PackHost<'a, Reference>,
    selectors: &'a RlweBatch,
}

impl Steps<'_> {
    fn fold(&self, db: &TiledDb, vector: &[u8], cols: usize) -> BatchWords {
        let words = unpack_scaled(vector, cols, self.host.table.query_bits()).unwrap();
        Reference.lwe_fold(db, &LweQueries { cols, words }).unwrap().words
    }

    /// The hint of the first `rows` rows of a database of the second fold.
    fn second_hint(&self, db: &TiledDb, rows: usize) -> BatchWords {
        Reference.lwe_hint(db, &self.host.table.second_matrix(), 0..rows).unwrap()
    }

    fn pack(&self, hint: &NttTiledDb, words: &[u32], shape: PackShape) -> RlweBatch {
        let folded = LweBatch { rows: shape.rows(), words: words.to_vec().into() };
        let columns = 0..shape.plaintexts();
        Reference.pack(self.host.ring, hint, &folded, &shape, columns, &[self.selectors]).unwrap().remove(0)
    }

    /// Packs the rows of the second fold with a hint that is lifted at once.
    fn pack_second(&self, hint: &BatchWords, words: &[u32]) -> RlweBatch {
        let (n, shape) = (self.host.table.params().lwe().n(), self.host.table.second_shape());
        let hint = Reference.lift_hint(self.host.ring, hint, n, &shape, 0..shape.plaintexts()).unwrap();
        self.pack(&hint, words, shape)
    }

    /// The server lifts and packs the rows that stem from the answer by themselves; here they are not told apart.
    fn exppack_d(&self, folded: &BatchWords, second: &[u8]) -> ([Value; 3], RlweBatch) {
        let (table, hint_db) = (self.host.table, self.host.second_db.expect("it has one"));
        let answer_db = Reference.reinterpret_lwe(folded, table.shape().slot_bytes, 2).unwrap();
        let fold = |db| self.fold(db, second, table.second_words());
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
        let table = self.host.table;
        let db = Reference.reinterpret_rlwe(self.host.ring, packed, table.first_shape().planes()).unwrap();
        let rows = self.fold(&db, second, table.second_words());
        let hint = self.second_hint(&db, table.second_shape().rows());
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
    let (blocks, slot_bytes) = if protocol == Protocol::Colpack { (3, 300) } else { (5, 100) };
    let shape = TableShape { columns: 300, blocks, slot_bytes };
    let table = ColumnTable::new(protocol, params, shape).unwrap();
    let mut matrix = vec![0; table.rows() * shape.columns];
    Csprng::insecure_from_seed(100).fill_bytes(&mut matrix);
    let setup = Setup::new(Reference, table, matrix);
    let mut a_row = vec![0; params.lwe().n()];
    table.matrix().row_into(shape.columns - 1, &mut a_row);
    let target = Target { columns: vec![(7, 1), (299, 3)], block: blocks - 1 };
    let rng = &mut Csprng::insecure_from_seed(101);
    let (query, pending) = column_packing::query(&table, &setup.scheme, target, rng);
    let answer = setup.answer(std::slice::from_ref(&query)).unwrap();
    let slot = setup.recover(&pending, &answer[0]).unwrap();
    let masks = setup.scheme.masks();
    let mut list = vec![
        entry("database, row-major", &setup.matrix),
        entry("public matrix, last row", &words(&a_row)),
        entry("mask of the rotation key", &words(masks.rotation().words())),
        entry("mask of the conjugation key", &words(masks.conjugation().words())),
        entry("mask of the RGSW row that meets the digit of a", &words(masks.power()[0].words())),
        entry("mask of the RGSW row that meets the digit of b", &words(masks.power()[1].words())),
        entry("hint of the first fold, words", &words(&setup.hint)),
        entry("pack columns, tiled", setup.columns.bytes()),
        entry("digits of the chain", &words(&setup.polys.digits)),
        entry("masks of the plaintexts", &words(&setup.polys.masks)),
        entry("query, first", &query.first),
        entry("query, packed", &query.packed),
    ];
    let (steps, last) = column_steps(&setup, &query);
    assert_eq!(last, answer[0], "{protocol}: the steps lead to the answer");
    list.extend(steps);
    list.extend([entry("answer", &answer[0]), entry("slot", &slot)]);
    json!({
        "protocol": protocol,
        "preset": params.name(),
        "columns": shape.columns,
        "blocks": shape.blocks,
        "slot_bytes": shape.slot_bytes,
        "word_bits": [table.query_bits(), u32::BITS, u32::BITS],
        "seeds": { "database": 100, "query": 101 },
        "intermediates": list,
    })
}

/// What the server makes of a query, step by step, and its answer.
fn column_steps(setup: &Setup<Reference>, query: &wire::Query) -> (Vec<Value>, Vec<u8>) {
    let (table, context) = (&setup.table, setup.scheme.context());
    let (params, masks) = (table.params(), setup.scheme.masks().power());
    let keys = open_column_keys(params, context, table.folds(), &query.packed).unwrap();
    let cols = table.shape().columns;
    let vector = unpack_scaled(&query.first, cols, table.query_bits()).unwrap();
    let folded = Reference.lwe_fold(&setup.db, &LweQueries { cols, words: vector }).unwrap();
    let key_words = key_words(keys.rotation.len(), &[&keys.rotation]);
    let mut list =
        vec![entry("folded words", &words(&folded.words)), entry("key words", &words(&key_words.words))];
    let (ring, chain, conjugation) = (&setup.ring, &setup.chain, [&keys.conjugation]);
    let packed =
        Reference.pack_columns(ring, &setup.columns, chain, folded, &key_words, &conjugation).unwrap();
    list.push(entry("packed words", &words(&packed.words)));
    let (bits, mut answer) = (params.ring().response_bits(), Vec::new());
    if table.folds() {
        let bodies = keys.power.expect("of a query that is folded");
        let powers = PowerKeys { masks, bodies: &[Some(&bodies)] };
        let chosen = Reference.rgsw_power_fold(ring, chain, &packed, powers).unwrap();
        let bodies = bodies.map(|body| context.kept().forward(body));
        let rows = masks.iter().zip(&bodies).flat_map(|(mask, body)| [mask.words(), body.words()]);
        list.push(entry("RGSW rows", &words(&rows.collect::<Vec<_>>().concat())));
        list.push(entry("chosen ciphertexts", &words(&chosen.words)));
        let widths = [bits.a, bits.b].repeat(chosen.count());
        let halves =
            Reference.mod_switch(ring, &[&chosen.words], 0..widths.len(), &widths).unwrap().remove(0);
        for (half, bits) in halves.into_iter().zip(widths) {
            pack_wide(half.into_iter().map(u128::from), bits, &mut answer);
        }
    } else {
        list.push(entry("masks of the plaintexts as they travel", &setup.masks));
        let shape = table.pack_shape();
        for (column, mask) in setup.masks.chunks_exact(setup.masks.len() / shape.plaintexts()).enumerate() {
            let rounded =
                packed.words[shape.plaintext_rows(column)].iter().map(|&b| round_word_up(b, bits.b).into());
            answer.extend_from_slice(mask);
            pack_wide(rounded.chain(repeat(0)).take(shape.degree()), bits.b, &mut answer);
        }
    }
    (list, answer)
}

#[test]
fn known_answers_hold() {
    std::thread::scope(|scope| {
        for protocol in Protocol::ALL {
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
