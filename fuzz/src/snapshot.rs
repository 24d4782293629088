//! Built tables, and what a killed build leaves.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::Path,
    sync::{Arc, LazyLock},
};

use hush_cpu::Cpu;
use hush_engine::{Backends, Silent};
use hush_store::snapshot::{
    COLUMNS_FILE, DB_FILE, FileEntry, HEADER_FILE, Header, Identity, Snapshot, SnapshotWriter, State, Verify,
};
use serde_json::value::RawValue;

use crate::{
    allocation::{FIXED, bounded},
    input::{Input, fitted},
    on_one_thread, place,
};

/// Longest database that is made to fit a header.
const LONGEST_FILE: u64 = 1 << 16;

/// A table's folder: its header as it is, in an envelope whose checksum is right, or with all checksums and lengths right.
pub fn snapshot(bytes: &[u8]) {
    static CPU: LazyLock<Backends> =
        LazyLock::new(|| Backends::cpu_only(Arc::new(Cpu::new(1).expect("a thread"))));
    on_one_thread();
    let mut input = Input::new(bytes);
    let (kind, text, content) = (input.byte(), input.piece(), input.rest());
    let folder = place::shared().join("table");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("room for the table");
    let body = match kind % 3 {
        0 => None,
        1 => str::from_utf8(text).ok().map(str::to_owned),
        _ => agreeing(&folder, text, content),
    };
    let header = body.and_then(|body| enveloped(&body)).unwrap_or_else(|| text.to_vec());
    fs::write(folder.join(HEADER_FILE), &header).expect("room for the header");

    let opened = bounded(FIXED + 32 * header.len(), || Snapshot::open(&folder, Verify::Full));
    let Ok(snapshot) = opened else { return };
    assert_eq!(kind % 3, 2, "nobody guesses the checksums of files");
    let descriptor = &snapshot.header().descriptor;
    if descriptor.preset.starts_with("INSECURE") {
        let _ = hush_engine::open(&folder, Verify::Header, &CPU, &Silent);
    }
}

/// Returns the text of a header that agrees with itself, and files as it says, of this content.
fn agreeing(folder: &Path, text: &[u8], content: &[u8]) -> Option<String> {
    let mut header: Header = serde_json::from_slice(text).ok()?;
    for entry in &mut header.files {
        if entry.bytes > LONGEST_FILE {
            continue;
        }
        let content = fitted(content, entry.bytes as usize);
        // Another one of the same name has another length: that is an error to be found.
        let _ = fs::write(folder.join(&entry.name), &content);
        *entry = file_entry(&entry.name, &content);
    }
    header.descriptor.seal();
    serde_json::to_string(&header).ok()
}

/// Returns the entry of a file that is shorter than what a checksum covers.
fn file_entry(name: &str, content: &[u8]) -> FileEntry {
    let chunks = if content.is_empty() { Vec::new() } else { blake3::hash(content).as_bytes().to_vec() };
    let chunk_bytes = hush_store::snapshot::CHUNK_BYTES as u64;
    let name = name.parse().expect("it is one already");
    FileEntry { name, bytes: content.len() as u64, chunk_bytes, chunks }
}

/// Returns a body in its envelope, if it is JSON.
fn enveloped(body: &str) -> Option<Vec<u8>> {
    let body: &RawValue = serde_json::from_str(body).ok()?;
    let blake3 = blake3::hash(body.get().as_bytes()).to_hex();
    Some(format!(r#"{{"blake3":"{blake3}","body":{body}}}"#).into_bytes())
}

/// Reads the files that a killed build leaves: a state, a database, a journal.
pub fn build_state(bytes: &[u8]) {
    on_one_thread();
    const UNITS: usize = 8;
    const COLUMNS_BYTES: usize = 64;
    let mut input = Input::new(bytes);
    let (kind, text, database, journal) = (input.byte(), input.piece(), input.piece(), input.rest());
    // No table is empty.
    let database = [database, b"d"].concat();
    let target = place::shared().join("built");
    let partial = place::shared().join(".built.hush-partial");
    let _ = fs::remove_dir_all(&partial);
    fs::DirBuilder::new().mode(0o700).create(&partial).expect("room for the build");
    let write = |name: &str, content: &[u8]| fs::write(partial.join(name), content).expect("room");
    let mut identity = Identity { program: "a".into(), options: "b".into(), records: [1; 32] };
    let mut body = str::from_utf8(text).ok().map(str::to_owned);
    let mut is_whole = false;
    if let (true, Ok(mut state)) = (kind & 1 == 1, serde_json::from_slice::<State>(text)) {
        identity = state.identity.clone();
        state.files = vec![file_entry(DB_FILE, &database)];
        body = serde_json::to_string(&state).ok();
        is_whole = true;
    }
    write("build.json", &body.and_then(|body| enveloped(&body)).unwrap_or_else(|| text.to_vec()));
    write(DB_FILE, &database);
    write("build.journal", journal);
    write(COLUMNS_FILE, &fitted(b"", COLUMNS_BYTES));

    bounded(FIXED + 32 * bytes.len(), || {
        let writer = SnapshotWriter::create(&target, false).expect("nobody else builds here");
        let state = writer.take_over(&identity, |bytes| assert!(!is_whole || bytes == database.len() as u64));
        let state = state.expect("files that can be read");
        assert!(!is_whole || state.is_some(), "a state that agrees with its database is taken over");
        assert!(state.is_none_or(|state| state.identity == identity));
        let files = [(DB_FILE, database.len()), (COLUMNS_FILE, COLUMNS_BYTES)];
        let journal =
            writer.segment(0).open_journal(&files, UNITS, [9; 32]).expect("a journal that can be read");
        for (name, bytes) in files {
            let mut file = writer.open_mapped(name, bytes).expect("a file that can be written");
            assert_eq!(file.bytes().len(), bytes);
        }
        assert!(journal.recorded() <= UNITS);
        let intact = journal.intact(|_, take| take(&[0; 8])).expect("nobody cancels");
        assert!(intact.is_empty(), "nobody guesses checksums");
        journal.record(3, &[0; 8]).expect("room for an entry");
        drop(journal);
        let journal =
            writer.segment(0).open_journal(&files, UNITS, [9; 32]).expect("a journal that can be read");
        assert_eq!(journal.intact(|_, take| take(&[0; 8])).expect("nobody cancels"), [3]);
    });
}
