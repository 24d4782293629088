//! Tables whose values go on in several segments, all asked with one query.

#![allow(clippy::print_stdout)]

use std::collections::BTreeSet;

use hush_build::builder::BuildError;
use hush_engine::Engine;
use hush_he::params::{DEFAULT_LWE, MAX_LOG2_FAILURE};
use hush_protocol::{Protocol, descriptor::Lookup};

use crate::tables::{Folder, Wanted, on_cpu};

/// Three tiers: short values, some that fill several lanes of a plaintext of the second, and a few of several plaintexts.
const TIERS: &[usize] = &[60, 200, 700];

/// Returns a table of these tiers by `protocol`; so many records that the base has several entries where there are any.
fn wanted(protocol: Protocol, by_key: bool) -> Wanted {
    let (records, tiers) = match protocol {
        // Its hint grows by some MiB with every byte of a slot.
        Protocol::Double | Protocol::ExppackD => (2000, &[2, 3, 5][..]),
        Protocol::Frodo | Protocol::Simple => (2000, TIERS),
        _ => (11_500, TIERS),
    };
    let columns =
        if [Protocol::Onion, Protocol::Tfhe, Protocol::TfhePrivks].contains(&protocol) { 180 } else { 1200 };
    // Tiers of few columns would not be cheaper under the small set.
    let preset = (protocol == Protocol::Frodo).then_some(DEFAULT_LWE.name());
    Wanted { by_key, tiers, preset, ..Wanted::by_index(protocol, records, 0, columns) }
}

fn all() -> impl Iterator<Item = Wanted> {
    Protocol::ALL.iter().flat_map(|&protocol| [false, true].map(|by_key| wanted(protocol, by_key)))
}

/// Records of every tier, the first, the last, and one that is not there.
fn asked(wanted: &Wanted) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..30).chain([100, 777, 1503, wanted.records - 1]).collect();
    indices.extend(wanted.by_key.then_some(wanted.records));
    indices
}

fn check(folder: &Folder, engine: &dyn Engine) {
    for indices in asked(&folder.wanted).chunks(engine.served().max_batch.min(7)) {
        let asked = folder.asked(engine, indices.to_vec());
        let answers = asked.answers(engine).unwrap();
        assert!(answers.iter().all(|answer| answer.len() == engine.served().answer_bytes));
        asked.check(&answers);
    }
}

#[test]
fn values_of_any_length_are_found_by_every_protocol() {
    let cpu = on_cpu(2);
    let (mut wrapped, mut chosen) = (BTreeSet::new(), BTreeSet::new());
    for wanted in all() {
        let folder = Folder::with_table(&cpu, wanted);
        let descriptor = folder.descriptor();
        assert_eq!(descriptor.segments.len(), 2, "{wanted:?}");
        assert_eq!(matches!(descriptor.lookup, Lookup::Position(_)), !wanted.by_key);
        let params = descriptor.params().unwrap();
        for (segment, beside) in params.segments()[1..].iter().zip(&descriptor.segments) {
            assert_eq!(segment.facts().query.total(), 0, "{wanted:?}: one query asks all");
            let (all, own) = (params.base().facts().shape.columns, beside.columns);
            assert!(all % own == 0, "{wanted:?}: {own} of {all}");
        }
        assert!(params.facts().log2_failure <= MAX_LOG2_FAILURE, "{wanted:?}");
        if descriptor.segments.iter().any(|segment| segment.columns < descriptor.columns) {
            wrapped.insert(wanted.protocol.name());
        }
        if descriptor.segments.iter().any(|segment| segment.entries > 1) {
            chosen.insert(wanted.protocol.name());
        }
        let answers: usize = params.segments().iter().map(|segment| segment.facts().answer_bytes).sum();
        assert_eq!(answers, params.facts().answer_bytes);
        check(&folder, &*folder.open(&cpu).unwrap());
    }
    println!("{wrapped:?} {chosen:?}");
    let all = |names: &[&str], those: &BTreeSet<&str>| names.iter().all(|name| those.contains(name));
    assert!(all(&["simple", "colpack", "hybrid", "frodo"], &wrapped), "{wrapped:?}");
    assert!(all(&["colpack", "hybrid", "onion"], &chosen), "{chosen:?}");
}

#[test]
fn tiers_that_do_not_go_up_to_the_longest_are_refused() {
    let cpu = on_cpu(1);
    let one = Folder::new(Wanted { tiers: TIERS, ..Wanted::by_index(Protocol::Colpack, 300, 0, 64) });
    let refused = |tiers: &'static [usize]| {
        let folder = Folder {
            wanted: Wanted { tiers, ..one.wanted },
            records: one.records.clone(),
            changed: one.changed.clone(),
            dir: tempfile::tempdir().unwrap(),
        };
        folder.build("table", &cpu, &hush_engine::Silent).unwrap_err()
    };
    assert!(matches!(refused(&[60, 699]), BuildError::TiersTooShort { longest: 700 }));
    for tiers in [&[60, 60, 700][..], &[200, 60, 700], &[0, 700]] {
        assert!(matches!(refused(tiers), BuildError::TierOrder { .. }), "{tiers:?}");
    }
}
