//! Snapshots that agree with themselves, checksums and all, and hold files that the table cannot have: errors when they are
//! opened, never a panic and never an engine.

use std::path::Path;

use hush_engine::{Backends, OpenError, Silent, open};
use hush_he::params::RingContext;
use hush_ops::{OpsError, path::Content};
use hush_protocol::{
    Protocol,
    facts::{CHAIN_FILE, COLUMNS_FILE, HintProduct},
};
use hush_store::snapshot::{Header, Snapshot, SnapshotWriter, Verify};

use crate::{
    answers::BY_COLUMNS,
    tables::{Folder, Wanted, on_cpu},
};

/// Builds a table: five entries of two planes where answers are packed, and short slots where hints have a whole row for each byte.
fn built(cpu: &Backends, protocol: Protocol) -> Folder {
    let bytes = match protocol {
        Protocol::Frodo | Protocol::Simple | Protocol::Double | Protocol::ExppackD => 33,
        _ => 300,
    };
    Folder::with_table(cpu, Wanted::by_index(protocol, 40, bytes, 8))
}

/// Writes the snapshot of `whole` with another content of the file `name`, and opens it. Its header has the file's length and
/// checksums.
fn opened(cpu: &Backends, whole: &Folder, name: &str, content: &[u8]) -> Option<OpenError> {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    write(&target, whole, name, Some(content));
    let [full, header] =
        [Verify::Full, Verify::Header].map(|verify| open(&target, verify, cpu, &Silent).err());
    assert_eq!(full.is_some(), header.is_some());
    full
}

/// Writes the snapshot of `whole` with another content of the file `name`, or without it.
fn write(target: &Path, whole: &Folder, name: &str, content: Option<&[u8]>) {
    let writer = SnapshotWriter::create(target, false).unwrap();
    let header = Snapshot::open(&whole.table(), Verify::Full).unwrap().header().clone();
    let files = header.files.iter().filter_map(|entry| {
        let content = if entry.name == name { content?.to_vec() } else { whole.file(&entry.name) };
        let mut out = writer.create_mapped(&entry.name, content.len()).unwrap();
        out.bytes().copy_from_slice(&content);
        Some(out.finish().unwrap())
    });
    let files: Vec<_> = files.collect();
    assert_eq!(files.len() + usize::from(content.is_none()), header.files.len());
    writer.commit(&Header { files, ..header }).unwrap();
}

/// Returns the files of a table that a backend reads, of all.
fn names(whole: &Folder) -> (Vec<&'static str>, Vec<&'static str>) {
    let files = whole.descriptor().params().unwrap().files();
    let read = files.iter().filter(|file| !matches!(file.content, Content::Download { .. }));
    (read.map(|file| file.name).collect(), files.iter().map(|file| file.name).collect())
}

fn is_shape(error: &OpenError) -> bool {
    matches!(error, OpenError::Ops(OpsError::Shape { .. }))
}

#[test]
fn files_of_another_length_are_errors() {
    use Protocol::{Colpack, ColpackS, Double, ExppackD, Hybrid, Onion};
    let cpu = on_cpu(2);
    // All files that any protocol has.
    for protocol in [Colpack, ColpackS, Double, ExppackD, Hybrid, Onion] {
        let whole = built(&cpu, protocol);
        for name in names(&whole).0 {
            let content = whole.file(name);
            assert!(opened(&cpu, &whole, name, &content).is_none(), "{protocol}, {name}");
            let length = content.len();
            for wrong in [0, 3, length - 2048, length - 1] {
                let error = opened(&cpu, &whole, name, &content[..wrong]).expect("too short");
                assert!(is_shape(&error), "{protocol}, {name} of {wrong} bytes: {error}");
            }
            for more in [1, 2048] {
                let content = [&content[..], &vec![0; more]].concat();
                let error = opened(&cpu, &whole, name, &content).expect("too long");
                assert!(is_shape(&error), "{protocol}, {name} and {more} bytes: {error}");
            }
        }
    }
}

/// Digits and masks are residues; whatever is below its prime is one. A server of `colpack-s` has no masks.
#[test]
fn words_that_are_no_residues_are_errors() {
    let cpu = on_cpu(2);
    for protocol in BY_COLUMNS {
        let whole = built(&cpu, protocol);
        let hint = whole.descriptor().params().unwrap().hint().unwrap();
        let HintProduct::Chained { params, shape, .. } = hint.product else { panic!("{hint:?}") };
        let context = RingContext::new(*params.ring());
        let (degree, primes) = (context.kept().degree(), context.kept().moduli());
        let (content, half) = (whole.file(CHAIN_FILE), shape.plaintexts() * primes.len() * degree);
        let polys = if protocol == Protocol::ColpackS { 1 } else { 2 };
        assert_eq!(content.len(), polys * 4 * half);
        // The first and the last word of the digits and of the masks, and those about the end of a limb.
        let words = [0, degree, half - 1, half, half + degree - 1, 2 * half - 1];
        for at in words.into_iter().filter(|&at| at < polys * half) {
            let prime = primes[at / degree % primes.len()].value();
            for (word, accepted) in [(prime - 1, true), (prime, false), (u32::MAX, false)] {
                let mut content = content.clone();
                content[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
                let refused = opened(&cpu, &whole, CHAIN_FILE, &content);
                let as_expected = refused.as_ref().map_or(accepted, |error| !accepted && is_shape(error));
                assert!(as_expected, "{protocol}, word {at} = {word}: {:?}", refused.map(|e| e.to_string()));
            }
        }
    }
}

/// Any bytes are pack columns: those of a stranger give wrong answers, and no more.
#[test]
fn any_bytes_are_pack_columns() {
    let cpu = on_cpu(2);
    for protocol in BY_COLUMNS {
        let whole = built(&cpu, protocol);
        let length = whole.file(COLUMNS_FILE).len();
        for byte in [0, 0x7f, 0x80, 0xff] {
            assert!(opened(&cpu, &whole, COLUMNS_FILE, &vec![byte; length]).is_none());
        }
    }
}

#[test]
fn a_header_that_does_not_list_a_file_is_an_error() {
    let cpu = on_cpu(1);
    for &protocol in Protocol::ALL {
        let whole = built(&cpu, protocol);
        let names = names(&whole).1;
        assert_eq!(names.len(), Snapshot::open(&whole.table(), Verify::Full).unwrap().header().files.len());
        for name in names {
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join("table");
            write(&target, &whole, name, None);
            let refused = open(&target, Verify::Full, &cpu, &Silent).err().expect("a file is missing");
            assert!(matches!(refused, OpenError::Snapshot(_)) && refused.to_string().contains(name));
        }
    }
}
