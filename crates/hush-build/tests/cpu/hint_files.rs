//! The files that are made of a hint, tile by tile or plaintext by plaintext, are those of the whole hint at once.

use std::sync::Arc;

use hush_engine::Backends;
use hush_ops::reference::Reference;
use hush_protocol::facts::DB_FILE;

use crate::{
    made::{self, File, bytes},
    shapes::{SHAPES, at_level, levels},
    tables::{Folder, Told, Wanted, on_cpu},
};

/// Builds a table, of which every stage reports all its units.
fn built(backends: &Backends, wanted: Wanted) -> Folder {
    let (folder, told) = (Folder::new(wanted), Told::default());
    folder.build("table", backends, &told).unwrap();
    for (stage, total, done) in told.stages.into_inner().unwrap() {
        assert_eq!(total, done, "{wanted:?}: {stage}");
    }
    folder
}

fn assert_has(folder: &Folder, files: &[File], name: &str) {
    assert!(!files.is_empty());
    for (file, content) in files {
        assert!(folder.file(file) == bytes(content), "{:?}, {name}: {file}", folder.wanted);
    }
}

#[test]
fn files_are_those_of_the_whole_hint() {
    for shape in SHAPES {
        let first = built(&on_cpu(3), shape.wanted());
        let descriptor = first.descriptor();
        let plan = descriptor.params().unwrap().hint().unwrap();
        let db = Arc::new(first.file(DB_FILE));
        let expected = made::of_hint(&Reference, &plan, descriptor.public_seed(), db);
        assert_has(&first, &expected, "3 threads");
        for (level, threads) in levels().into_iter().zip([1, 2, 5]) {
            let other = built(&at_level(level, threads), shape.wanted());
            assert_has(&other, &expected, &format!("{level}, {threads} threads"));
        }
    }
}
