//! Tests that a built and opened table answers whole batches, and names the query that is malformed.

use hush_engine::{Backends, Engine, EngineError, Silent, open};
use hush_protocol::{Protocol, wire};
use hush_store::snapshot::Verify;

use crate::{
    shapes::{SHAPES, at_level, levels},
    tables::{Folder, Wanted, on_cpu},
};

/// By the keys of a query.
pub(crate) const BY_COLUMNS: [Protocol; 2] = [Protocol::Colpack, Protocol::ColpackS];

/// Checks that a table's facts are those of its descriptor and its parameters.
fn check_served(engine: &dyn Engine, wanted: Wanted) {
    let (served, asked) = (engine.served(), wanted.protocol.name());
    let descriptor = hush_protocol::descriptor::Descriptor::from_json(&served.descriptor_json).unwrap();
    let params = descriptor.params().unwrap();
    let facts = params.facts();
    assert_eq!((&*served.protocol, facts.protocol.name()), (asked, asked));
    let is_hinted = wanted.protocol == Protocol::ColpackS;
    assert_eq!((served.blobs.len(), facts.hint_bytes > 0), (usize::from(is_hinted), is_hinted));
    assert_eq!((descriptor.hint_bytes(), served.keys.is_some()), (facts.hint_bytes, facts.keys.is_some()));
    assert_eq!((served.query, served.answer_bytes), (facts.query, facts.answer_bytes));
    assert_eq!((served.epoch, served.records), (descriptor.epoch, wanted.records as u64));
}

/// Asks an engine for the first record, the last, and some between, in batches, and checks them.
fn check(cpu: &Backends, folder: &Folder) {
    let wanted = folder.wanted;
    let engine = open(&folder.table(), Verify::Full, cpu, &Silent).unwrap();
    let name = format!("{wanted:?}, {}", cpu.cpu().level());
    check_served(&*engine, wanted);
    let most = engine.served().max_batch;
    // Tables as small as these are scanned for as many queries as a scan takes.
    let is_keyless = BY_COLUMNS.contains(&wanted.protocol);
    assert_eq!(
        (most, engine.served().keys.is_none()),
        (if is_keyless { 64 } else { 8 }, is_keyless),
        "{name}"
    );
    let last = wanted.records - 1;
    for batch in [1, 5, most] {
        let indices = (0..batch).map(|query| last * query / (batch - 1).max(1)).collect();
        let asked = folder.asked(&*engine, indices);
        let answers = asked.answers(&*engine).unwrap();
        assert!(answers.iter().all(|answer| answer.len() == engine.served().answer_bytes), "{name}");
        asked.check(&answers);
        let without = engine.answer(&asked.queries, &vec![None; batch]);
        let refused = matches!(without, Err(EngineError::Query { index: 0, .. }));
        assert_eq!(refused, !is_keyless, "{name}: queries without keys");
    }
    if wanted.by_key {
        // A key that the table does not have.
        let asked = folder.asked(&*engine, vec![wanted.records]);
        asked.check(&asked.answers(&*engine).unwrap());
    }
}

#[test]
fn what_is_built_at_one_level_answers_at_all() {
    let levels = levels();
    let keyed = BY_COLUMNS.into_iter().flat_map(|protocol| {
        [(92, 200, 20), (300, 60, 20), (20, 9, 4)].map(|(bytes, records, columns)| Wanted {
            by_key: true,
            ..Wanted::by_index(protocol, records, bytes, columns)
        })
    });
    for (number, wanted) in SHAPES.iter().map(|shape| shape.wanted()).chain(keyed).enumerate() {
        let folder = Folder::with_table(&at_level(levels[number % levels.len()], 3), wanted);
        for &level in &levels {
            check(&at_level(level, 2), &folder);
        }
    }
}

/// The first of the queries that are none, wherever it is, and by its place in the batch. The others are answered without it.
#[test]
fn a_wrong_query_is_named_by_its_place() {
    let cpu = on_cpu(2);
    for protocol in BY_COLUMNS {
        let folder = Folder::with_table(&cpu, Wanted::by_index(protocol, 102, 100, 8));
        let engine = open(&folder.table(), Verify::Full, &cpu, &Silent).unwrap();
        let asked = folder.asked(&*engine, vec![11, 11]);
        let query = &asked.queries[0];
        // Ones in all bits of the last coefficient, which is one of a key: more than the modulus.
        let mut packed = query.packed.to_vec();
        packed.iter_mut().rev().take(16).for_each(|byte| *byte = 0xff);
        let wrong = &wire::Query { packed: packed.into(), ..query.clone() };
        for (first, batch) in [
            (0, vec![wrong]),
            (0, vec![wrong, query, wrong]),
            (2, vec![query, query, wrong, query, wrong]),
            (63, [vec![query; 63], vec![wrong]].concat()),
        ] {
            let batch: Vec<_> = batch.into_iter().cloned().collect();
            let refused = engine.answer(&batch, &vec![None; batch.len()]).unwrap_err();
            assert!(
                matches!(refused, EngineError::Query { index, .. } if index == first),
                "{protocol}: {refused}"
            );
        }
        asked.check(&asked.answers(&*engine).unwrap());
    }
}
