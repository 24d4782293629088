//! A table whose parts are elsewhere answers as the whole one does, byte for byte, and never with less than all of them.

use std::sync::{Arc, atomic::Ordering};

use hush_engine::{Engine, EngineError, parts::Share};
use hush_protocol::{Protocol, descriptor::Descriptor};

use crate::tables::{
    Asked, Folder, Wanted, client_with,
    here::{Here, head},
    on_cpu,
};

fn tables() -> impl Iterator<Item = Wanted> {
    let plain = Protocol::ALL.iter().flat_map(|&protocol| {
        // DoublePIR and what is like it are for short values.
        let (bytes, records, columns) = match protocol {
            Protocol::Double | Protocol::ExppackD => (3, 4000, 70),
            _ => (90, 700, 20),
        };
        let by_index = Wanted::by_index(protocol, records, bytes, columns);
        [by_index, Wanted { by_key: protocol.page().has_columns(), ..by_index }]
    });
    let tiered = [Protocol::Colpack, Protocol::ColpackS, Protocol::Simple, Protocol::Onion, Protocol::Tfhe];
    let tiered = tiered.into_iter().map(|protocol| Wanted {
        by_key: true,
        tiers: &[20, 100, 300],
        room: (protocol != Protocol::Tfhe).then_some(20),
        ..Wanted::by_index(protocol, 500, 300, 20)
    });
    plain.chain(tiered)
}

#[test]
fn parts_answer_as_the_whole_table_does() {
    let cpu = on_cpu(2);
    for wanted in tables() {
        let folder = Folder::with_table(&cpu, wanted);
        let whole = folder.open(&cpu).unwrap();
        for weights in [&[1][..], &[1, 1], &[2, 2, 1, 2, 1], &[1, 0, 30]] {
            let workers = Here::open(&folder, weights, &cpu);
            let head = head(&folder, &workers, &cpu);
            assert_eq!(head.served().placement.to_string(), "parts");
            assert_eq!(head.served().descriptor_json, whole.served().descriptor_json);
            let asked = folder.some(&*whole, 3);
            let (ours, theirs) = (asked.answers(&*head).unwrap(), asked.answers(&*whole).unwrap());
            assert!(ours == theirs, "{wanted:?}, {weights:?}");
            asked.check(&ours);
            replies_are_as_long_as_pages_say(&head, &workers, weights, asked.queries.len());
        }
    }
}

/// Checks that a part sends as much as its page says, and a few bytes that identify it.
fn replies_are_as_long_as_pages_say(head: &Arc<dyn Engine>, workers: &Here, weights: &[u32], queries: usize) {
    let descriptor = Descriptor::from_json(&head.served().descriptor_json).unwrap();
    let table = descriptor.params().unwrap();
    for (index, &replied) in workers.replied.lock().unwrap().iter().enumerate() {
        let share = Share { index, weights: weights.to_vec() };
        let mut said = 0;
        for (segment, units) in table.segments().iter().zip(share.of(&table.scanned())) {
            if !units.is_empty() {
                said += size_of::<u32>() * segment.part(&units).words * queries;
            }
        }
        let most = 32 + table.segments().len() * (32 + 8 * queries);
        assert!((said..said + most).contains(&replied), "{table:?}, {share:?}: {replied} for {said}");
    }
}

/// A batch that names keys goes to the parts a second time, with the keys; once they have them, once.
#[test]
fn keys_go_to_parts_that_do_not_have_them() {
    let cpu = on_cpu(2).for_clients(1);
    let folder = Folder::with_table(&cpu, Wanted::by_index(Protocol::Onion, 700, 90, 20));
    let workers = Here::open(&folder, &[1, 1], &cpu);
    let head = head(&folder, &workers, &cpu);
    let [one, other] = [1, 2].map(|seed| folder.asked_by(client_with(&*head, &[seed; 32]), vec![5, 600]));
    let sent = |ask: &dyn Fn()| {
        let before = workers.batches.load(Ordering::Relaxed);
        ask();
        workers.batches.load(Ordering::Relaxed) - before
    };
    let keys = |asked: &Asked<'_>| asked.keys(&*head).unwrap();
    let (first, second) = (keys(&one), keys(&other));
    let ask = |queries: &[_], keys: &[_]| head.answer(queries, keys).unwrap();
    let alone = || one.check(&ask(&one.queries, &vec![first.clone(); 2]));
    assert_eq!([sent(&alone), sent(&alone)], [2, 1]);
    // Two clients in one batch, of whom a part keeps one.
    let both = || {
        let queries = [&one.queries[..], &other.queries].concat();
        let keys = [vec![first.clone(); 2], vec![second.clone(); 2]].concat();
        let answers = ask(&queries, &keys);
        one.check(&answers[..2]);
        other.check(&answers[2..]);
    };
    assert_eq!([sent(&both), sent(&both)], [2, 2]);
}

#[test]
fn without_all_parts_there_is_no_answer() {
    let cpu = on_cpu(2);
    let folder = Folder::with_table(&cpu, Wanted::by_index(Protocol::Colpack, 700, 90, 20));
    let workers = Here::open(&folder, &[1, 1], &cpu);
    let head = head(&folder, &workers, &cpu);
    let asked = folder.some(&*head, 2);
    workers.gone.store(true, Ordering::Relaxed);
    let refused = asked.answers(&*head).unwrap_err();
    assert_eq!(refused.to_string(), "a part of the table does not answer: part 1: its process is gone");
    workers.gone.store(false, Ordering::Relaxed);
    // Nothing, less, and what is none.
    for spoil in [|_| Vec::new(), |mut reply: Vec<u8>| reply.split_off(reply.len() / 2), |_| vec![0xff; 40]] {
        *workers.spoil.lock().unwrap() = Some(spoil);
        let refused = asked.answers(&*head).unwrap_err();
        assert!(matches!(refused, EngineError::Internal(_)), "{refused}");
    }
    *workers.spoil.lock().unwrap() = None;
    asked.check(&asked.answers(&*head).unwrap());

    // Parts of other shares, and of another table.
    let two = Here::open(&folder, &[1, 3], &cpu);
    let mixed = [workers.parts[0].clone(), two.parts[1].clone()];
    let other = Folder::with_table(&cpu, Wanted::by_index(Protocol::Colpack, 701, 90, 20));
    let others = Here::open(&other, &[1, 1], &cpu);
    let epochs = [workers.parts[0].clone(), others.parts[1].clone()];
    for (parts, words) in [(mixed, "are not the table"), (epochs, "of another epoch")] {
        let head = self::head(&folder, &Here::of(parts.to_vec()), &cpu);
        let refused = asked.answers(&*head).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

/// The position of a malformed query is reported, whoever finds it first.
#[test]
fn a_wrong_query_is_named_by_its_place() {
    let cpu = on_cpu(2);
    let folder = Folder::with_table(&cpu, Wanted::by_index(Protocol::Colpack, 102, 100, 8));
    let workers = Here::open(&folder, &[1, 1, 1], &cpu);
    let head = head(&folder, &workers, &cpu);
    let asked = folder.some(&*head, 3);
    let mut queries = asked.queries.clone();
    let mut packed = queries[1].packed.to_vec();
    packed.iter_mut().rev().take(16).for_each(|byte| *byte = 0xff);
    queries[1].packed = packed.into();
    let refused = head.answer(&queries, &[None, None, None]).unwrap_err();
    assert!(matches!(refused, EngineError::Query { index: 1, .. }), "{refused}");
}
