//! A table in parts: however it is cut, a batch is answered byte for byte as by the whole.

use std::{any::type_name, ops::Range, sync::Arc};

use hush_cpu::Cpu;
use hush_he::params::{
    DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_PRIVKS_N256, INSECURE_RING_N256,
    INSECURE_RING_PLAIN, INSECURE_TFHE_N256, ParameterSet,
};
use hush_ops::{
    contract::Steps,
    reference::Reference,
    tiling::{GROUP_ROWS, TILE_COLS},
};
use hush_protocol::{Protocol, any_page::TableParams, facts::DbForm, table::TableShape, wire};

use crate::support::{Setup, all_columns, filled, one, shape, table};

/// Units in proportion to weights.
fn cut(units: usize, weights: &[usize]) -> Vec<Range<usize>> {
    let all: usize = weights.iter().sum();
    let ends = weights.iter().scan(0, |sum, weight| {
        *sum += weight;
        Some(units * *sum / all)
    });
    let mut start = 0;
    ends.map(|end| std::mem::replace(&mut start, end)..end).collect()
}

/// Returns cuts into one, two, three and five parts; single units first, last and between.
fn cuts(units: usize) -> Vec<Vec<Range<usize>>> {
    let last = units - 1;
    let weighted = [&[1][..], &[1, 3], &[1, 2, 1], &[2, 2, 1, 2, 1]];
    let mut cuts: Vec<_> = weighted.iter().map(|weights| cut(units, weights)).collect();
    cuts.extend([vec![0..1, 1..last, last..units], vec![0..1, 1..2, 2..3, 3..4, 4..units]]);
    assert!(cuts.iter().flatten().all(|part| !part.is_empty()));
    assert!(cuts.iter().all(|parts| parts.iter().cloned().flatten().eq(0..units)));
    cuts
}

/// Checks every cut of a table on both backends, against the whole table on the reference.
fn check(protocol: Protocol, set: &str, (columns, blocks, slot_bytes): (usize, usize, usize)) -> usize {
    check_table(table(protocol, set, shape(columns, blocks, slot_bytes)))
}

fn check_table(table: TableParams) -> usize {
    let shape = table.facts().shape;
    let TableShape { columns, blocks, .. } = shape;
    let setup = Setup::new(Reference, table, filled(shape, None));
    let targets = [one(columns - 1, blocks - 1), one(0, 0), all_columns(shape, blocks / 2)];
    let (queries, pending) = setup.queries(&targets);
    let whole = setup.answer(&queries).unwrap();
    setup.check_answers(&targets, &pending, &whole);
    check_on(&setup, Reference, &queries, &whole);
    check_on(&setup, Cpu::new(2).unwrap(), &queries, &whole);
    setup.table.facts().units
}

fn check_on<B: Steps + 'static>(setup: &Setup, backend: B, queries: &[wire::Query], whole: &[Vec<u8>]) {
    let backend = Arc::new(backend);
    for parts in cuts(setup.table.facts().units) {
        let answers = setup.serve(&backend, &parts).answer(queries).unwrap();
        // Not by assert_eq!, which would print the answers.
        assert!(answers == whole, "{:?} on {}, in {parts:?}", setup.table, type_name::<B>());
    }
}

/// Eight tiles of columns, the last not full.
#[test]
fn parts_of_frodo_are_columns() {
    assert_eq!(check(Protocol::Frodo, DEFAULT_LWE.name(), (7 * TILE_COLS + 9, 1, 5)), 8);
}

/// Three groups of rows, which no cut between blocks meets.
#[test]
fn parts_of_simple_are_blocks() {
    assert_eq!((13 * 100usize).div_ceil(GROUP_ROWS), 3);
    assert_eq!(check(Protocol::Simple, DEFAULT_LWE.name(), (70, 13, 100)), 13);
}

#[test]
fn parts_of_double_are_blocks() {
    assert_eq!(check(Protocol::Double, DEFAULT_LWE.name(), (9, 611, 1)), 611);
}

/// Entries of lanes and of planes, odd numbers of them; the last of 13 blocks in lanes is not full.
const ENTRIES: [(usize, usize, usize, usize); 3] = [(30, 13, 125, 7), (20, 11, 256, 11), (10, 9, 520, 9)];

#[test]
fn parts_of_packed_tables_are_entries() {
    for protocol in [Protocol::ExppackS, Protocol::DoublePack, Protocol::Hybrid] {
        for (columns, blocks, slot_bytes, units) in ENTRIES {
            assert_eq!(check(protocol, INSECURE_PACK_N256.name(), (columns, blocks, slot_bytes)), units);
        }
    }
}

#[test]
fn parts_of_exppack_d_are_blocks() {
    assert_eq!(check(Protocol::ExppackD, INSECURE_PACK_N256.name(), (12, 211, 3)), 211);
}

#[test]
fn parts_with_column_packing_are_entries() {
    for protocol in [Protocol::ColpackS, Protocol::Colpack] {
        for (columns, blocks, slot_bytes, units) in ENTRIES {
            assert_eq!(check(protocol, INSECURE_COLPACK_N256.name(), (columns, blocks, slot_bytes)), units);
        }
    }
}

/// PPIR's map server and database servers: lanes that are rotated behind the last round, planes; in both forms.
#[test]
fn parts_of_tfhe_are_entries() {
    for form in [DbForm::Evaluation, DbForm::Symbols] {
        for (columns, blocks, slot_bytes, units) in [(5, 41, 20, 11), (4, 9, 100, 9), (3, 7, 200, 7)] {
            let shape = shape(columns, blocks, slot_bytes);
            for (protocol, set) in [
                (Protocol::Tfhe, INSECURE_TFHE_N256.name()),
                (Protocol::TfhePrivks, INSECURE_PRIVKS_N256.name()),
            ] {
                // With symbols of two bits a slot takes twice as many of them.
                let slot_bytes = if protocol == Protocol::Tfhe { slot_bytes } else { slot_bytes / 2 };
                let shape = TableShape { slot_bytes, ..shape };
                assert_eq!(check_table(table(protocol, set, shape).in_form(form).unwrap()), units);
            }
        }
    }
}

/// Lanes, planes, numbers of entries that are and are no powers of two.
#[test]
fn parts_of_onion_are_entries() {
    for (set, shape, units) in [
        (INSECURE_RING_N256.name(), (5, 13, 300), 7),
        (INSECURE_RING_N256.name(), (4, 5, 1500), 5),
        (INSECURE_RING_N256.name(), (3, 16, 704), 16),
        (INSECURE_RING_PLAIN.name(), (3, 37, 177), 37),
    ] {
        assert_eq!(check(Protocol::Onion, set, shape), units);
    }
}
