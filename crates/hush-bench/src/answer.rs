//! `hush-bench answer`: whole answers of a key table, in process and over loopback HTTP.

use std::{error::Error, sync::Arc};

use hush_client::{Table as ClientTable, Wanted};
use hush_cpu::probe;
use hush_engine::Silent;
use hush_protocol::{keyword::FilterKind, table::TableParams};
use hush_store::snapshot::{DB_FILE, HINT_FILE, MappedFile, Snapshot, Verify};

use super::{
    Args, backends,
    build::{self, VALUE_BYTES},
    http,
    lookups::Lookups,
    median_seconds,
    row::{Row, Table},
    threads,
};

pub(super) fn run(args: &Args, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for protocol in args.protocols() {
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path().join("table");
        let all = backends(args.backend, threads(None))?;
        let header = build::key_table(args.size, protocol, FilterKind::Band256, &dir, &all, &Silent)?;
        let hint = match header.descriptor.hint {
            Some(_) => Some(Arc::new(MappedFile::open(&dir.join(HINT_FILE))?) as Arc<_>),
            None => None,
        };
        let client = ClientTable::new(header.descriptor.clone(), hint, false)?;
        let scanned = scanned_bytes(client.params());
        for threads in args.thread_counts() {
            let engine = hush_engine::open(&dir, Verify::Header, &backends(args.backend, threads)?, &Silent)?;
            let db = Snapshot::open(&dir, Verify::Header)?.take(DB_FILE)?;
            let stream = probe::stream_read_gbps(db.as_ref(), threads);
            table.note(&format!("{protocol}, {threads} threads: stream {stream:.1} GB/s"));
            for &batch in args.batches() {
                let lookups = key_lookups(&client, batch)?;
                let keys = vec![None; batch];
                let seconds = median_seconds(5, || {
                    // A failure shows in the check that follows.
                    let _ = engine.answer(&lookups.queries, &keys);
                });
                lookups.check(&client, &engine.answer(&lookups.queries, &keys)?, VALUE_BYTES)?;
                let row = Row::new("answer", threads, batch, scanned, seconds);
                table.push(&row.stream(stream).protocol(protocol));
            }
        }
        let engine = hush_engine::open(&dir, Verify::Header, &all, &Silent)?;
        let lookups = key_lookups(&client, 64)?;
        for row in http::measure(engine, &lookups.queries, scanned)? {
            table.push(&row.protocol(protocol));
        }
    }
    Ok(())
}

fn key_lookups(client: &ClientTable, batch: usize) -> Result<Lookups, Box<dyn Error>> {
    Lookups::new(client, batch, |index| Wanted::Key(build::key(index)))
}

/// Bytes that every answer reads.
fn scanned_bytes(params: &TableParams) -> u64 {
    let beside = match params {
        TableParams::Column(table) => table.columns_tiling().bytes(),
        _ => 0,
    };
    (params.encoded_bytes() + beside) as u64
}
