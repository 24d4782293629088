//! Gives every target the inputs of its corpus: among them are those that found a fault once.

use std::{collections::BTreeSet, fs, path::Path};

use hush_fuzz::{ciphertexts, cli, client, descriptor, ingest, server, snapshot, wire};

/// A name, which is that of its program and of its corpus, and the target.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 24] = [
    ("answers", ciphertexts::answers),
    ("arrow", ingest::arrow),
    ("build_state", snapshot::build_state),
    ("client_cache", client::cache),
    ("compressed", ciphertexts::compressed),
    ("csv", ingest::csv),
    ("descriptor", descriptor::descriptor),
    ("evaluation_keys", wire::evaluation_keys),
    ("fields", ciphertexts::fields),
    ("folder", ingest::folder),
    ("jsonl", ingest::jsonl),
    ("keys_file", cli::keys_file),
    ("packed_words", ciphertexts::packed_words),
    ("parquet", ingest::parquet),
    ("problem", client::problem),
    ("queries", ciphertexts::queries),
    ("query_request", wire::query_request),
    ("query_response", wire::query_response),
    ("range", server::range),
    ("server_url", client::server_url),
    ("session", client::session),
    ("snapshot", snapshot::snapshot),
    ("sorted", ciphertexts::sorted),
    ("sqlite", ingest::sqlite),
];

/// Returns the names of what is in a folder of this package, without `ending`.
fn names(folder: &str, ending: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.map(|name| name.trim_end_matches(ending).to_owned()).collect()
}

/// There is one test: targets count what the whole process allocates.
#[test]
fn decoders_keep_their_promises_for_every_input() {
    let all = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("targets/src/bin", ".rs"), all);
    assert_eq!(names("corpus", ""), all);
    for (name, target) in TARGETS {
        let corpus = Path::new("corpus").join(name);
        for input in names(corpus.to_str().unwrap(), "") {
            println!("fuzz/corpus/{name}/{input}"); // told if the target panics
            target(&fs::read(corpus.join(input)).unwrap());
        }
    }
}
