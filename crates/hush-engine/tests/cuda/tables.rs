//! What is built and answered is that of the CPU.

use std::{fs, path::Path};

use hush_engine::{Backend, BackendChoice, Silent, build::BuildError, open};
use hush_protocol::table::Protocol;
use hush_store::snapshot::Verify;

use crate::place::{MIB, Place, TABLES, Told, on_cpu, on_gpu};

fn files(target: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(target).unwrap().map(|entry| entry.unwrap());
    let content =
        |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    let mut files: Vec<_> = entries.map(content).collect();
    files.sort();
    files
}

#[test]
fn tables_are_the_same_and_answer_alike() {
    for (protocol, bytes) in TABLES {
        let place = Place::new(protocol, bytes);
        let gpu = on_gpu(BackendChoice::Cuda, 1 << 30);
        let target = place.build("cpu", &on_cpu(), &Silent).unwrap();
        // The whitening of a table over rings is drawn.
        if protocol != Protocol::Onion {
            let built = Told::default();
            let other = place.build("gpu", &gpu, &built).unwrap();
            assert!(files(&target) == files(&other), "{protocol}: the files");
            assert!(built.notes.into_inner().unwrap().is_empty(), "{protocol}");
        }
        let told = Told::default();
        let on_gpu = open(&target, Verify::Full, &gpu, &told).unwrap();
        let on_cpu = open(&target, Verify::Full, &on_cpu(), &Silent).unwrap();
        assert_eq!((on_gpu.backend(), on_cpu.backend()), (Backend::Cuda, Backend::Cpu));
        check_told(protocol, told, on_gpu.max_batch());
        if let (Some(one), Some(other)) = (on_gpu.keys(), on_cpu.keys()) {
            assert_eq!((&one.preset, one.bytes), (&other.preset, other.bytes));
            assert_ne!(one, other, "keys that one backend opened are of no use to another");
        }
        for batch in [1, 5] {
            place.ask(&target, [&*on_gpu, &*on_cpu], batch);
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
    let place = Place::new(Protocol::Hybrid, 300);
    let told = Told::default();
    let expected = place.build("cpu", &on_cpu(), &Silent).unwrap();
    let target = place.build("auto", &on_gpu(BackendChoice::Auto, MIB), &told).unwrap();
    assert!(files(&expected) == files(&target));
    let notes = told.notes.into_inner().unwrap();
    assert!(notes.len() == 1 && notes[0].contains("working memory"), "{notes:?}");
    let refused = place.build("cuda", &on_gpu(BackendChoice::Cuda, MIB), &Silent).unwrap_err();
    assert!(matches!(refused, BuildError::Memory(_)), "{refused}");
    assert!(!place.dir.path().join("cuda").exists());
}
