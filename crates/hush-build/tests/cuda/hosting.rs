//! Tests that builds and answers on a GPU are those of the CPU.

use hush_build::builder::BuildError;
use hush_engine::{BackendChoice, Silent, open};
use hush_protocol::Protocol;
use hush_store::snapshot::Verify;

use crate::{
    devices::{MIB, TABLES, built, on_cpu, on_gpu},
    tables::{Folder, Told, Wanted, files},
};

#[test]
fn tables_are_the_same_and_answer_alike() {
    for (protocol, bytes) in TABLES {
        let folder = built((protocol, bytes));
        let gpu = on_gpu(BackendChoice::Cuda, 1 << 30);
        // The whitening of a table over rings is drawn.
        if ![Protocol::Onion, Protocol::Tfhe].contains(&protocol) {
            let told = Told::default();
            let other = folder.build("gpu", &gpu, &told).unwrap();
            assert!(files(&folder.table()) == files(&other), "{protocol}: the files");
            let notes = told.notes.into_inner().unwrap();
            assert!(notes.len() == 1 && notes[0].contains(" records of "), "{protocol}: {notes:?}");
        }
        let told = Told::default();
        let on_gpu = open(&folder.table(), Verify::Full, &gpu, &told).unwrap();
        let on_cpu = open(&folder.table(), Verify::Full, &on_cpu(), &Silent).unwrap();
        assert_eq!(
            (on_gpu.served().placement.to_string(), on_cpu.served().placement.to_string()),
            ("cuda".into(), "cpu".into())
        );
        check_told(protocol, told, on_gpu.served().max_batch);
        if let (Some(one), Some(other)) = (&on_gpu.served().keys, &on_cpu.served().keys) {
            assert_eq!((&one.preset, one.bytes), (&other.preset, other.bytes));
            assert_ne!(one, other, "keys that one backend opened are of no use to another");
        }
        for batch in [1, 5] {
            folder.ask([&*on_gpu, &*on_cpu], batch);
        }
    }
}

/// Values that go on in other segments: the hints of all are computed on the device, and all answer there.
#[test]
fn tables_of_several_tiers_are_the_same_and_answer_alike() {
    for (protocol, columns) in [
        (Protocol::Simple, 500),
        (Protocol::Colpack, 500),
        (Protocol::Hybrid, 250),
        (Protocol::Onion, 150),
        (Protocol::Tfhe, 150),
    ] {
        let tiers = Wanted {
            by_key: true,
            tiers: &[20, 60, 300],
            room: (protocol == Protocol::Colpack).then_some(20),
            ..Wanted::by_index(protocol, 700, 0, columns)
        };
        let (folder, gpu) = (Folder::with_table(&on_cpu(), tiers), on_gpu(BackendChoice::Cuda, 1 << 30));
        let segments = folder.descriptor().segments;
        assert!(segments.len() >= 2 && segments[1].columns <= folder.descriptor().columns);
        // The seed of the key hash is drawn: the other table is another one.
        let mut other = Folder {
            dir: tempfile::tempdir().unwrap(),
            wanted: tiers,
            records: folder.records.clone(),
            changed: folder.changed.clone(),
        };
        other.build("table", &gpu, &Silent).unwrap();
        if tiers.room.is_some() {
            other.apply(&gpu, [(3, None), (7, Some(vec![1; 250]))].into()).unwrap();
        }
        for folder in [&folder, &other] {
            let [on_gpu, on_cpu] = [&gpu, &on_cpu()].map(|backends| folder.open(backends).unwrap());
            assert_eq!(
                (on_gpu.served().placement.to_string(), on_cpu.served().placement.to_string()),
                ("cuda".into(), "cpu".into())
            );
            for batch in [1, 3] {
                folder.ask([&*on_gpu, &*on_cpu], batch);
            }
        }
    }
}

fn check_told(protocol: Protocol, told: Told, batch: usize) {
    let notes = told.notes.into_inner().unwrap();
    assert!(notes[0].starts_with("on emulator, "), "{notes:?}");
    assert!(notes[1].starts_with("  database  "), "{notes:?}");
    let queries = format!("  batches of {batch} queries ");
    assert!(notes.iter().any(|line| line.starts_with(&queries)), "{protocol}: {notes:?}");
    assert!(notes.last().unwrap().starts_with("  in all  "), "{notes:?}");
    let [(stage, total, done)] = &told.stages.into_inner().unwrap()[..] else { panic!("one stage") };
    assert_eq!((stage.as_str(), total), ("upload", done), "{protocol}");
    assert!(*total > 0);
}

#[test]
fn a_build_that_does_not_fit() {
    let folder = built((Protocol::Hybrid, 300));
    let told = Told::default();
    let target = folder.build("auto", &on_gpu(BackendChoice::Auto, MIB), &told).unwrap();
    assert!(files(&folder.table()) == files(&target));
    let notes = told.notes.into_inner().unwrap();
    assert!(notes.len() == 2 && notes[1].contains("working memory"), "{notes:?}");
    let refused = folder.build("cuda", &on_gpu(BackendChoice::Cuda, MIB), &Silent).unwrap_err();
    assert!(matches!(refused, BuildError::Memory(_)), "{refused}");
    assert!(!folder.dir.path().join("cuda").exists());
}
