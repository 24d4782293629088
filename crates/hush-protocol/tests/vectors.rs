//! Known answers with every intermediate, one file a protocol in `vectors/`: they fail when any byte of the format,
//! of the public matrix or of a step moves. `HUSH_WRITE_VECTORS=1 cargo test -p hush-protocol --test vectors`
//! writes them anew: a change there is a break that the changelog must name.

use std::{env, fs, path::PathBuf, sync::Arc};

use hush_he::{
    algorithms::open_ring_query,
    codec::pack_rounded,
    params::{DEFAULT_LWE, ONION_M31, PACK_M31, RingContext},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweOps, LweQueries, PackOps, RingOps},
    ntt_tiling::NttTiledDb,
    reference::Reference,
    tiling::TiledDb,
};
use hush_protocol::{
    Target, double, exppack_d,
    lwe_table::LweTable,
    onion,
    pack_table::PackTable,
    packing::{self, PackHost},
    ring_keys::{RingKeys, open_upload},
    ring_table::RingTable,
    simple,
    table::{Protocol, TableShape},
    whitening::Whitening,
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
        let scaled = hush_he::codec::unpack_scaled(&query.first, shape.columns, bits).unwrap();
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
    let expanded = Reference.expand(&context, &keys, &opened, shape.columns, table.folds()).unwrap();
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

/// A few columns of random bytes under the default set: three entries, two of them with two lanes in `exppack-s`.
fn pack_intermediates(protocol: Protocol) -> Value {
    let shape = match protocol {
        Protocol::ExppackS => TableShape { columns: 8, blocks: 5, slot_bytes: 2000 },
        Protocol::ExppackD => TableShape { columns: 8, blocks: 3, slot_bytes: 2 },
        _ => TableShape { columns: 8, blocks: 3, slot_bytes: 4096 },
    };
    let table = PackTable::new(protocol, PACK_M31, shape).unwrap();
    let (n, ring) = (PACK_M31.lwe().n(), PACK_M31.ring());
    let mut matrix = vec![0; table.rows() * shape.columns];
    Csprng::insecure_from_seed(100).fill_bytes(&mut matrix);
    let context = Arc::new(RingContext::new(*ring));
    let db = TiledDb::from_matrix(table.rows(), shape.columns, &matrix);
    let mut hint = Reference.lwe_hint(&db, &table.first_matrix(), 0..table.rows()).unwrap();
    let mut list =
        vec![entry("database, row-major", &matrix), entry("hint of the first fold, words", &words(&hint))];
    let second_db = (protocol == Protocol::ExppackD).then(|| {
        let second = exppack_d::second_db(&Reference, &table, &hint).unwrap();
        hint = Reference.lwe_hint(&second, &table.second_matrix(), 0..table.second_hint_rows()).unwrap();
        list.push(entry("second database, tiled", second.bytes()));
        list.push(entry("hint of the second fold, words", &words(&hint)));
        hint.resize(table.second_shape().rows() * n, 0);
        second
    });
    let lifted = table.hint_shape();
    let hint = Reference.lift_hint(&context, &hint, n, &lifted, 0..lifted.columns()).unwrap();
    let client = RingKeys::from_seed(ring, &[7; 32]);
    let keys = open_upload(&context, client.upload()).unwrap();
    let target = Target { columns: vec![(3, 1), (7, 2)], block: shape.blocks - 1 };
    let (query, pending) = packing::query(&table, &client, target, &mut Csprng::insecure_from_seed(101));
    // One expansion shows them all: it takes the scalar reference seconds.
    let selectors = (protocol == Protocol::Hybrid).then(|| {
        let opened = open_ring_query(&context, table.leaves(), &query.packed).unwrap();
        Reference.expand(&context, &keys, &opened, n, table.folds()).unwrap().selectors.words.to_vec()
    });
    let (second_db, context) = (second_db.as_ref(), &context);
    let host = PackHost {
        backend: &Reference,
        ring: context,
        context,
        table: &table,
        db: &db,
        second_db,
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
    list.extend(selectors.map(|selectors| entry("selectors", &words(&selectors))));
    list.extend([entry("answer", &answer[0]), entry("slot", &slot)]);
    json!({
        "protocol": protocol,
        "preset": PACK_M31.name(),
        "columns": shape.columns,
        "blocks": shape.blocks,
        "slot_bytes": shape.slot_bytes,
        "word_bits": [table.query_bits(), ring.plaintext_bits(), ring.plaintext_bits()],
        "seeds": { "database": 100, "query": 101, "client": hex::encode([7; 32]) },
        "intermediates": list,
    })
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
