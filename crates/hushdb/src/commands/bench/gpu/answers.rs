//! Whole answers from tables of random bytes that are made on the device: the protocols' pages on real queries.

use std::{error::Error, sync::Arc, time::Instant};

use hush_engine::{Backend, MemoryPlan, room_for_tables};
use hush_he::params::{DEFAULT_LWE, RingContext};
use hush_math::csprng::Csprng;
use hush_ops::contract::{ChainPolys, ColumnOps, RingOps};
use hush_protocol::{
    ProtocolError, Target, colpack_s,
    column_packing::{self, ColumnHost, ColumnScheme},
    column_table::ColumnTable,
    lwe_table::LweTable,
    pack_table::PackTable,
    packing::{self, PackHost},
    ring_keys::{RingKeys, open_upload},
    simple,
    table::{Protocol, TableParams, TableShape},
    wire,
};

use super::{
    Bench, Row, Work,
    room::batches_that_fit,
    row::Skipped,
    steps::{residues, table_shape},
};
use crate::commands::bench::BenchArgs;

/// Operations on bytes of an entry of a database and query: 2 a multiply-add, 4 bytes a word.
const BYTE_OPS: f64 = 8.0;

/// The protocols with targets for GPUs, on tables of `args.size` bytes: those that there is room for, as the engine plans it.
pub(super) fn run(bench: &mut Bench<'_>, args: &BenchArgs) -> Result<(), Box<dyn Error>> {
    // Half of the columns for tables of up to a GiB; a few blocks for the smallest.
    let most = bench.scale.columns >> u32::from(args.size <= 1 << 30);
    let columns = args.columns.map_or(most, |columns| columns.get());
    let shape = table_shape(args.size, columns);
    let mut tables = Vec::new();
    for protocol in [Protocol::Colpack, Protocol::ColpackS] {
        tables.push(TableParams::Column(ColumnTable::new(protocol, bench.scale.column, shape)?));
    }
    tables.push(TableParams::Lwe(LweTable::new(Protocol::Simple, DEFAULT_LWE, shape)?));
    for protocol in [Protocol::Hybrid, Protocol::ExppackS] {
        tables.push(TableParams::Pack(PackTable::new(protocol, bench.scale.pack, shape)?));
    }
    tables.into_iter().try_for_each(|table| bench.table(table))
}

/// Batches of a table that are measured.
struct Batches {
    protocol: Protocol,
    shape: TableShape,
    /// Bytes of the table.
    bytes: usize,
    sizes: Vec<usize>,
}

impl Bench<'_> {
    /// One table, as far as there is room for it.
    fn table(&mut self, table: TableParams) -> Result<(), Box<dyn Error>> {
        let (plan, free) = (MemoryPlan::to_serve(&table, 1), room_for_tables(self.cuda));
        let (protocol, bytes) = (table.protocol(), table.encoded_bytes());
        let device = &self.cuda.device().info().name;
        let sizes = match batches_that_fit(&plan, device, free, bytes, self.scale.batches) {
            Ok(sizes) => sizes,
            Err(why) => {
                self.rows.skip(&Skipped::answers(protocol, bytes, why));
                return Ok(());
            }
        };
        let batches = Batches { protocol, shape: table.shape(), bytes, sizes };
        match table {
            TableParams::Column(table) => self.column(&table, &batches),
            TableParams::Lwe(table) => self.simple(&table, &batches),
            TableParams::Pack(table) => self.pack(&table, &batches),
            TableParams::Ring(_) => Ok(()),
        }
    }

    fn column(&mut self, table: &ColumnTable, batches: &Batches) -> Result<(), Box<dyn Error>> {
        let cuda = self.cuda;
        let (tiling, columns_tiling) = (table.tiling(), table.columns_tiling());
        let db = cuda.random_db(tiling.rows(), tiling.cols(), 1)?;
        let columns = cuda.random_db(columns_tiling.rows(), columns_tiling.cols(), 2)?;
        let scheme = ColumnScheme::new(table.params());
        let context = Arc::new(RingContext::new(*table.params().ring()));
        let ring = cuda.open_ring(context.clone())?;
        let [digits, masks] = [3, 4].map(|seed| residues(context.kept(), table.chain_words() / 2, seed));
        let mut switched = Vec::new();
        let masks = if table.folds() {
            masks
        } else {
            switched = colpack_s::switched_masks(cuda, &ring, table, masks)?;
            Vec::new()
        };
        let chain = cuda.open_chain(&ring, &table.pack_shape(), ChainPolys { digits, masks })?;
        let host = ColumnHost {
            backend: cuda,
            ring: &ring,
            scheme: &scheme,
            table,
            db: &db,
            columns: &columns,
            chain: &chain,
            masks: &switched,
        };
        let work = |batch: usize| Work {
            bytes: (tiling.bytes() + columns_tiling.bytes()) as f64,
            byte_ops: BYTE_OPS * batch as f64 * (tiling.bytes() + columns_tiling.bytes()) as f64,
            ..Work::default()
        };
        let make = |target, rng: &mut Csprng| column_packing::query(table, &scheme, target, rng).0;
        let answer = |queries: &[wire::Query]| column_packing::answer(&host, queries);
        self.answers(batches, work, make, answer)
    }

    fn simple(&mut self, table: &LweTable, batches: &Batches) -> Result<(), Box<dyn Error>> {
        let tiling = table.tiling();
        let db = self.cuda.random_db(tiling.rows(), tiling.cols(), 1)?;
        let bytes = tiling.bytes() as f64;
        let work =
            |batch: usize| Work { bytes, byte_ops: BYTE_OPS * batch as f64 * bytes, ..Work::default() };
        let make = |target: Target, rng: &mut Csprng| simple::query(table, &target, rng).0;
        let cuda = self.cuda;
        let answer = |queries: &[wire::Query]| simple::answer(cuda, &db, table, queries);
        self.answers(batches, work, make, answer)
    }

    fn pack(&mut self, table: &PackTable, batches: &Batches) -> Result<(), Box<dyn Error>> {
        let cuda = self.cuda;
        let (tiling, hint_tiling) = (table.tiling(), table.hint_tiling());
        let context = Arc::new(RingContext::new(*table.params().ring()));
        let ring = cuda.open_ring(context.clone())?;
        let db = cuda.random_db(tiling.rows(), tiling.cols(), 1)?;
        let hint = cuda.random_ntt_db(&ring, hint_tiling, 2)?;
        let client = RingKeys::from_seed(table.params().ring(), &[5; 32]);
        let keys = cuda.open_evaluation_keys(&ring, open_upload(&context, client.upload())?)?;
        let host = PackHost {
            backend: cuda,
            ring: &ring,
            context: &context,
            table,
            db: &db,
            second_db: None,
            hint: &hint,
        };
        let work = |batch: usize| Work {
            bytes: (tiling.bytes() + hint_tiling.bytes()) as f64,
            byte_ops: BYTE_OPS * batch as f64 * tiling.bytes() as f64
                // A word of the hint meets two words of a selector: four classes of four by one bytes each.
                + 2.0 * 2.0 * 16.0 * batch as f64 * (hint_tiling.bytes() / 4) as f64,
            ..Work::default()
        };
        let make = |target, rng: &mut Csprng| packing::query(table, &client, target, rng).0;
        let answer = |queries: &[wire::Query]| packing::answer(&host, queries, &vec![&keys; queries.len()]);
        self.answers(batches, work, make, answer)
    }

    /// Rows for all batches: the time of one batch alone, and of a batch where as many are under way as the server has.
    fn answers(
        &mut self,
        batches: &Batches,
        work: impl Fn(usize) -> Work,
        make: impl Fn(Target, &mut Csprng) -> wire::Query,
        answer: impl Fn(&[wire::Query]) -> Result<Vec<Vec<u8>>, ProtocolError> + Sync,
    ) -> Result<(), Box<dyn Error>> {
        let (runs, in_flight) = (self.scale.runs, Backend::Cuda.batches_in_flight());
        let (mut rng, shape) = (Csprng::from_os(), batches.shape);
        let most = batches.sizes.iter().copied().max().unwrap_or(0);
        let targets = (0..most).map(|index| {
            let columns = vec![((index * 7919 % shape.columns) as u32, 1)];
            Target { columns, block: index * 31 % shape.blocks }
        });
        let queries: Vec<_> = targets.map(|target| make(target, &mut rng)).collect();
        let together = format!("answer, {in_flight} in flight");
        for &batch in &batches.sizes {
            let queries = &queries[..batch];
            answer(queries)?;
            let start = Instant::now();
            (0..runs).try_for_each(|_| answer(queries).map(drop))?;
            let alone_seconds = start.elapsed().as_secs_f64() / runs as f64;
            let start = Instant::now();
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..in_flight)
                    .map(|_| scope.spawn(|| (0..runs).try_for_each(|_| answer(queries).map(drop))))
                    .collect();
                workers.into_iter().try_for_each(|worker| worker.join().expect("answers do not panic"))
            })?;
            let together_seconds = start.elapsed().as_secs_f64() / (runs * in_flight) as f64;
            for (name, seconds) in [("answer", alone_seconds), (&together, together_seconds)] {
                let row = Row::new(name, batch, seconds, work(batch), self.floors);
                self.rows.push(&row.answer(batches.protocol, batches.bytes));
            }
        }
        Ok(())
    }
}
