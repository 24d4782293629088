//! Snapshots of column packing that agree with themselves, checksums and all, and hold files that the table cannot have: errors
//! when they are opened, never a panic and never an engine.

mod column_built;

use std::path::Path;

use column_built::{Built, Wanted, file, on_cpu};
use hush_engine::{Backends, OpenError, Silent, open};
use hush_he::params::RingContext;
use hush_ops::OpsError;
use hush_protocol::table::Protocol;
use hush_store::snapshot::{CHAIN_FILE, COLUMNS_FILE, DB_FILE, Header, Snapshot, SnapshotWriter, Verify};

const PROTOCOLS: [Protocol; 2] = [Protocol::Colpack, Protocol::ColpackS];

/// Five entries of two planes.
fn built(cpu: &Backends, protocol: Protocol) -> Built {
    Built::new(cpu, Wanted { protocol, by_key: false, records: 40, bytes: 300, columns: 8 })
}

/// Writes the snapshot of `whole` with another content of the file `name`, and opens it. Its header has the file's length and
/// checksums.
fn opened(cpu: &Backends, whole: &Built, name: &str, content: &[u8]) -> Option<OpenError> {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("table");
    write(&target, whole, name, content);
    let [full, header] =
        [Verify::Full, Verify::Header].map(|verify| open(&target, verify, cpu, &Silent).err());
    assert_eq!(full.is_some(), header.is_some());
    full
}

fn write(target: &Path, whole: &Built, name: &str, content: &[u8]) {
    let writer = SnapshotWriter::create(target, false).unwrap();
    let header = Snapshot::open(&whole.path(), Verify::Full).unwrap().header().clone();
    let files = header.files.iter().map(|entry| {
        let content = if entry.name == name { content.to_vec() } else { file(&whole.path(), &entry.name) };
        let mut out = writer.create_mapped(&entry.name, content.len()).unwrap();
        out.bytes().copy_from_slice(&content);
        out.finish().unwrap()
    });
    let files: Vec<_> = files.collect();
    assert_eq!(files.len(), 3);
    writer.commit(&Header { files, ..header }).unwrap();
}

fn is_shape(error: &OpenError) -> bool {
    matches!(error, OpenError::Ops(OpsError::Shape { .. }))
}

#[test]
fn files_of_another_length_are_errors() {
    let cpu = on_cpu(2);
    for protocol in PROTOCOLS {
        let whole = built(&cpu, protocol);
        for name in [DB_FILE, COLUMNS_FILE, CHAIN_FILE] {
            let content = file(&whole.path(), name);
            assert!(opened(&cpu, &whole, name, &content).is_none());
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

/// Digits and masks are residues; whatever is below its prime is one.
#[test]
fn words_that_are_no_residues_are_errors() {
    let cpu = on_cpu(2);
    for protocol in PROTOCOLS {
        let whole = built(&cpu, protocol);
        let table = whole.table();
        let context = RingContext::new(*table.params().ring());
        let (degree, primes) = (context.kept().degree(), context.kept().moduli());
        let (content, half) = (file(&whole.path(), CHAIN_FILE), table.chain_words() / 2);
        // The first and the last word of the digits and of the masks, and those about the end of a limb.
        for at in [0, degree, half - 1, half, half + degree - 1, 2 * half - 1] {
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
    for protocol in PROTOCOLS {
        let whole = built(&cpu, protocol);
        let length = file(&whole.path(), COLUMNS_FILE).len();
        for byte in [0, 0x7f, 0x80, 0xff] {
            assert!(opened(&cpu, &whole, COLUMNS_FILE, &vec![byte; length]).is_none());
        }
    }
}

#[test]
fn a_header_that_lists_no_pack_columns_is_an_error() {
    let cpu = on_cpu(1);
    for protocol in PROTOCOLS {
        let whole = built(&cpu, protocol);
        for name in [DB_FILE, COLUMNS_FILE, CHAIN_FILE] {
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join("table");
            let writer = SnapshotWriter::create(&target, false).unwrap();
            let mut header = Snapshot::open(&whole.path(), Verify::Full).unwrap().header().clone();
            header.files.retain(|entry| entry.name != name);
            for entry in &header.files {
                let content = file(&whole.path(), &entry.name);
                let mut out = writer.create_mapped(&entry.name, content.len()).unwrap();
                out.bytes().copy_from_slice(&content);
                out.finish().unwrap();
            }
            writer.commit(&header).unwrap();
            let refused = open(&target, Verify::Full, &cpu, &Silent).err().expect("a file is missing");
            assert!(matches!(refused, OpenError::Snapshot(_)) && refused.to_string().contains(name));
        }
    }
}
