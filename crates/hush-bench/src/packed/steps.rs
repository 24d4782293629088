//! The steps of packed answers, each by itself.

use std::{error::Error, sync::Arc, time::Instant};

use hush_cpu::{Cpu, probe};
use hush_he::{algorithms::open_ring_query, params::RingContext};
use hush_math::csprng::Csprng;
use hush_ops::contract::{EntryOrder, Expanded, LweBatch, LweOps, LweQueries, PackOps, RingOps, RlweBatch};
use hush_protocol::{pack_table::PackTable, table::Protocol};

use super::{Bench, Served};
use crate::{
    lookups::Lookups,
    row::{Row, Table},
    timed,
};

/// Batches of the steps that read the database or the hint once for a batch.
const BATCHES: [usize; 4] = [1, 4, 8, 32];

/// Seconds of the steps.
pub(super) struct Steps {
    passes: Vec<Pass>,
    /// Of a query's expansion into selectors alone, and with bits of the entry.
    expand: [f64; 2],
    /// Of a query's folds in `hybrid`.
    rgsw_fold: f64,
    /// Of a query's second fold and packing in `double-pack`.
    second: f64,
    /// Of the response of one ciphertext, and of a pair.
    respond: [f64; 2],
}

/// Seconds of the passes over the database and over the hint for a batch.
struct Pass {
    batch: usize,
    lwe_fold: f64,
    pack: f64,
}

impl Steps {
    /// Measures all of them, with a row each.
    pub(super) fn measure(
        bench: &Bench,
        [hybrid, exppack_s, double_pack]: &[Served; 3],
        table: &mut Table,
    ) -> Result<Self, Box<dyn Error>> {
        let mut timer = Timer::new(bench, table)?;
        let (with_bits, expanded) = timer.expand(hybrid)?;
        let (plain, _) = timer.expand(exppack_s)?;
        let (passes, packed) = timer.passes(&hybrid.table, &expanded.selectors)?;
        let rgsw_fold = timer.rgsw_fold(&hybrid.table, &packed, &expanded)?;
        let respond = timer.respond(&packed)?;
        let second = timer.second(&double_pack.table, &packed, &expanded.selectors)?;
        Ok(Self { passes, expand: [plain, with_bits], rgsw_fold, second, respond })
    }

    /// The sum of the steps of an answer of `table`; `None` if a batch was too large to be measured.
    pub(super) fn sum(&self, table: &PackTable, batch: usize) -> Option<f64> {
        let pass = self.passes.iter().find(|pass| pass.batch == batch)?;
        let plaintexts = table.answer_plaintexts();
        let [single, pair] = self.respond;
        let respond = (plaintexts / 2) as f64 * pair + (plaintexts % 2) as f64 * single;
        let own = match table.protocol() {
            Protocol::Hybrid => self.rgsw_fold,
            Protocol::DoublePack => self.second,
            _ => 0.0,
        };
        let expand = self.expand[usize::from(table.folds() > 0)];
        Some(pass.lwe_fold + pass.pack + batch as f64 * (expand + own + respond))
    }
}

/// The part of a build that brings one tile of the hint into evaluation form.
pub(super) fn lift(cpu: &Cpu, packed: &PackTable, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let ring = cpu.open_ring(Arc::new(RingContext::new(*packed.params().ring())))?;
    let (shape, n) = (packed.first_shape(), packed.params().lwe().n());
    let columns = packed.hint_tiling().tile_columns(0);
    let hint = random_words(shape.rows_of(columns.clone()).len() * n).into();
    let start = Instant::now();
    let lifted = cpu.lift_hint(&ring, &hint, n, &shape, columns.clone())?;
    let seconds = start.elapsed().as_secs_f64();
    let name = format!("of hint: lift, {} of {} columns", columns.len(), shape.plaintexts());
    let row = Row::new(name, cpu.threads(), 1, lifted.bytes().len() as u64, seconds);
    table.push(&row.protocol(packed.protocol()));
    Ok(())
}

/// Measures steps on a backend.
struct Timer<'a> {
    bench: &'a Bench<'a>,
    table: &'a mut Table,
    /// Seconds of a forward transform of one polynomial modulo one prime.
    forward: f64,
}

impl<'a> Timer<'a> {
    fn new(bench: &'a Bench<'a>, table: &'a mut Table) -> Result<Self, Box<dyn Error>> {
        let (cpu, ring) = (bench.cpu, bench.context.params());
        let rates = probe::ntt_rates(cpu.level(), ring.kept_primes()[0], ring.degree())?;
        table.note(&format!(
            "{} threads, {}: a forward transform takes {:.2} us",
            cpu.threads(),
            cpu.level(),
            rates.forward_ns / 1e3
        ));
        Ok(Self { bench, table, forward: rates.forward_ns / 1e9 })
    }

    /// The time of a step as a row, not yet printed, and its result. `bytes` are what it reads or writes.
    fn time<T, E>(
        &self,
        protocol: Protocol,
        name: &str,
        batch: usize,
        bytes: usize,
        work: impl FnMut() -> Result<T, E>,
    ) -> Result<(Row, T), E> {
        let (seconds, result) = timed(work)?;
        let row = Row::new(name, self.bench.cpu.threads(), batch, bytes as u64, seconds);
        Ok((row.protocol(protocol), result))
    }

    /// A query's expansion.
    fn expand(&mut self, served: &Served) -> Result<(f64, Expanded), Box<dyn Error>> {
        let (bench, packed) = (self.bench, &served.table);
        let query = Lookups::by_index(&served.client, 1)?.queries.remove(0);
        let query = [open_ring_query(&bench.context, packed.leaves(), &query.packed)?];
        let (n, folds) = (packed.params().lwe().n(), packed.folds());
        let bytes = n * 2 * size_of::<u32>() * packed.hint_tiling().poly_words();
        let work = || bench.cpu.expand(&bench.ring, &[&bench.keys], &query, n, folds);
        let (row, mut expanded) = self.time(packed.protocol(), "expand", 1, bytes, work)?;
        self.table.push(&row.clone().transforms(self.forward));
        let ring = bench.context.params();
        // Level j from the top has a node for every 2^j leaves, and each node but a leaf is one Subs.
        let subs: usize = (1..=ring.levels().len()).map(|level| packed.leaves().div_ceil(1 << level)).sum();
        // A key switch transforms every digit and, once, the way back.
        let counted: usize = ring.full_ring().moduli().len() * (1 + ring.levels()[0].digits);
        self.table.note(&format!(
            "{}: {} leaves, {} levels: {subs} Subs, {:.1} transforms each ({counted} are counted)",
            packed.protocol(),
            packed.leaves(),
            ring.levels().len(),
            row.seconds / self.forward / subs as f64
        ));
        Ok((row.seconds, expanded.remove(0)))
    }

    /// The pass over the database and the one over the hint; returns what one query packs to.
    fn passes(
        &mut self,
        packed: &PackTable,
        selectors: &RlweBatch,
    ) -> Result<(Vec<Pass>, RlweBatch), Box<dyn Error>> {
        let bench = self.bench;
        let (shape, threads) = (packed.first_shape(), bench.cpu.threads());
        let (db, hint) = (bench.db.bytes(), bench.hint.bytes());
        let (mut passes, mut alone) = (Vec::<Pass>::new(), None);
        for batch in BATCHES {
            if !bench.fits(batch) {
                self.table.note(&format!("B = {batch} is skipped: memory is short"));
                break;
            }
            let queries = random_queries(packed.shape().columns, batch);
            let work = || bench.cpu.lwe_fold(&bench.db, &queries);
            let (fold, folded) = self.time(packed.protocol(), "lwe_fold", batch, db.len(), work)?;
            // Every query has its own, as in an answer.
            let copies = vec![selectors.clone(); batch];
            let copies: Vec<&RlweBatch> = copies.iter().collect();
            let work =
                || bench.cpu.pack(&bench.ring, &bench.hint, &folded, &shape, 0..shape.plaintexts(), &copies);
            let (pack, mut results) = self.time(packed.protocol(), "pack", batch, hint.len(), work)?;
            let pass = Pass { batch, lwe_fold: fold.seconds, pack: pack.seconds };
            let first = passes.first().unwrap_or(&pass);
            let stream = probe::stream_read_gbps(db, threads);
            self.table.push(&fold.stream(stream).query_share(first.lwe_fold));
            let stream = probe::stream_read_gbps(hint, threads);
            self.table.push(&pack.stream(stream).query_share(first.pack));
            passes.push(pass);
            alone = alone.or_else(|| results.pop());
        }
        Ok((passes, alone.ok_or("there is no memory for a single query")?))
    }

    /// The folds of a query's entries.
    fn rgsw_fold(
        &mut self,
        table: &PackTable,
        packed: &RlweBatch,
        expanded: &Expanded,
    ) -> Result<f64, Box<dyn Error>> {
        let (bench, planes) = (self.bench, table.first_shape().planes());
        let (order, bits) = (EntryOrder::EntryMajor, &expanded.bits[..]);
        let work = || bench.cpu.rgsw_fold(&bench.ring, &[packed], planes, order, &[bits]);
        let (row, _) = self.time(table.protocol(), "rgsw_fold", 1, bytes_of(packed), work)?;
        self.table.push(&row.clone().transforms(self.forward));
        Ok(row.seconds)
    }

    /// The response of one ciphertext, and of a pair.
    fn respond(&mut self, packed: &RlweBatch) -> Result<[f64; 2], Box<dyn Error>> {
        let (bench, bits) = (self.bench, self.bench.context.params().response_bits());
        let (ciphertext_words, one) = (packed.ciphertext_words, packed.ciphertext(0));
        let bytes = size_of_val(one);
        let work = || bench.cpu.mod_switch(&bench.ring, &[&packed.words], 0..2, &[bits.a, bits.b]);
        let (single, _) = self.time(Protocol::Hybrid, "mod_switch", 1, bytes, work)?;
        self.table.push(&single.clone().transforms(self.forward));
        let pair = RlweBatch { ciphertext_words, words: [one, one].concat().into() };
        let work = || {
            let polys = bench.cpu.pack_pairs(&bench.ring, &[&bench.keys], &[&pair])?;
            bench.cpu.mod_switch(&bench.ring, &[&polys[0]], 0..3, &[bits.a, bits.b, bits.b])
        };
        let (pair, _) = self.time(Protocol::ExppackS, "pack_pairs and mod_switch", 1, 2 * bytes, work)?;
        self.table.push(&pair.clone().transforms(self.forward));
        Ok([single.seconds, pair.seconds])
    }

    /// What `double-pack` makes of a query's packed ciphertexts.
    fn second(
        &mut self,
        table: &PackTable,
        packed: &RlweBatch,
        selectors: &RlweBatch,
    ) -> Result<f64, Box<dyn Error>> {
        let (bench, protocol) = (self.bench, table.protocol());
        let (cpu, ring, shape) = (bench.cpu, &bench.ring, table.second_shape());
        let (n, columns, planes) =
            (table.params().lwe().n(), shape.plaintexts(), table.first_shape().planes());

        let work = || cpu.reinterpret_rlwe(ring, packed, planes);
        let (reinterpret, db) = self.time(protocol, "reinterpret_rlwe", 1, bytes_of(packed), work)?;
        let bytes = db.bytes().len();
        let queries = random_queries(table.second_words(), 1);
        let (fold, folded) =
            self.time(protocol, "second lwe_fold", 1, bytes, || cpu.lwe_fold(&db, &queries))?;
        let matrix = table.second_matrix();
        let work = || cpu.lwe_hint(&db, &matrix, 0..shape.rows());
        let (hint, words) = self.time(protocol, "second lwe_hint", 1, bytes, work)?;
        let work = || cpu.lift_hint(ring, &words, n, &shape, 0..columns);
        let (lift, lifted) = self.time(protocol, "second lift_hint", 1, size_of_val(&words[..]), work)?;
        let folded = LweBatch { rows: shape.rows(), words: folded.words };
        let work = || cpu.pack(ring, &lifted, &folded, &shape, 0..columns, &[selectors]);
        let (pack, _) = self.time(protocol, "second pack", 1, lifted.bytes().len(), work)?;

        let seconds = [&reinterpret, &fold, &hint, &lift, &pack].map(|row| row.seconds).iter().sum();
        for row in [reinterpret.transforms(self.forward), fold, hint, lift.transforms(self.forward), pack] {
            self.table.push(&row);
        }
        Ok(seconds)
    }
}

fn random_queries(cols: usize, batch: usize) -> LweQueries {
    LweQueries { cols, words: random_words(batch * cols) }
}

fn random_words(count: usize) -> Vec<u32> {
    let mut words = vec![0; count];
    Csprng::insecure_from_seed(1).fill_u32(&mut words);
    words
}

fn bytes_of(batch: &RlweBatch) -> usize {
    size_of_val(&batch.words[..])
}
