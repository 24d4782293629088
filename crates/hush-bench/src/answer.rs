//! `hush-bench answer`: whole answers of a table, in process and over loopback HTTP. In process, the files are in turns mapped
//! and in memory of the process.

use std::{error::Error, sync::Arc, time::Instant};

use hush_client::{Acceptance, Table as ClientTable, Wanted};
use hush_engine::{Engine, MemoryChoice, Silent};
use hush_protocol::facts::Content;
use hush_store::snapshot::{DB_FILE, HINT_FILE, Header, MappedFile, Verify};

use super::{
    Args, backends,
    build::VALUE_BYTES,
    http,
    lookups::Lookups,
    probe,
    report::Report,
    row::Row,
    tables::{self, Records},
    threads,
};

/// The rounds over both ways to have files in memory, of which the best time counts. A disturbance of one round hits both.
const ROUNDS: usize = 3;

pub(super) fn run(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    for protocol in args.protocols() {
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path().join("table");
        let all = backends(args.backend, threads(None))?;
        let length = args.record.map_or(VALUE_BYTES, |bytes| bytes.get());
        let records = Records { size: args.size, length, keyed: args.record.is_none() };
        let (header, _) = records.build(&tables::options(protocol), &dir, &all)?;
        let hint = match header.descriptor.hint {
            Some(_) => Some(Arc::new(MappedFile::open(&dir.join(HINT_FILE))?) as Arc<_>),
            None => None,
        };
        let client = ClientTable::new(header.descriptor.clone(), hint, &Acceptance::default())?;
        let lookups = |batch| {
            Lookups::new(&client, length, batch, |index: usize| match records.keyed {
                true => Wanted::Key(tables::key(index)),
                false => Wanted::Index(index as u64),
            })
        };
        let scanned = scanned_bytes(&header)?;
        let row = Row::named("answer").of(protocol);
        for threads in args.thread_counts() {
            let mut open = |memory: MemoryChoice| -> Result<_, Box<dyn Error>> {
                let backends = backends(args.backend, threads)?.with_memory(memory);
                let start = Instant::now();
                let engine = hush_engine::open(&dir, Verify::Full, &backends, &Silent)?;
                let seconds = start.elapsed().as_secs_f64();
                if let Some(level) = backends.cpu().single_level() {
                    report.note(&format!(
                        "{protocol}, {memory}: one query is answered by the kernel for {level}"
                    ));
                }
                report.push(&row.renamed(format!("ready_{memory}")).pass(threads, scanned, seconds));
                Ok(engine)
            };
            let mapped = open(MemoryChoice::Mapped)?;
            let resident = open(MemoryChoice::Resident)?;
            let db = tables::resident(&dir, DB_FILE)?;
            let stream = probe::stream_read_gbps((*db).as_ref(), threads);
            report.note(&format!("{protocol}, {threads} threads: stream {stream:.1} GB/s"));
            for &batch in args.batches() {
                let keys = vec![None; batch];
                let lookups = lookups(batch)?;
                let engines: [(&str, &dyn Engine); 2] = [("answer", &*resident), ("answer_mapped", &*mapped)];
                let mut best = [f64::INFINITY; 2];
                for _ in 0..ROUNDS {
                    for (best, (_, engine)) in best.iter_mut().zip(engines) {
                        *best = best.min(lookups.timed(|queries| engine.answer(queries, &keys))?);
                    }
                }
                for (seconds, (name, _)) in best.into_iter().zip(engines) {
                    report
                        .push(&row.renamed(name).batch(batch).pass(threads, scanned, seconds).stream(stream));
                }
            }
        }
        let engine = hush_engine::open(&dir, Verify::Header, &all, &Silent)?;
        for (name, seconds) in http::measure(engine, &lookups(64)?.queries)? {
            report.push(&row.renamed(name).pass(threads(None), scanned, seconds));
        }
    }
    Ok(())
}

/// Returns the bytes that every answer scans.
fn scanned_bytes(header: &Header) -> Result<usize, Box<dyn Error>> {
    let contents = header.descriptor.params()?.files().into_iter().map(|spec| spec.content);
    Ok(contents.filter(Content::is_scanned).map(|content| content.bytes() as usize).sum())
}
