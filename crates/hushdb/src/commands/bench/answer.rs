//! `hushdb bench answer`: whole answers of a key table, in process and over loopback HTTP.

use std::{error::Error, sync::Arc};

use hush_client::{PendingLookup, Table as ClientTable, Wanted};
use hush_cpu::{Cpu, probe};
use hush_engine::{Engine, EngineError, Silent};
use hush_protocol::{keyword::FilterKind, wire};
use hush_store::snapshot::{DB_FILE, HINT_FILE, MappedFile, Snapshot, Verify};

use super::{
    BenchArgs, build, http, median_seconds,
    row::{Row, Table},
};
use crate::commands::threads;

pub(super) fn run(args: &BenchArgs, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for protocol in args.protocols() {
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path().join("table");
        let cpu = Cpu::new(threads(None))?;
        let header = build::key_table(args.size, protocol, FilterKind::Band256, &dir, &cpu, &Silent)?;
        let hint = Arc::new(MappedFile::open(&dir.join(HINT_FILE))?);
        let client = ClientTable::new(header.descriptor.clone(), Some(hint), false)?;
        let encoded = client.params().encoded_bytes() as u64;
        for threads in args.thread_counts() {
            let engine = hush_engine::open(&dir, Verify::Header, Arc::new(Cpu::new(threads)?))?;
            let db = Snapshot::open(&dir, Verify::Header)?.take(DB_FILE)?;
            let stream = probe::stream_read_gbps(db.as_ref(), threads);
            table.note(&format!("{protocol}, {threads} threads: stream {stream:.1} GB/s"));
            for &batch in &args.batch {
                let lookups = Lookups::new(&client, batch)?;
                let seconds = median_seconds(5, || {
                    // A failure shows in the check that follows.
                    let _ = lookups.answer(&*engine);
                });
                lookups.check(&client, &lookups.answer(&*engine)?)?;
                let row = Row::new("answer", threads, batch, encoded, seconds);
                table.push(&row.stream(stream).protocol(protocol));
            }
        }
        let engine = hush_engine::open(&dir, Verify::Header, Arc::new(Cpu::new(threads(None))?))?;
        let lookups = Lookups::new(&client, 64)?;
        for row in http::measure(engine, &lookups.queries, encoded)? {
            table.push(&row.protocol(protocol));
        }
    }
    Ok(())
}

/// A batch of look-ups for known keys.
struct Lookups {
    queries: Vec<wire::Query>,
    pending: Vec<(usize, PendingLookup)>,
}

impl Lookups {
    fn new(client: &ClientTable, batch: usize) -> Result<Self, Box<dyn Error>> {
        let records = client.descriptor().records as usize;
        let (mut queries, mut pending) = (Vec::new(), Vec::new());
        for index in 0..batch {
            let index = index * 7919 % records;
            let (query, state) = client.query(&Wanted::Key(build::key(index)))?;
            queries.push(query);
            pending.push((index, state));
        }
        Ok(Self { queries, pending })
    }

    fn answer(&self, engine: &dyn Engine) -> Result<Vec<Vec<u8>>, EngineError> {
        engine.answer(&self.queries, &vec![None; self.queries.len()])
    }

    /// A wrong fast answer is a failure.
    fn check(&self, client: &ClientTable, answers: &[Vec<u8>]) -> Result<(), Box<dyn Error>> {
        for ((index, pending), answer) in self.pending.iter().zip(answers) {
            if client.decode(pending, answer)? != Some(build::value(*index)) {
                return Err("an answer is wrong: nothing of this counts".into());
            }
        }
        Ok(())
    }
}
