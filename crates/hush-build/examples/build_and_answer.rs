//! Builds a table of a file and answers a look-up, in one process and without a server:
//! `cargo run -p hush-build --example build_and_answer -- people.csv email alice@example.org`

#![allow(clippy::print_stdout)]

use std::{env, error::Error, ffi::OsString, path::Path, sync::Arc};

use hush_build::{Job, JobRequest, builder::BuildOptions};
use hush_client::{Acceptance, Table, Wanted};
use hush_cpu::Cpu;
use hush_engine::{Backends, Cancel, Silent, open};
use hush_ingest::{IngestOptions, Input, OnDuplicate};
use hush_protocol::{Protocol, descriptor::Descriptor};
use hush_store::snapshot::Verify;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    let [input, column, key] = &args[..] else {
        return Err("usage: build_and_answer FILE COLUMN KEY".into());
    };
    let column = column.to_str().ok_or("the name of a column is text")?.to_owned();
    let folder = tempfile::tempdir()?;
    let table = folder.path().join("table");
    let backends = Backends::cpu_only(Arc::new(Cpu::new(2)?));
    build(input, column, &table, &backends)?;

    // The server's side: what answers batches of queries.
    let engine = open(&table, Verify::Full, &backends, &Silent)?;
    // A client's side: what a server tells everybody is all that it needs. colpack has no hint, and no keys that stay.
    let descriptor = Descriptor::from_json(&engine.served().descriptor_json)?;
    let client = Table::new(descriptor, [], &Acceptance::default())?;

    let (query, pending) = client.query(&Wanted::Key(key.as_encoded_bytes().to_vec()))?;
    let answers = engine.answer(&[query], &[None])?;
    match client.decode(&pending, &answers[0])? {
        Some(value) => println!("{}", String::from_utf8_lossy(&value)),
        None => println!("not found"),
    }
    Ok(())
}

fn build(input: &OsString, column: String, out: &Path, backends: &Backends) -> Result<(), Box<dyn Error>> {
    let request = JobRequest {
        input: Input::from(input.as_os_str()),
        ingest: IngestOptions { key: vec![column], ..IngestOptions::default() },
        on_duplicate: OnDuplicate::Error,
        sorted: None,
        out: out.to_owned(),
        force: false,
        options: BuildOptions { protocol: Some(Protocol::Colpack), ..BuildOptions::default() },
    };
    Job::open(request, &Cancel::new())?.run(backends, &Silent)?;
    Ok(())
}
