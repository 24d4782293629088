//! `hush-bench colpack`: a table of 4-KiB records by index under column packing: its build, every step of an answer, and
//! whole answers.
//!
//! `colpack` and `colpack-s` have the same database and pack columns, so that the files of one serve both.

use std::{error::Error, path::Path, sync::Arc};

use hush_cpu::{Cpu, probe};
use hush_engine::build::{BuildOptions, chain_polys};
use hush_he::{
    HeError,
    algorithms::open_column_keys,
    entities::ColumnKeys,
    params::{COLPACK_N2048_Q52, RingContext},
};
use hush_ops::{
    contract::{ColumnOps, LweOps, PowerKeys, RingOps, key_words},
    tiling::TiledDb,
};
use hush_protocol::{
    colpack_s,
    column_packing::{self, ColumnHost, ColumnScheme},
    column_table::ColumnTable,
    table::{Protocol, TableParams},
    wire,
};
use hush_store::snapshot::{CHAIN_FILE, COLUMNS_FILE, DB_FILE, Header};

use super::{
    Args,
    lookups::Lookups,
    row::Row,
    scan::{random_queries, random_words},
    table::Table,
    tables::{self, resident},
    timing::timed,
};

/// Bytes of a record: two plaintexts.
const RECORD_BYTES: usize = 4096;
const PROTOCOLS: [Protocol; 2] = [Protocol::Colpack, Protocol::ColpackS];
const BATCHES: [usize; 4] = [1, 8, 32, 64];

/// The table under one of its protocols.
type Served = tables::Served<ColumnTable>;

pub(super) fn run(args: &Args, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let dir = scratch.path().join("table");
    let columns = args.columns.map(|columns| columns.get());
    let options = BuildOptions { columns, ..tables::options(Protocol::Colpack) };
    chain_hint(table)?;
    let header = tables::build_by_index(args.size, RECORD_BYTES, &options, "colpack", &dir, table)?;
    let [colpack, colpack_s] = PROTOCOLS.map(|protocol| served(&header, protocol));
    let served = [colpack?, colpack_s?];
    for served in &served {
        tables::describe(&header, served.client.params(), table);
    }
    for threads in args.thread_counts() {
        let cpu = Cpu::new(threads)?;
        let files = Files::open(&dir, &served[0], &cpu)?;
        for batch in BATCHES {
            let steps = files.steps(&served[0], batch, table)?;
            for served in &served {
                files.answer(served, batch, &steps, table)?;
            }
        }
    }
    Ok(())
}

fn served(header: &Header, protocol: Protocol) -> Result<Served, Box<dyn Error>> {
    let TableParams::Column(built) = header.descriptor.params()? else {
        return Err("the table has no pack columns".into());
    };
    let table = ColumnTable::new(protocol, *built.params(), built.shape())?;
    Served::new(header, protocol, [table.query_bits(), u32::BITS, u32::BITS], table)
}

/// One plaintext of the build's longest stage, on one thread.
fn chain_hint(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let (cpu, params) = (Cpu::new(1)?, COLPACK_N2048_Q52);
    let ring = cpu.open_ring(Arc::new(RingContext::new(*params.ring())))?;
    let plan = cpu.open_masks(&ring, ColumnScheme::new(&params).masks())?;
    let hint = random_words(params.lwe().n() * params.lwe().n()).into();
    let (seconds, chained) = timed(|| cpu.chain_hint(&ring, &plan, &[&hint]))?;
    let row = Row::named("chain_hint, one plaintext").of(Protocol::Colpack);
    table.push(&row.pass(1, chained[0].columns.len(), seconds));
    Ok(())
}

/// The files on a backend.
struct Files<'a> {
    cpu: &'a Cpu,
    ring: <Cpu as RingOps>::Ring,
    scheme: ColumnScheme,
    db: <Cpu as LweOps>::Db,
    columns: <Cpu as LweOps>::Db,
    chain: <Cpu as ColumnOps>::Chain,
    masks: Vec<u8>,
}

impl<'a> Files<'a> {
    fn open(dir: &Path, served: &Served, cpu: &'a Cpu) -> Result<Self, Box<dyn Error>> {
        let load = |name| resident(dir, name);
        let table = &served.table;
        let scheme = ColumnScheme::new(table.params());
        let ring = cpu.open_ring(Arc::new(RingContext::new(*table.params().ring())))?;
        let db = cpu.open_db(TiledDb::new(table.tiling(), load(DB_FILE)?)?)?;
        let columns = cpu.open_db(TiledDb::new(table.columns_tiling(), load(COLUMNS_FILE)?)?)?;
        let polys = chain_polys(table, (*load(CHAIN_FILE)?).as_ref())?;
        let switched = colpack_s::switched_masks(cpu, &ring, table, polys.masks.clone())?;
        let chain = cpu.open_chain(&ring, &table.pack_shape(), polys)?;
        Ok(Self { cpu, ring, scheme, db, columns, chain, masks: switched })
    }

    /// The steps of a batch, each by itself; returns the seconds of opening the keys, `lwe_fold`, `pack_columns` and
    /// `rgsw_power_fold`.
    fn steps(&self, served: &Served, batch: usize, table: &mut Table) -> Result<[f64; 4], Box<dyn Error>> {
        let (cpu, packed) = (self.cpu, &served.table);
        let lookups = Lookups::by_index(&served.client, RECORD_BYTES, batch)?;
        let (open, keys) = timed(|| self.open_keys(packed, &lookups))?;
        let queries = random_queries(packed.shape().columns, batch);
        let rotations: Vec<&[u64]> = keys.iter().map(|keys| &keys.rotation[..]).collect();
        let conjugations: Vec<_> = keys.iter().map(|keys| &keys.conjugation).collect();
        let bodies: Vec<_> = keys.iter().map(|keys| keys.power.as_ref()).collect();
        let powers = PowerKeys { masks: self.scheme.masks().power(), bodies: &bodies };
        let words = key_words(packed.params().ring().degree(), &rotations);

        let (fold, folded) = timed(|| cpu.lwe_fold(&self.db, &queries))?;
        let (columns, _) = timed(|| cpu.lwe_fold(&self.columns, &words))?;
        let pack = || {
            cpu.pack_columns(&self.ring, &self.columns, &self.chain, folded.clone(), &words, &conjugations)
        };
        let (pack, folded) = timed(pack)?;
        let (power, _) = timed(|| cpu.rgsw_power_fold(&self.ring, &self.chain, &folded, powers))?;

        let row = |name: &str, bytes: usize, seconds| {
            Row::named(name).of(packed.protocol()).batch(batch).pass(cpu.threads(), bytes, seconds)
        };
        let stream = probe::stream_read_gbps(self.db.bytes(), cpu.threads());
        let (db, own) = (self.db.bytes().len(), self.columns.bytes().len());
        table.push(&row("open keys", batch * packed.query_bytes().packed, open));
        table.push(&row("lwe_fold", db, fold).stream(stream));
        table.push(&row("lwe_fold of pack columns", own, columns).stream(stream));
        table.push(&row("pack_columns", own, pack).stream(stream));
        table.push(&row("rgsw_power_fold", batch * size_of::<u32>() * packed.rows(), power));
        Ok([open, fold, pack, power])
    }

    fn open_keys(&self, packed: &ColumnTable, lookups: &Lookups) -> Result<Vec<ColumnKeys>, HeError> {
        let open = |query: &wire::Query| {
            open_column_keys(packed.params(), self.scheme.context(), packed.folds(), &query.packed)
        };
        lookups.queries.iter().map(open).collect()
    }

    /// Whole answers, as multiples of the time to read database and pack columns once, and of the sum of their steps.
    fn answer(
        &self,
        served: &Served,
        batch: usize,
        [open, fold, pack, power]: &[f64; 4],
        table: &mut Table,
    ) -> Result<(), Box<dyn Error>> {
        let host = ColumnHost {
            backend: self.cpu,
            ring: &self.ring,
            scheme: &self.scheme,
            table: &served.table,
            db: &self.db,
            columns: &self.columns,
            chain: &self.chain,
            masks: &self.masks,
        };
        let lookups = Lookups::by_index(&served.client, RECORD_BYTES, batch)?;
        let seconds = lookups.timed(|queries| column_packing::answer(&host, queries))?;
        let stream = probe::stream_read_gbps(self.db.bytes(), self.cpu.threads());
        let bytes = self.db.bytes().len() + self.columns.bytes().len();
        let sum = open + fold + pack + if served.table.folds() { *power } else { 0.0 };
        let row = Row::named("answer").of(served.table.protocol()).batch(batch);
        table.push(&row.pass(self.cpu.threads(), bytes, seconds).answer(stream, sum));
        Ok(())
    }
}
