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
    Bench, Scale, Work, answer_work,
    room::batches_that_fit,
    steps::{residues, table_shape},
};
use crate::{Args, row::Row};

/// The protocols with targets for GPUs.
const PROTOCOLS: [Protocol; 5] =
    [Protocol::Colpack, Protocol::ColpackS, Protocol::Simple, Protocol::Hybrid, Protocol::ExppackS];

/// Each of [`PROTOCOLS`] on a table of `args.size` bytes, if there is room for it, as the engine plans it.
pub(super) fn run(bench: &mut Bench<'_>, args: &Args) -> Result<(), Box<dyn Error>> {
    // Half of the columns for tables of up to a GiB; a few blocks for the smallest.
    let most = bench.scale.columns >> u32::from(args.size <= 1 << 30);
    let columns = args.columns.map_or(most, |columns| columns.get());
    let shape = table_shape(args.size, columns);
    for protocol in PROTOCOLS {
        let row = Row::named("answer").of(protocol).table(args.size);
        bench.attempt(row, |bench| bench.measure(table_params(bench.scale, protocol, shape)?));
    }
    Ok(())
}

fn table_params(scale: &Scale, protocol: Protocol, shape: TableShape) -> Result<TableParams, ProtocolError> {
    Ok(match protocol {
        Protocol::Colpack | Protocol::ColpackS => {
            TableParams::Column(ColumnTable::new(protocol, scale.column, shape)?)
        }
        Protocol::Hybrid | Protocol::ExppackS => {
            TableParams::Pack(PackTable::new(protocol, scale.pack, shape)?)
        }
        _ => TableParams::Lwe(LweTable::new(protocol, DEFAULT_LWE, shape)?),
    })
}

/// Batches of a table that are measured.
struct Batches {
    row: Row,
    shape: TableShape,
    sizes: Vec<usize>,
}

impl Bench<'_> {
    /// One table, as far as there is room for it.
    fn measure(&mut self, table: TableParams) -> Result<(), Box<dyn Error>> {
        let (device, free) = (self.cuda.device(), room_for_tables(self.cuda));
        let plan = MemoryPlan::to_serve(&table, 1);
        let plan = plan.in_blocks(|bytes, buffers| device.bytes_taken(bytes, buffers));
        let bytes = table.encoded_bytes();
        let row = Row::named("answer").of(table.protocol()).table(bytes);
        let sizes = match batches_that_fit(&plan, &device.info().name, free, bytes, self.scale.batches) {
            Ok(sizes) => sizes,
            Err(why) => {
                self.table.skip(&row, why);
                return Ok(());
            }
        };
        let batches = Batches { row, shape: table.shape(), sizes };
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
        let [digits, masks] =
            [3, 4].map(|seed| residues(context.kept(), table.pack_shape().plaintexts(), seed));
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
        let work = |batch: usize| answer_work::column(table, batch);
        let make = |target, rng: &mut Csprng| column_packing::query(table, &scheme, target, rng).0;
        let answer = |queries: &[wire::Query]| column_packing::answer(&host, queries);
        self.answers(batches, work, make, answer);
        Ok(())
    }

    fn simple(&mut self, table: &LweTable, batches: &Batches) -> Result<(), Box<dyn Error>> {
        let tiling = table.tiling();
        let db = self.cuda.random_db(tiling.rows(), tiling.cols(), 1)?;
        let work = |batch: usize| answer_work::simple(table, batch);
        let make = |target: Target, rng: &mut Csprng| simple::query(table, &target, rng).0;
        let cuda = self.cuda;
        let answer = |queries: &[wire::Query]| simple::answer(cuda, &db, table, queries);
        self.answers(batches, work, make, answer);
        Ok(())
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
        let work = |batch: usize| answer_work::pack(table, batch);
        let make = |target, rng: &mut Csprng| packing::query(table, &client, target, rng).0;
        let answer = |queries: &[wire::Query]| packing::answer(&host, queries, &vec![&keys; queries.len()]);
        self.answers(batches, work, make, answer);
        Ok(())
    }

    /// Rows for all batches: the time of one batch alone, and of a batch where as many are under way as the server has.
    fn answers(
        &mut self,
        batches: &Batches,
        work: impl Fn(usize) -> Work,
        make: impl Fn(Target, &mut Csprng) -> wire::Query,
        answer: impl Fn(&[wire::Query]) -> Result<Vec<Vec<u8>>, ProtocolError> + Sync,
    ) {
        let (mut rng, shape) = (Csprng::from_os(), batches.shape);
        let most = batches.sizes.iter().copied().max().unwrap_or(0);
        let targets = (0..most).map(|index| {
            let columns = vec![((index * 7919 % shape.columns) as u32, 1)];
            Target { columns, block: index * 31 % shape.blocks }
        });
        let queries: Vec<_> = targets.map(|target| make(target, &mut rng)).collect();
        for &batch in &batches.sizes {
            let answer = || answer(&queries[..batch]).map(drop);
            for in_flight in [1, Backend::Cuda.batches_in_flight()] {
                let several = format!("answer, {in_flight} in flight");
                let row = if in_flight > 1 { batches.row.renamed(several) } else { batches.row.clone() };
                let row = row.batch(batch);
                self.attempt(row.clone(), |bench| {
                    let seconds = seconds_a_batch(bench.scale.runs, in_flight, answer)?;
                    bench.table.push(&bench.floors.row(row, &work(batch), seconds).queries());
                    Ok(())
                });
            }
        }
    }
}

/// Seconds from one batch to the next where `in_flight` of them are under way, after a batch that does not count.
fn seconds_a_batch(
    runs: usize,
    in_flight: usize,
    answer: impl Fn() -> Result<(), ProtocolError> + Sync,
) -> Result<f64, Box<dyn Error>> {
    answer()?;
    let (answer, start) = (&answer, Instant::now());
    std::thread::scope(|scope| {
        let work = move || (0..runs).try_for_each(|_| answer());
        let workers: Vec<_> = (0..in_flight).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("answers do not panic"))
    })?;
    Ok(start.elapsed().as_secs_f64() / (runs * in_flight) as f64)
}
