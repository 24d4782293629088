//! `hush-bench colpack`: a table of 4-KiB records by index under column packing: its build, every step of an answer, and
//! whole answers.
//!
//! `colpack` and `colpack-s` have the same database and pack columns, so that the files of one serve both.

use std::{error::Error, path::Path, sync::Arc};

use hush_client::Table as ClientTable;
use hush_cpu::{Cpu, probe};
use hush_engine::build::{BuildOptions, chain_polys};
use hush_he::{
    HeError,
    algorithms::open_column_keys,
    entities::ColumnKeys,
    params::{COLPACK_N2048_Q52, RingContext},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{ColumnOps, LweOps, LweQueries, PowerKeys, RingOps, key_words},
    tiling::TiledDb,
};
use hush_protocol::{
    colpack_s,
    column_packing::{self, ColumnHost, ColumnScheme},
    column_table::ColumnTable,
    descriptor::Descriptor,
    table::{Protocol, TableParams},
    wire,
};
use hush_store::snapshot::{CHAIN_FILE, COLUMNS_FILE, DB_FILE, Header};

use super::{
    Args, build,
    index_table::{build_table, resident},
    lookups::Lookups,
    on_cpu,
    row::{Row, Table},
    timed,
};

/// Bytes of a record: two plaintexts.
const RECORD_BYTES: usize = 4096;
const PROTOCOLS: [Protocol; 2] = [Protocol::Colpack, Protocol::ColpackS];
const BATCHES: [usize; 4] = [1, 8, 32, 64];

pub(super) fn run(args: &Args, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let dir = scratch.path().join("table");
    let backends = on_cpu()?;
    let options = BuildOptions {
        columns: args.columns.map(|columns| columns.get()),
        ..build::options(Protocol::Colpack)
    };
    chain_hint(table)?;
    let header = build_table(args.size, RECORD_BYTES, &options, "colpack", &dir, &backends, table)?;
    let served = PROTOCOLS.map(|protocol| Served::new(&header, protocol));
    let [colpack, colpack_s] = served;
    let (colpack, colpack_s) = (colpack?, colpack_s?);
    for served in [&colpack, &colpack_s] {
        describe(served, table);
    }
    for threads in args.thread_counts() {
        let cpu = Cpu::new(threads)?;
        let bench = Bench::open(&dir, &colpack, &cpu)?;
        for batch in BATCHES {
            let steps = bench.steps(&colpack, batch, table)?;
            for served in [&colpack, &colpack_s] {
                bench.answer(served, batch, &steps, table)?;
            }
        }
    }
    Ok(())
}

/// One plaintext of the build's longest stage, on one thread.
fn chain_hint(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let (cpu, params) = (Cpu::new(1)?, COLPACK_N2048_Q52);
    let ring = cpu.open_ring(Arc::new(RingContext::new(*params.ring())))?;
    let plan = cpu.open_masks(&ring, ColumnScheme::new(&params).masks())?;
    let mut hint = vec![0; params.lwe().n() * params.lwe().n()];
    Csprng::insecure_from_seed(1).fill_u32(&mut hint);
    let hint = hint.into();
    let (seconds, chained) = timed(|| cpu.chain_hint(&ring, &plan, &[&hint]))?;
    let row = Row::new("chain_hint, one plaintext", 1, 1, chained[0].columns.len() as u64, seconds);
    table.push(&row.protocol(Protocol::Colpack));
    Ok(())
}

fn describe(served: &Served, table: &Table) {
    let (params, shape) = (&served.table, served.table.pack_shape());
    table.note(&format!(
        "{}: D0 = {}, {} entries x {} planes, pack columns {:.3} of the table; query {} B, answer {} B",
        params.protocol(),
        params.shape().columns,
        shape.entries(),
        shape.planes(),
        params.columns_tiling().bytes() as f64 / params.tiling().bytes() as f64,
        params.query_bytes().total(),
        params.answer_bytes(),
    ));
}

/// The table under one of its protocols, and a client.
struct Served {
    table: ColumnTable,
    client: ClientTable,
}

impl Served {
    fn new(header: &Header, protocol: Protocol) -> Result<Self, Box<dyn Error>> {
        let TableParams::Column(built) = header.descriptor.params()? else {
            return Err("the table has no pack columns".into());
        };
        let table = ColumnTable::new(protocol, *built.params(), built.shape())?;
        let word_bits = Some([table.query_bits(), u32::BITS, u32::BITS]);
        let mut descriptor = Descriptor { protocol, word_bits, ..header.descriptor.clone() };
        descriptor.seal();
        Ok(Self { table, client: ClientTable::new(descriptor, None, false)? })
    }
}

/// The files on a backend.
struct Bench<'a> {
    cpu: &'a Cpu,
    ring: <Cpu as RingOps>::Ring,
    scheme: ColumnScheme,
    db: <Cpu as LweOps>::Db,
    columns: <Cpu as LweOps>::Db,
    chain: <Cpu as ColumnOps>::Chain,
    masks: Vec<u8>,
}

impl<'a> Bench<'a> {
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
        let lookups = Lookups::by_index(&served.client, batch)?;
        let (open, keys) = timed(|| self.open_keys(packed, &lookups))?;
        let mut first =
            LweQueries { cols: packed.shape().columns, words: vec![0; batch * packed.shape().columns] };
        Csprng::insecure_from_seed(2).fill_u32(&mut first.words);
        let rotations: Vec<&[u64]> = keys.iter().map(|keys| &keys.rotation[..]).collect();
        let conjugations: Vec<_> = keys.iter().map(|keys| &keys.conjugation).collect();
        let bodies: Vec<_> = keys.iter().map(|keys| keys.power.as_ref()).collect();
        let powers = PowerKeys { masks: self.scheme.masks().power(), bodies: &bodies };
        let words = key_words(packed.params().ring().degree(), &rotations);

        let (fold, folded) = timed(|| cpu.lwe_fold(&self.db, &first))?;
        let (columns, _) = timed(|| cpu.lwe_fold(&self.columns, &words))?;
        let pack = || {
            cpu.pack_columns(&self.ring, &self.columns, &self.chain, folded.clone(), &words, &conjugations)
        };
        let (pack, folded) = timed(pack)?;
        let (power, _) = timed(|| cpu.rgsw_power_fold(&self.ring, &self.chain, &folded, powers))?;

        let row = |name: &str, bytes: usize, seconds| {
            Row::new(name, cpu.threads(), batch, bytes as u64, seconds).protocol(packed.protocol())
        };
        let stream = probe::stream_read_gbps(self.db.bytes(), cpu.threads());
        let key_bytes = batch * packed.query_bytes().packed;
        let plaintext_bytes = batch * size_of::<u32>() * packed.rows();
        table.push(&row("open keys", key_bytes, open));
        table.push(&row("lwe_fold", self.db.bytes().len(), fold).stream(stream));
        table.push(&row("lwe_fold of pack columns", self.columns.bytes().len(), columns).stream(stream));
        table.push(&row("pack_columns", self.columns.bytes().len(), pack).stream(stream));
        table.push(&row("rgsw_power_fold", plaintext_bytes, power));
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
        let lookups = Lookups::by_index(&served.client, batch)?;
        let (seconds, answers) = timed(|| column_packing::answer(&host, &lookups.queries))?;
        lookups.check(&served.client, &answers, RECORD_BYTES)?;
        let stream = probe::stream_read_gbps(self.db.bytes(), self.cpu.threads());
        let bytes = self.db.bytes().len() + self.columns.bytes().len();
        let sum = open + fold + pack + if served.table.folds() { *power } else { 0.0 };
        let row = Row::new("answer", self.cpu.threads(), batch, bytes as u64, seconds);
        table.push(&row.answer(stream, sum).protocol(served.table.protocol()));
        Ok(())
    }
}
