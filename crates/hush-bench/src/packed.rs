//! `hush-bench packed`: a table of 4-KiB records by index whose answers are packed: its build, every step of an answer,
//! and whole answers.
//!
//! `hybrid`, `exppack-s` and `double-pack` have the same database and hint, so that the files of one serve all three.

use std::{error::Error, fs, path::Path, sync::Arc};

use hush_cpu::{Cpu, probe};
use hush_engine::{MAX_PACKED_BATCH, build::BuildOptions};
use hush_he::params::{PACK_M31, RingContext};
use hush_ops::{
    contract::{LweOps, RingOps},
    ntt_tiling::NttTiledDb,
    tiling::TiledDb,
};
use hush_protocol::{
    pack_table::PackTable,
    packing::{self, PackHost},
    ring_keys::open_upload,
    table::{Protocol, TableParams},
};
use hush_store::snapshot::{DB_FILE, Header, LIFTED_FILE};

use super::{
    Args,
    lookups::Lookups,
    row::Row,
    table::Table,
    tables::{self, resident},
    threads,
};
use steps::Steps;

mod steps;

/// Bytes of a record: one plaintext.
const RECORD_BYTES: usize = 4096;
const PROTOCOLS: [Protocol; 3] = [Protocol::Hybrid, Protocol::ExppackS, Protocol::DoublePack];
/// Batches of whole answers.
const BATCHES: [usize; 3] = [1, 8, 32];

/// The table under one of its protocols.
type Served = tables::Served<PackTable>;

pub(super) fn run(args: &Args, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let dir = scratch.path().join("table");
    let columns = args.columns.map(|columns| columns.get());
    let options = BuildOptions { pack: Some(PACK_M31), columns, ..tables::options(Protocol::Hybrid) };
    let header = tables::build_by_index(args.size, RECORD_BYTES, &options, "hybrid", &dir, table)?;
    let [hybrid, exppack_s, double_pack] = PROTOCOLS.map(|protocol| served(&header, protocol));
    let served = [hybrid?, exppack_s?, double_pack?];
    steps::lift(&Cpu::new(threads(None))?, &served[0].table, table)?;
    for served in &served {
        tables::describe(&header, served.client.params(), table);
    }
    table.note(&format!(
        "a server answers {MAX_PACKED_BATCH} queries at once at most: B = 32 shows what more would buy"
    ));
    for threads in args.thread_counts() {
        let cpu = Cpu::new(threads)?;
        let files = Files::open(&dir, &served[0], &cpu)?;
        let steps = Steps::measure(&files, &served, table)?;
        for served in &served {
            files.answers(served, &steps, table)?;
        }
    }
    Ok(())
}

fn served(header: &Header, protocol: Protocol) -> Result<Served, Box<dyn Error>> {
    let TableParams::Pack(built) = header.descriptor.params()? else {
        return Err("the table is not packed".into());
    };
    let table = PackTable::new(protocol, *built.params(), built.shape())?;
    let packed_bits = built.params().ring().plaintext_bits();
    Served::new(header, protocol, [table.query_bits(), packed_bits, packed_bits], table)
}

/// The files on a backend, with the keys of the client.
struct Files<'a> {
    cpu: &'a Cpu,
    context: Arc<RingContext>,
    ring: <Cpu as RingOps>::Ring,
    db: <Cpu as LweOps>::Db,
    hint: <Cpu as RingOps>::NttDb,
    keys: <Cpu as RingOps>::Keys,
}

impl<'a> Files<'a> {
    fn open(dir: &Path, served: &Served, cpu: &'a Cpu) -> Result<Self, Box<dyn Error>> {
        let load = |name| resident(dir, name);
        let table = &served.table;
        let context = Arc::new(RingContext::new(*table.params().ring()));
        let ring = cpu.open_ring(context.clone())?;
        let db = cpu.open_db(TiledDb::new(table.tiling(), load(DB_FILE)?)?)?;
        let hint = NttTiledDb::new(table.hint_tiling(), load(LIFTED_FILE)?)?;
        let hint = cpu.open_ntt_db(&ring, hint)?;
        let (_, body) = served.client.key_upload().ok_or("packed answers need keys")?;
        let keys = cpu.open_evaluation_keys(&ring, open_upload(&context, &body)?)?;
        Ok(Self { cpu, context, ring, db, hint, keys })
    }

    /// Whole answers, as multiples of the time to read the database and of the sum of their steps.
    fn answers(&self, served: &Served, steps: &Steps, table: &mut Table) -> Result<(), Box<dyn Error>> {
        let host = PackHost {
            backend: self.cpu,
            ring: &self.ring,
            context: &self.context,
            table: &served.table,
            db: &self.db,
            second_db: None,
            hint: &self.hint,
        };
        for batch in BATCHES {
            // Too large a batch, as the steps have said.
            let Some(sum) = steps.sum(&served.table, batch) else { continue };
            let lookups = Lookups::by_index(&served.client, RECORD_BYTES, batch)?;
            let keys = vec![&self.keys; batch];
            let seconds = lookups.timed(|queries| packing::answer(&host, queries, &keys))?;
            let stream = probe::stream_read_gbps(self.db.bytes(), self.cpu.threads());
            let row = Row::named("answer").of(served.table.protocol()).batch(batch);
            let row = row.pass(self.cpu.threads(), self.db.bytes().len(), seconds);
            table.push(&row.answer(stream, sum));
        }
        Ok(())
    }

    /// Whether the expanded queries of a batch fit into memory beside the table.
    fn fits(&self, batch: usize) -> bool {
        let tiling = self.hint.tiling();
        let queries = batch * tiling.fold_bytes();
        // The files count as memory that could be freed.
        let needed = queries + queries / 2 + self.db.bytes().len() + self.hint.bytes().len();
        available_memory().is_none_or(|available| needed <= available)
    }
}

/// Bytes that Linux says can be had without swapping.
fn available_memory() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok()?.checked_mul(1024)
}
