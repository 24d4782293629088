//! Compiles the wire format (`proto/hush/v1`) into `OUT_DIR`, without a `protoc` binary.

use std::{error::Error, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let file = include.join("hush/v1/query.proto");
    println!("cargo:rerun-if-changed={}", file.display());
    let descriptors = protox::compile([&file], [&include])?;
    // `Bytes` fields borrow from the received body, so decoding copies no ciphertext.
    prost_build::Config::new().bytes(["."]).compile_fds(descriptors)?;
    Ok(())
}
