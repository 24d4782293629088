//! Tables of column packing, built and served: the files are those of their hint at once, whatever the threads and levels, and
//! what is opened answers batches and names the query that is none.

mod column_built;

use std::sync::Arc;

use column_built::{Built, Client, Wanted, file, on_cpu};
use hush_cpu::{Cpu, Level};
use hush_engine::{Backends, EngineError, Silent, open};
use hush_he::{
    entities::ColumnMasks,
    params::{ColumnParams, RingContext},
};
use hush_ops::{
    contract::{ColumnOps, LweOps, PACK_BYTES},
    reference::Reference,
    tiling::{GROUP_ROWS, TiledDb},
};
use hush_protocol::{table::Protocol, wire};
use hush_store::snapshot::{CHAIN_FILE, COLUMNS_FILE, DB_FILE, Verify};

const PROTOCOLS: [Protocol; 2] = [Protocol::Colpack, Protocol::ColpackS];

/// Bytes of a slot, blocks and plaintexts for N = 256.
const SHAPES: [(usize, usize, usize); 4] = [
    // One entry of one row.
    (1, 1, 1),
    // Two lanes: entries of 200 rows, the last one of 100.
    (100, 13, 7),
    // Entries of two planes: 256 and 44 rows.
    (300, 5, 10),
    // One plaintext an entry, as long as it can be.
    (256, 5, 5),
];

/// A table by index of `shape` in eight columns, short of two records.
fn by_index(protocol: Protocol, (bytes, blocks, _): (usize, usize, usize)) -> Wanted {
    Wanted { protocol, by_key: false, records: 8 * blocks - 2, bytes, columns: 8 }
}

/// The levels between which kernels differ, of which the machine has the last.
fn levels() -> Vec<Level> {
    let mut levels = vec![Level::Scalar, Level::Avx2, Level::detect()];
    levels.retain(|&level| Cpu::with_level(level, 1).is_ok());
    levels
}

/// So many threads at a level.
fn at_level(level: Level, threads: usize) -> Backends {
    Backends::cpu_only(Arc::new(Cpu::with_level(level, threads).unwrap()))
}

/// Pack columns and chain of a table's database, made of its hint at once by the reference.
fn chained(built: &Built) -> [Vec<u8>; 2] {
    let table = built.table();
    let (params, shape): (&ColumnParams, _) = (table.params(), table.pack_shape());
    let n = params.lwe().n();
    let context = Arc::new(RingContext::new(*params.ring()));
    let masks = ColumnMasks::new(&context);
    let db = TiledDb::new(table.tiling(), Arc::new(file(&built.path(), DB_FILE))).unwrap();
    let hint = Reference.lwe_hint(&db, &table.matrix(), 0..table.rows()).unwrap();
    let (mut columns, mut digits, mut mask_words) = (Vec::new(), Vec::new(), Vec::new());
    for plaintext in 0..shape.plaintexts() {
        let rows = shape.plaintext_rows(plaintext);
        let words = hint[rows.start * n..rows.end * n].to_vec().into();
        let chained = Reference.chain_hint(&context, &masks, &[&words]).unwrap().remove(0);
        columns.extend(chained.columns);
        digits.extend(chained.digit);
        mask_words.extend(chained.mask);
    }
    assert_eq!(columns.len(), table.rows() * PACK_BYTES * n);
    let polys = digits.iter().chain(&mask_words).flat_map(|word| word.to_le_bytes());
    [table.columns_tiling().tile(&columns), polys.collect()]
}

#[test]
fn the_files_are_those_of_the_whole_hint() {
    for shape in SHAPES {
        // As many plaintexts at a time as there are threads: 3 divide none of the numbers of plaintexts.
        let first = Built::new(&on_cpu(3), by_index(Protocol::Colpack, shape));
        let expected = chained(&first);
        for (level, threads) in levels().into_iter().zip([1, 2, 5]) {
            let cpu = at_level(level, threads);
            for protocol in PROTOCOLS {
                let built = Built::new(&cpu, by_index(protocol, shape));
                let files = [COLUMNS_FILE, CHAIN_FILE].map(|name| file(&built.path(), name));
                assert!(files == expected, "{shape:?}, {protocol}, {level}, {threads} threads");
            }
        }
        assert!([COLUMNS_FILE, CHAIN_FILE].map(|name| file(&first.path(), name)) == expected, "{shape:?}");
    }
}

/// What the shapes are there for.
#[test]
fn the_shapes_cover_the_corners() {
    let cpu = on_cpu(1);
    let mut off_boundary = 0;
    for shape in SHAPES {
        let table = Built::new(&cpu, by_index(Protocol::Colpack, shape)).table();
        let pack = table.pack_shape();
        assert_eq!(
            (table.shape().slot_bytes, table.shape().blocks, pack.plaintexts()),
            (shape.0, shape.1, shape.2)
        );
        assert!(!pack.plaintexts().is_multiple_of(3));
        let groups = (0..pack.plaintexts()).step_by(3).map(|first| pack.plaintext_rows(first).start);
        off_boundary += groups.filter(|start| start % GROUP_ROWS != 0).count();
    }
    assert!(off_boundary >= 5);
}

/// Asks an engine for records, in batches, and checks them.
fn check(cpu: &Backends, built: &Built, wanted: Wanted) {
    let engine = open(&built.path(), Verify::Full, cpu, &Silent).unwrap();
    let client = Client::new(&*engine);
    let name = format!("{wanted:?}, {}", cpu.cpu().level());
    assert_eq!(engine.protocol(), wanted.protocol.name());
    assert!(engine.keys().is_none() && engine.blobs().is_empty() && client.descriptor.hint.is_none());
    assert_eq!(client.descriptor.params().unwrap().hint_bytes(), 0, "{name}");
    assert_eq!(engine.query_bytes(), client.table.query_bytes());
    assert_eq!(engine.answer_bytes(), client.table.answer_bytes());
    // Tables as small as these are scanned for as many queries as a scan takes.
    assert_eq!(engine.max_batch(), 64, "{name}");
    let last = wanted.records - 1;
    for batch in [1, 5, 64] {
        let indices: Vec<usize> = (0..batch).map(|query| last * query / (batch - 1).max(1)).collect();
        let (queries, asked): (Vec<_>, Vec<_>) = indices.iter().map(|&index| client.query(index)).unzip();
        let answers = engine.answer(&queries, &vec![None; batch]).unwrap();
        assert_eq!(answers.len(), batch);
        for ((index, asked), answer) in indices.into_iter().zip(asked).zip(answers) {
            assert_eq!(answer.len(), engine.answer_bytes(), "{name}");
            let record = client.recover(&asked, &answer);
            assert_eq!(record.as_ref(), Some(&built.records[index]), "{name}, record {index}");
        }
    }
    if wanted.by_key {
        let (query, asked) = client.query(wanted.records);
        let answer = engine.answer(&[query], &[None]).unwrap().remove(0);
        assert_eq!(client.recover(&asked, &answer), None, "{name}: a key that the table does not have");
    }
}

#[test]
fn what_is_built_at_one_level_answers_at_all() {
    let levels = levels();
    for protocol in PROTOCOLS {
        let keyed = [(92, 200, 20), (300, 60, 20), (20, 9, 4)];
        let keyed =
            keyed.map(|(bytes, records, columns)| Wanted { protocol, by_key: true, records, bytes, columns });
        let all = SHAPES.map(|shape| by_index(protocol, shape));
        for (number, wanted) in all.into_iter().chain(keyed).enumerate() {
            let builder = at_level(levels[number % levels.len()], 3);
            let built = Built::new(&builder, wanted);
            for &level in &levels {
                check(&at_level(level, 2), &built, wanted);
            }
        }
    }
}

/// The first of the queries that are none, wherever it is, and by its place in the batch. The others are answered without it.
#[test]
fn a_wrong_query_is_named_by_its_place() {
    let cpu = on_cpu(2);
    for protocol in PROTOCOLS {
        let built = Built::new(&cpu, by_index(protocol, SHAPES[1]));
        let engine = open(&built.path(), Verify::Full, &cpu, &Silent).unwrap();
        let client = Client::new(&*engine);
        let (query, asked) = client.query(11);
        // Ones in all bits of the last coefficient, which is one of a key: more than the modulus.
        let mut packed = query.packed.to_vec();
        packed.iter_mut().rev().take(16).for_each(|byte| *byte = 0xff);
        let wrong = wire::Query { packed: packed.into(), ..query.clone() };
        for (first, batch) in [
            (0, vec![&wrong]),
            (0, vec![&wrong, &query, &wrong]),
            (2, vec![&query, &query, &wrong, &query, &wrong]),
            (63, [vec![&query; 63], vec![&wrong]].concat()),
        ] {
            let batch: Vec<_> = batch.into_iter().cloned().collect();
            let refused = engine.answer(&batch, &vec![None; batch.len()]).unwrap_err();
            assert!(
                matches!(refused, EngineError::Query { index, .. } if index == first),
                "{protocol}: {refused}"
            );
        }
        let answers = engine.answer(&[query.clone(), query], &[None, None]).unwrap();
        assert!(
            answers.iter().all(|answer| client.recover(&asked, answer).as_ref() == Some(&built.records[11]))
        );
    }
}
