//! `hush-bench answer`: whole answers of a key table, in process and over loopback HTTP.

use std::{error::Error, sync::Arc};

use hush_client::{Acceptance, Table as ClientTable, Wanted};
use hush_cpu::probe;
use hush_engine::Silent;
use hush_protocol::facts::Content;
use hush_store::snapshot::{DB_FILE, HINT_FILE, Header, MappedFile, Snapshot, Verify};

use super::{
    Args, backends,
    build::VALUE_BYTES,
    http,
    lookups::Lookups,
    report::Report,
    row::Row,
    tables::{self, Records},
    threads,
};

pub(super) fn run(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    for protocol in args.protocols() {
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path().join("table");
        let all = backends(args.backend, threads(None))?;
        let records = Records { size: args.size, length: VALUE_BYTES, keyed: true };
        let (header, _) = records.build(&tables::options(protocol), &dir, &all)?;
        let hint = match header.descriptor.hint {
            Some(_) => Some(Arc::new(MappedFile::open(&dir.join(HINT_FILE))?) as Arc<_>),
            None => None,
        };
        let client = ClientTable::new(header.descriptor.clone(), hint, &Acceptance::default())?;
        let lookups =
            |batch| Lookups::new(&client, VALUE_BYTES, batch, |index| Wanted::Key(tables::key(index)));
        let (scanned, row) = (scanned_bytes(&header)?, Row::named("answer").of(protocol));
        for threads in args.thread_counts() {
            let engine = hush_engine::open(&dir, Verify::Header, &backends(args.backend, threads)?, &Silent)?;
            let db = Snapshot::open(&dir, Verify::Header)?.take(DB_FILE)?;
            let stream = probe::stream_read_gbps(db.as_ref(), threads);
            report.note(&format!("{protocol}, {threads} threads: stream {stream:.1} GB/s"));
            for &batch in args.batches() {
                let keys = vec![None; batch];
                let seconds = lookups(batch)?.timed(|queries| engine.answer(queries, &keys))?;
                report.push(&row.clone().batch(batch).pass(threads, scanned, seconds).stream(stream));
            }
        }
        let engine = hush_engine::open(&dir, Verify::Header, &all, &Silent)?;
        for (name, seconds) in http::measure(engine, &lookups(64)?.queries)? {
            report.push(&row.renamed(name).pass(threads(None), scanned, seconds));
        }
    }
    Ok(())
}

/// Bytes that every answer reads: all that is scanned.
fn scanned_bytes(header: &Header) -> Result<usize, Box<dyn Error>> {
    let contents = header.descriptor.params()?.files().into_iter().map(|spec| spec.content);
    Ok(contents.filter(Content::is_scanned).map(|content| content.bytes() as usize).sum())
}
