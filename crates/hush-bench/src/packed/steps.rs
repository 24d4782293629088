//! The steps of packed answers, each by itself.

use std::{error::Error, sync::Arc};

use hush_cpu::{Cpu, probe};
use hush_he::{algorithms::open_ring_query, params::RingContext};
use hush_ops::contract::{EntryOrder, Expanded, LweBatch, LweOps, PackOps, RingOps, RlweBatch};
use hush_protocol::{pack_table::PackTable, table::Protocol};

use super::{Files, RECORD_BYTES, Served};
use crate::{
    lookups::Lookups,
    row::Row,
    scan::{random_queries, random_words},
    table::Table,
    timing::timed,
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
        files: &Files,
        [hybrid, exppack_s, double_pack]: &[Served; 3],
        table: &mut Table,
    ) -> Result<Self, Box<dyn Error>> {
        let mut timer = Timer::new(files, table)?;
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
    let (seconds, lifted) = timed(|| cpu.lift_hint(&ring, &hint, n, &shape, columns.clone()))?;
    let row = Row::named(format!("of hint: lift, {} of {} columns", columns.len(), shape.plaintexts()));
    table.push(&row.of(packed.protocol()).pass(cpu.threads(), lifted.bytes().len(), seconds));
    Ok(())
}

/// Measures steps on a backend.
struct Timer<'a> {
    files: &'a Files<'a>,
    table: &'a mut Table,
    /// Seconds of a forward transform of one polynomial modulo one prime.
    forward: f64,
}

impl<'a> Timer<'a> {
    fn new(files: &'a Files<'a>, table: &'a mut Table) -> Result<Self, Box<dyn Error>> {
        let (cpu, ring) = (files.cpu, files.context.params());
        let rates = probe::ntt_rates(cpu.level(), ring.kept_primes()[0], ring.degree())?;
        table.note(&format!(
            "{} threads, {}: a forward transform takes {:.2} us",
            cpu.threads(),
            cpu.level(),
            rates.forward_ns / 1e3
        ));
        Ok(Self { files, table, forward: rates.forward_ns / 1e9 })
    }

    /// The row of a step. `bytes` are what it reads or writes.
    fn row(&self, protocol: Protocol, name: &str, batch: usize, bytes: usize, seconds: f64) -> Row {
        Row::named(name).of(protocol).batch(batch).pass(self.files.cpu.threads(), bytes, seconds)
    }

    /// The seconds of a step of one query that is made of transforms, and its result.
    fn transforms<T, E>(
        &mut self,
        protocol: Protocol,
        name: &str,
        bytes: usize,
        work: impl FnMut() -> Result<T, E>,
    ) -> Result<(f64, T), E> {
        let (seconds, result) = timed(work)?;
        self.table.push(&self.row(protocol, name, 1, bytes, seconds).transforms(self.forward));
        Ok((seconds, result))
    }

    /// A query's expansion.
    fn expand(&mut self, served: &Served) -> Result<(f64, Expanded), Box<dyn Error>> {
        let (files, packed, protocol) = (self.files, &served.table, served.table.protocol());
        let query = Lookups::by_index(&served.client, RECORD_BYTES, 1)?.queries.remove(0);
        let query = [open_ring_query(&files.context, packed.leaves(), &query.packed)?];
        let (n, folds) = (packed.params().lwe().n(), packed.folds());
        let bytes = n * 2 * size_of::<u32>() * packed.hint_tiling().poly_words();
        let work = || files.cpu.expand(&files.ring, &[&files.keys], &query, n, folds);
        let (seconds, mut expanded) = self.transforms(protocol, "expand", bytes, work)?;
        let ring = files.context.params();
        // Level j from the top has a node for every 2^j leaves, and each node but a leaf is one Subs.
        let subs: usize = (1..=ring.levels().len()).map(|level| packed.leaves().div_ceil(1 << level)).sum();
        // A key switch transforms every digit and, once, the way back.
        let counted: usize = ring.full_ring().moduli().len() * (1 + ring.levels()[0].digits);
        self.table.note(&format!(
            "{protocol}: {} leaves, {} levels: {subs} Subs, {:.1} transforms each ({counted} are counted)",
            packed.leaves(),
            ring.levels().len(),
            seconds / self.forward / subs as f64
        ));
        Ok((seconds, expanded.remove(0)))
    }

    /// The pass over the database and the one over the hint; returns what one query packs to.
    fn passes(
        &mut self,
        packed: &PackTable,
        selectors: &RlweBatch,
    ) -> Result<(Vec<Pass>, RlweBatch), Box<dyn Error>> {
        let (files, protocol, shape) = (self.files, packed.protocol(), packed.first_shape());
        let (cpu, db, hint) = (files.cpu, files.db.bytes(), files.hint.bytes());
        let (mut passes, mut alone) = (Vec::<Pass>::new(), None);
        for batch in BATCHES {
            if !files.fits(batch) {
                self.table.skip(&Row::named("pack").of(protocol).batch(batch), "memory is short");
                break;
            }
            let queries = random_queries(packed.shape().columns, batch);
            let (lwe_fold, folded) = timed(|| cpu.lwe_fold(&files.db, &queries))?;
            // Every query has its own, as in an answer.
            let copies = vec![selectors.clone(); batch];
            let copies: Vec<&RlweBatch> = copies.iter().collect();
            let plaintexts = 0..shape.plaintexts();
            let work = || cpu.pack(&files.ring, &files.hint, &folded, &shape, plaintexts.clone(), &copies);
            let (pack, mut results) = timed(work)?;
            let pass = Pass { batch, lwe_fold, pack };
            let first = passes.first().unwrap_or(&pass);
            for (name, bytes, seconds, alone) in
                [("lwe_fold", db, lwe_fold, first.lwe_fold), ("pack", hint, pack, first.pack)]
            {
                let stream = probe::stream_read_gbps(bytes, cpu.threads());
                let row = self.row(protocol, name, batch, bytes.len(), seconds).stream(stream);
                self.table.push(&row.query_share(alone));
            }
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
        let (files, planes) = (self.files, table.first_shape().planes());
        let (order, bits) = (EntryOrder::EntryMajor, &expanded.bits[..]);
        let work = || files.cpu.rgsw_fold(&files.ring, &[packed], planes, order, &[bits]);
        Ok(self.transforms(table.protocol(), "rgsw_fold", bytes_of(packed), work)?.0)
    }

    /// The response of one ciphertext, and of a pair.
    fn respond(&mut self, packed: &RlweBatch) -> Result<[f64; 2], Box<dyn Error>> {
        let (files, bits) = (self.files, self.files.context.params().response_bits());
        let (ciphertext_words, one) = (packed.ciphertext_words, packed.ciphertext(0));
        let bytes = size_of_val(one);
        let work = || files.cpu.mod_switch(&files.ring, &[&packed.words], 0..2, &[bits.a, bits.b]);
        let (single, _) = self.transforms(Protocol::Hybrid, "mod_switch", bytes, work)?;
        let pair = RlweBatch { ciphertext_words, words: [one, one].concat().into() };
        let work = || {
            let polys = files.cpu.pack_pairs(&files.ring, &[&files.keys], &[&pair])?;
            files.cpu.mod_switch(&files.ring, &[&polys[0]], 0..3, &[bits.a, bits.b, bits.b])
        };
        let (pair, _) = self.transforms(Protocol::ExppackS, "pack_pairs and mod_switch", 2 * bytes, work)?;
        Ok([single, pair])
    }

    /// What `double-pack` makes of a query's packed ciphertexts.
    fn second(
        &mut self,
        table: &PackTable,
        packed: &RlweBatch,
        selectors: &RlweBatch,
    ) -> Result<f64, Box<dyn Error>> {
        let (cpu, ring, protocol) = (self.files.cpu, &self.files.ring, table.protocol());
        let (shape, planes) = (table.second_shape(), table.first_shape().planes());
        let (n, columns) = (table.params().lwe().n(), shape.plaintexts());

        let work = || cpu.reinterpret_rlwe(ring, packed, planes);
        let (reinterpret, db) = self.transforms(protocol, "reinterpret_rlwe", bytes_of(packed), work)?;
        let queries = random_queries(table.second_words(), 1);
        let (fold, folded) = timed(|| cpu.lwe_fold(&db, &queries))?;
        let matrix = table.second_matrix();
        let (hint, words) = timed(|| cpu.lwe_hint(&db, &matrix, 0..shape.rows()))?;
        let bytes = db.bytes().len();
        self.table.push(&self.row(protocol, "second lwe_fold", 1, bytes, fold));
        self.table.push(&self.row(protocol, "second lwe_hint", 1, bytes, hint));
        let work = || cpu.lift_hint(ring, &words, n, &shape, 0..columns);
        let (lift, lifted) = self.transforms(protocol, "second lift_hint", size_of_val(&words[..]), work)?;
        let folded = LweBatch { rows: shape.rows(), words: folded.words };
        let (pack, _) = timed(|| cpu.pack(ring, &lifted, &folded, &shape, 0..columns, &[selectors]))?;
        self.table.push(&self.row(protocol, "second pack", 1, lifted.bytes().len(), pack));
        Ok(reinterpret + fold + hint + lift + pack)
    }
}

fn bytes_of(batch: &RlweBatch) -> usize {
    size_of_val(&batch.words[..])
}
