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
use hush_store::snapshot::{DB_FILE, Verify};

use super::{
    Args,
    lookups::Lookups,
    row::Row,
    table::Table,
    tables::{self, resident},
    timing::timed,
};

/// Batches of whole answers.
const BATCHES: [usize; 2] = [1, 8];

pub(super) fn run(args: &Args, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for ring in [ONION_M31, ONION_S] {
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path().join("table");
        let options = BuildOptions { ring: Some(ring), ..tables::options(Protocol::Onion) };
        let length = 2 * ring.plaintext_bytes();
        let header = tables::build_by_index(args.size, length, &options, ring.name(), &dir, table)?;
        let mut client = ClientTable::new(header.descriptor.clone(), None, false)?;
        client.use_keys(&[1; 32]);
        let TableParams::Ring(shape) = *client.params() else { return Err("onion is over rings".into()) };
        tables::describe(&header, client.params(), table);
        for threads in args.thread_counts() {
            let cpu = Arc::new(Cpu::new(threads)?);
            let payload = header.payload_bytes as usize;
            let onion = Onion { client: &client, shape, payload, cpu: &cpu };
            let engine = hush_engine::open(&dir, Verify::Header, &Backends::cpu_only(cpu.clone()), &Silent)?;
            onion.steps(&dir, table)?;
            onion.answers(&*engine, &dir, table)?;
        }
    }
    Ok(())
}

/// A table, and a client of it.
struct Onion<'a> {
    client: &'a ClientTable,
    shape: RingTable,
    payload: usize,
    cpu: &'a Cpu,
}

impl Onion<'_> {
    /// Each step by itself. The bytes are those of the database for the first dimension, else of the payload.
    fn steps(&self, dir: &Path, table: &mut Table) -> Result<(), Box<dyn Error>> {
        let (cpu, shape, payload) = (self.cpu, &self.shape, self.payload);
        let context = Arc::new(RingContext::new(*shape.ring()));
        let ring = cpu.open_ring(context.clone())?;
        let db = cpu.open_ntt_db(&ring, NttTiledDb::new(shape.tiling(), resident(dir, DB_FILE)?)?)?;
        let (_, body) = self.client.key_upload().ok_or("onion has keys")?;
        let keys = cpu.open_evaluation_keys(&ring, open_upload(&context, &body)?)?;
        let query = Lookups::by_index(self.client, self.length(), 1)?.queries.remove(0);
        let query = [open_ring_query(&context, shape.leaves(), &query.packed)?];

        let expand = || cpu.expand(&ring, &[&keys], &query, shape.shape().columns, shape.folds());
        let (seconds, mut expanded) = timed(expand)?;
        let expanded = expanded.remove(0);
        table.push(&self.row("expand", 1, payload, seconds));
        for batch in [1, 4, 8] {
            let selectors = vec![&expanded.selectors; batch];
            let (seconds, _) = timed(|| cpu.rlwe_fold(&ring, &db, &selectors))?;
            let stream = probe::stream_read_gbps(db.bytes(), cpu.threads());
            table.push(&self.row("rlwe_fold", batch, db.bytes().len(), seconds).stream(stream));
        }
        let folded = cpu.rlwe_fold(&ring, &db, &[&expanded.selectors])?.remove(0);
        let (order, bits) = (EntryOrder::PlaneMajor, &expanded.bits[..]);
        let fold = || cpu.rgsw_fold(&ring, &[&folded], shape.planes(), order, &[bits]);
        let (seconds, planes) = timed(fold)?;
        table.push(&self.row("rgsw_fold", 1, payload, seconds));
        let (words, bits) = (folded.ciphertext_words, shape.ring().response_bits());
        let pair = RlweBatch { ciphertext_words: words, words: planes[0].words[..2 * words].to_vec().into() };
        let (seconds, _) = timed(|| {
            let packed = cpu.pack_pairs(&ring, &[&keys], &[&pair])?;
            cpu.mod_switch(&ring, &[&packed[0]], 0..3, &[bits.a, bits.b, bits.b])
        })?;
        table.push(&self.row("pack_pairs and mod_switch", 1, payload, seconds));
        Ok(())
    }

    /// Whole answers, as shares of the time to read the database.
    fn answers(&self, engine: &dyn Engine, dir: &Path, table: &mut Table) -> Result<(), Box<dyn Error>> {
        let (_, body) = self.client.key_upload().ok_or("onion has keys")?;
        let (keys, db) = (engine.open_keys(&body)?, resident(dir, DB_FILE)?);
        for batch in BATCHES {
            let stream = probe::stream_read_gbps((*db).as_ref(), self.cpu.threads());
            let keys = vec![Some(keys.clone()); batch];
            let lookups = Lookups::by_index(self.client, self.length(), batch)?;
            let seconds = lookups.timed(|queries| engine.answer(queries, &keys))?;
            let bytes = self.shape.tiling().bytes();
            table.push(&self.row("answer", batch, bytes, seconds).stream(stream));
            table.push(&self.row("answer, by payload", batch, self.payload, seconds));
        }
        Ok(())
    }

    /// Bytes of a record.
    fn length(&self) -> usize {
        self.shape.shape().slot_bytes
    }

    fn row(&self, name: &str, batch: usize, bytes: usize, seconds: f64) -> Row {
        Row::named(name).of(self.shape.ring().name()).batch(batch).pass(self.cpu.threads(), bytes, seconds)
    }
}
