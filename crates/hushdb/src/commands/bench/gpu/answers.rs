//! Whole answers from tables of random bytes that are made on the device: the protocols' pages on real queries.

use std::{error::Error, sync::Arc, time::Instant};

use hush_cuda::{Cuda, device::Device};
use hush_he::params::{COLPACK_N2048_Q52, DEFAULT_LWE, PACK_M31, RingContext};
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
    table::{Protocol, TableShape},
    wire,
};

use super::{
    RUNS,
    floors::Floors,
    row::{Row, Table, Work},
};
use crate::commands::bench::BenchArgs;

/// Bytes of a record.
const RECORD_BYTES: usize = 4096;
const BATCHES: [usize; 4] = [1, 8, 32, 64];
/// Batches that are under way at once where throughput is measured: while the device answers one, the host reads another.
const IN_FLIGHT: usize = 2;
/// Operations on bytes of an entry of a database and query: 2 a multiply-add, 4 bytes a word.
const BYTE_OPS: f64 = 8.0;

/// The protocols with targets for GPUs, on tables of `args.size` bytes.
pub(super) fn run(
    device: Device,
    floors: &Floors,
    args: &BenchArgs,
    rows: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let cuda = Cuda::new(device);
    let mut bench = Bench { cuda: &cuda, floors, rows };
    let columns =
        args.columns.map_or(1 << if args.size > 1 << 30 { 16 } else { 15 }, |columns| columns.get());
    let blocks = (args.size / RECORD_BYTES).div_ceil(columns);
    let shape = TableShape { columns, blocks, slot_bytes: RECORD_BYTES };
    for protocol in [Protocol::Colpack, Protocol::ColpackS] {
        bench.column(ColumnTable::new(protocol, COLPACK_N2048_Q52, shape)?)?;
        cuda.device().release_unused();
    }
    bench.simple(LweTable::new(Protocol::Simple, DEFAULT_LWE, shape)?)?;
    cuda.device().release_unused();
    for protocol in [Protocol::Hybrid, Protocol::ExppackS] {
        bench.pack(PackTable::new(protocol, PACK_M31, shape)?)?;
        cuda.device().release_unused();
    }
    Ok(())
}

struct Bench<'a> {
    cuda: &'a Cuda,
    floors: &'a Floors,
    rows: &'a mut Table,
}

impl Bench<'_> {
    fn column(&mut self, table: ColumnTable) -> Result<(), Box<dyn Error>> {
        let cuda = self.cuda;
        let (tiling, columns_tiling) = (table.tiling(), table.columns_tiling());
        let db = cuda.random_db(tiling.rows(), tiling.cols(), 1)?;
        let columns = cuda.random_db(columns_tiling.rows(), columns_tiling.cols(), 2)?;
        let scheme = ColumnScheme::new(table.params());
        let ring = cuda.open_ring(Arc::new(RingContext::new(*table.params().ring())))?;
        let [digits, masks] =
            [3, 4].map(|seed| residues(&ring_context(&table), table.chain_words() / 2, seed));
        let mut switched = Vec::new();
        let masks = if table.folds() {
            masks
        } else {
            switched = colpack_s::switched_masks(cuda, &ring, &table, masks)?;
            Vec::new()
        };
        let chain = cuda.open_chain(&ring, &table.pack_shape(), ChainPolys { digits, masks })?;
        let host = ColumnHost {
            backend: cuda,
            ring: &ring,
            scheme: &scheme,
            table: &table,
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
        let make = |target, rng: &mut Csprng| column_packing::query(&table, &scheme, target, rng).0;
        let answer = |queries: &[wire::Query]| column_packing::answer(&host, queries);
        self.answers(table.protocol(), table.shape(), tiling.bytes() as u64, work, make, answer)
    }

    fn simple(&mut self, table: LweTable) -> Result<(), Box<dyn Error>> {
        let tiling = table.tiling();
        let db = self.cuda.random_db(tiling.rows(), tiling.cols(), 1)?;
        let bytes = tiling.bytes() as f64;
        let work =
            |batch: usize| Work { bytes, byte_ops: BYTE_OPS * batch as f64 * bytes, ..Work::default() };
        let make = |target: Target, rng: &mut Csprng| simple::query(&table, &target, rng).0;
        let cuda = self.cuda;
        let answer = |queries: &[wire::Query]| simple::answer(cuda, &db, &table, queries);
        self.answers(table.protocol(), table.shape(), tiling.bytes() as u64, work, make, answer)
    }

    fn pack(&mut self, table: PackTable) -> Result<(), Box<dyn Error>> {
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
            table: &table,
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
        let make = |target, rng: &mut Csprng| packing::query(&table, &client, target, rng).0;
        let answer = |queries: &[wire::Query]| packing::answer(&host, queries, &vec![&keys; queries.len()]);
        self.answers(table.protocol(), table.shape(), tiling.bytes() as u64, work, make, answer)
    }

    /// Rows for all batches: the time of one batch alone, and of a batch where several are under way.
    fn answers(
        &mut self,
        protocol: Protocol,
        shape: TableShape,
        table_bytes: u64,
        work: impl Fn(usize) -> Work,
        make: impl Fn(Target, &mut Csprng) -> wire::Query,
        answer: impl Fn(&[wire::Query]) -> Result<Vec<Vec<u8>>, ProtocolError> + Sync,
    ) -> Result<(), Box<dyn Error>> {
        let mut rng = Csprng::from_os();
        for batch in BATCHES {
            let queries: Vec<_> = (0..batch)
                .map(|index| {
                    let columns = vec![((index * 7919 % shape.columns) as u32, 1)];
                    make(Target { columns, block: index * 31 % shape.blocks }, &mut rng)
                })
                .collect();
            answer(&queries)?;
            let alone = Instant::now();
            for _ in 0..RUNS {
                answer(&queries)?;
            }
            let alone = alone.elapsed().as_secs_f64() / RUNS as f64;
            let together = Instant::now();
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..IN_FLIGHT)
                    .map(|_| scope.spawn(|| (0..RUNS).try_for_each(|_| answer(&queries).map(drop))))
                    .collect();
                workers.into_iter().try_for_each(|worker| worker.join().expect("answers do not panic"))
            })?;
            let together = together.elapsed().as_secs_f64() / (RUNS * IN_FLIGHT) as f64;
            for (name, seconds) in [("answer", alone), ("answer, two in flight", together)] {
                let row = Row::new(name, batch, seconds, work(batch), self.floors);
                self.rows.push(&row.answer(protocol, table_bytes));
            }
        }
        Ok(())
    }
}

fn ring_context(table: &ColumnTable) -> RingContext {
    RingContext::new(*table.params().ring())
}

/// Random polynomials `[..][limb][slot]` modulo Q_1.
fn residues(context: &RingContext, words: usize, seed: u64) -> Vec<u32> {
    let kept = context.kept();
    let mut residues = vec![0; words];
    Csprng::insecure_from_seed(seed).fill_u32(&mut residues);
    for (limb, words) in residues.chunks_mut(kept.degree()).enumerate() {
        let p = kept.moduli()[limb % kept.limbs()];
        words.iter_mut().for_each(|word| *word = p.reduce(u64::from(*word)));
    }
    residues
}
