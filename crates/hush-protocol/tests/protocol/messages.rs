//! The messages are those of `proto/hush/v1`.

use std::{fs, path::Path};

/// Generates the messages anew and compares them with what is committed. Where the two differ, the file is written: it is to be
/// committed with the change that made it another.
#[test]
fn messages_are_those_of_the_wire_format() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = crate_dir.join("proto");
    let descriptors = protox::compile([include.join("hush/v1/query.proto")], [&include]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // `Bytes` fields borrow from the received body, so decoding copies no ciphertext.
    prost_build::Config::new().bytes(["."]).out_dir(folder.path()).compile_fds(descriptors).unwrap();
    let generated = fs::read_to_string(folder.path().join("hush.v1.rs")).unwrap();
    let committed = crate_dir.join("src/wire/generated.rs");
    if fs::read_to_string(&committed).unwrap_or_default() != generated {
        fs::write(&committed, generated).unwrap();
        panic!("{} was another, and is written anew: commit it", committed.display());
    }
}
