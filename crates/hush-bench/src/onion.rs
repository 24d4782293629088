//! `hush-bench onion`: a table over rings by index: its build, every step of an answer, and whole answers.

use std::{error::Error, path::Path, sync::Arc};

use hush_client::Table as ClientTable;
use hush_cpu::{Cpu, probe};
use hush_engine::{Backends, Engine, Silent, build::BuildOptions};
use hush_he::{
    algorithms::open_ring_query,
    params::{ONION_M31, ONION_S, RingContext},
};
use hush_ops::{
    contract::{EntryOrder, RingOps, RlweBatch},
    ntt_tiling::NttTiledDb,
};
use hush_protocol::{
    ring_keys::open_upload,
    ring_table::RingTable,
    table::{Protocol, TableParams},
};
use hush_store::snapshot::{DB_FILE, MappedFile, Snapshot, Verify};

use super::{
    Args, build,
    index_table::build_table,
    lookups::Lookups,
    median_seconds, on_cpu,
    row::{Row, Table},
};

/// Batches of whole answers.
const BATCHES: [usize; 2] = [1, 8];

pub(super) fn run(args: &Args, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for ring in [ONION_M31, ONION_S] {
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path().join("table");
        let backends = on_cpu()?;
        let options = BuildOptions { ring: Some(ring), ..build::options(Protocol::Onion) };
        let length = 2 * ring.plaintext_bytes();
        let header = build_table(args.size, length, &options, ring.name(), &dir, &backends, table)?;
        let mut client = ClientTable::new(header.descriptor.clone(), None, false)?;
        client.use_keys(&[1; 32]);
        let TableParams::Ring(shape) = *client.params() else { return Err("onion is over rings".into()) };
        table.note(&format!(
            "{}: payload {:.0} MiB, {} rows x {} entries x {} planes, encoded {:.3}x; query {} B, answer {} B, keys {} B",
            ring.name(),
            header.payload_bytes as f64 / f64::from(1 << 20),
            shape.shape().columns,
            shape.entries(),
            shape.planes(),
            client.params().encoded_bytes() as f64 / header.payload_bytes as f64,
            shape.query_bytes(),
            shape.answer_bytes(),
            client.params().key_bytes(),
        ));
        for threads in args.thread_counts() {
            let cpu = Arc::new(Cpu::new(threads)?);
            let bench = Bench { client: &client, shape, payload: header.payload_bytes, cpu: &cpu };
            bench.steps(&dir, table)?;
            let engine = hush_engine::open(&dir, Verify::Header, &Backends::cpu_only(cpu.clone()), &Silent)?;
            bench.answers(&*engine, &dir, table)?;
        }
    }
    Ok(())
}

struct Bench<'a> {
    client: &'a ClientTable,
    shape: RingTable,
    payload: u64,
    cpu: &'a Cpu,
}

impl Bench<'_> {
    /// Each step by itself. The bytes are those of the database for the first dimension, else of the payload.
    fn steps(&self, dir: &Path, table: &mut Table) -> Result<(), Box<dyn Error>> {
        let (cpu, shape) = (self.cpu, &self.shape);
        let context = Arc::new(RingContext::new(*shape.ring()));
        let ring = cpu.open_ring(context.clone())?;
        let file = MappedFile::open(&dir.join(DB_FILE))?;
        file.make_resident()?;
        let db = cpu.open_ntt_db(&ring, NttTiledDb::new(shape.tiling(), Arc::new(file))?)?;
        let (_, body) = self.client.key_upload().ok_or("onion has keys")?;
        let keys = cpu.open_evaluation_keys(&ring, open_upload(&context, &body)?)?;
        let query = Lookups::by_index(self.client, 1)?.queries.remove(0);
        let query = [open_ring_query(&context, shape.leaves(), &query.packed)?];
        let (rows, folds) = (shape.shape().columns, shape.folds());

        let expand = || cpu.expand(&ring, &[&keys], &query, rows, folds);
        let expanded = expand()?.remove(0);
        table.push(&self.time("expand", self.payload, expand));
        for batch in [1, 4, 8] {
            let selectors = vec![&expanded.selectors; batch];
            let bytes = db_bytes(shape);
            let row = self.time("rlwe_fold", bytes, || cpu.rlwe_fold(&ring, &db, &selectors));
            let stream = probe::stream_read_gbps(db.bytes(), cpu.threads());
            table.push(&Row { batch, ..row }.stream(stream));
        }
        let folded = cpu.rlwe_fold(&ring, &db, &[&expanded.selectors])?.remove(0);
        let (order, bits) = (EntryOrder::PlaneMajor, &expanded.bits[..]);
        let fold = || cpu.rgsw_fold(&ring, &[&folded], shape.planes(), order, &[bits]);
        table.push(&self.time("rgsw_fold", self.payload, fold));
        let planes = fold()?.remove(0);
        let (words, bits) = (folded.ciphertext_words, shape.ring().response_bits());
        let pair = RlweBatch { ciphertext_words: words, words: planes.words[..2 * words].to_vec().into() };
        let row = self.time("pack_pairs and mod_switch", self.payload, || {
            let packed = cpu.pack_pairs(&ring, &[&keys], &[&pair])?;
            cpu.mod_switch(&ring, &[&packed[0]], 0..3, &[bits.a, bits.b, bits.b])
        });
        table.push(&row);
        Ok(())
    }

    /// Whole answers, as shares of the time to read the database.
    fn answers(&self, engine: &dyn Engine, dir: &Path, table: &mut Table) -> Result<(), Box<dyn Error>> {
        let (_, body) = self.client.key_upload().ok_or("onion has keys")?;
        let keys = engine.open_keys(&body)?;
        let db = Snapshot::open(dir, Verify::Header)?.take(DB_FILE)?;
        for batch in BATCHES {
            let lookups = Lookups::by_index(self.client, batch)?;
            let keys = vec![Some(keys.clone()); batch];
            let stream = probe::stream_read_gbps(db.as_ref(), self.cpu.threads());
            let seconds = median_seconds(5, || {
                // A failure shows in the check that follows.
                let _ = engine.answer(&lookups.queries, &keys);
            });
            let answers = engine.answer(&lookups.queries, &keys)?;
            lookups.check(self.client, &answers, self.shape.shape().slot_bytes)?;
            let row = Row::new("answer", self.cpu.threads(), batch, db_bytes(&self.shape), seconds);
            table.push(&row.stream(stream).protocol(self.shape.ring().name()));
            let row = Row::new("answer, by payload", self.cpu.threads(), batch, self.payload, seconds);
            table.push(&row.protocol(self.shape.ring().name()));
        }
        Ok(())
    }

    fn time<T, E>(&self, name: &str, bytes: u64, mut work: impl FnMut() -> Result<T, E>) -> Row {
        let seconds = median_seconds(5, || {
            // Each step has been run before it is timed.
            let _ = work();
        });
        Row::new(name, self.cpu.threads(), 1, bytes, seconds).protocol(self.shape.ring().name())
    }
}

fn db_bytes(shape: &RingTable) -> u64 {
    shape.tiling().bytes() as u64
}
