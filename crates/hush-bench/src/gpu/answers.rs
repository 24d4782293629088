//! Whole answers from tables of random bytes: the pages of the protocols on real queries.

use std::{
    error::Error,
    num::NonZeroUsize,
    slice,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use hush_cuda::Cuda;
use hush_engine::{BATCHES_IN_FLIGHT, MemoryPlan, room_for_tables};
use hush_he::params::ParameterSet;
use hush_math::csprng::Csprng;
use hush_ops::{contract::RingOps, tiling::DbBytes};
use hush_protocol::{
    Protocol, ProtocolError, Target,
    any_page::{Slots, TableParams},
    client::Given,
    exchange,
    facts::DbForm,
    hosted::Hosted,
    page::Page,
    registry::Visitor,
    ring_keys::RingKeys,
    share::Share,
    table::TableShape,
    wire::Query,
};

use super::{Bench, PPIR_RECORD, RECORD_BYTES, SHORT_RECORD, Scale, files, room::batches_that_fit, work};
use crate::{Args, row::Row};

/// The protocols that are measured step by step, too, on a table of the same shape.
pub(super) const PROTOCOLS: [Protocol; 5] =
    [Protocol::Colpack, Protocol::ColpackS, Protocol::Simple, Protocol::Hybrid, Protocol::ExppackS];

/// The other protocols, each with the bytes of a record, on tables of the shapes that suit them.
const SUITED: [(Protocol, usize); 4] = [
    (Protocol::Onion, RECORD_BYTES),
    (Protocol::DoublePack, RECORD_BYTES),
    (Protocol::ExppackD, SHORT_RECORD),
    (Protocol::Double, SHORT_RECORD),
];

/// The tables of PPIR (its table 8): plaintexts that are transformed as they are folded, and plaintexts in evaluation form, which
/// are several times as long. These tables have other rows, and are measured only if their protocol is asked for.
const PPIR: [(Protocol, &str, DbForm); 3] = [
    (Protocol::Tfhe, "answer, on the fly", DbForm::Symbols),
    (Protocol::Tfhe, "answer, stored", DbForm::Evaluation),
    (Protocol::TfhePrivks, "answer, on the fly", DbForm::Symbols),
];

/// The parameter set and the columns that the caller chooses, in place of those of the scale.
#[derive(Clone, Copy, Default)]
pub(super) struct Chosen<'a> {
    preset: Option<&'a str>,
    columns: Option<usize>,
}

/// The fewest blocks of a table.
const LEAST_BLOCKS: usize = 4;

/// Measures all protocols, or the requested one, on tables of `args.size` bytes, if the engine's plan has room for them.
pub(super) fn run(bench: &mut Bench<'_>, args: &Args) -> Result<(), Box<dyn Error>> {
    // Tables of up to a GiB have half of the columns.
    let most = bench.scale.columns >> u32::from(args.size <= 1 << 30);
    let chosen = Chosen { preset: args.preset.as_deref(), columns: args.columns.map(NonZeroUsize::get) };
    let shape = table_shape(args.size, chosen.columns.unwrap_or(most));
    let same = PROTOCOLS.map(|protocol| (protocol, table_params(bench.scale, protocol, shape, chosen)));
    let answers = same.into_iter().chain(suited(bench.scale, args.size, chosen));
    let answers = answers.map(|(protocol, params)| (protocol, "answer", params));
    let answers =
        answers.filter(|(protocol, ..)| args.protocol.is_empty() || args.protocol.contains(protocol));
    let ppir = ppir(bench.scale, args.size, chosen).into_iter();
    let ppir = ppir.filter(|(protocol, ..)| args.protocol.contains(protocol));
    for (protocol, name, params) in answers.chain(ppir) {
        let row = Row::named(name).of(protocol).table(args.size);
        bench.attempt(row.clone(), |bench| bench.measure(row, params?, args.batch.as_deref()));
    }
    Ok(())
}

/// Returns a table of `shape`, under the chosen parameter set or that of the scale for its protocol.
pub(super) fn table_params(
    scale: &Scale,
    protocol: Protocol,
    shape: TableShape,
    chosen: Chosen<'_>,
) -> Result<TableParams, ProtocolError> {
    let set = chosen.preset.unwrap_or_else(|| set(scale, protocol, shape.slot_bytes));
    protocol.page().table(set, shape)
}

/// Returns the tables of the other protocols that are measured, of `size` bytes each.
pub(super) fn suited(
    scale: &Scale,
    size: usize,
    chosen: Chosen<'_>,
) -> [(Protocol, Result<TableParams, ProtocolError>); SUITED.len()] {
    SUITED.map(|(protocol, slot_bytes)| (protocol, suited_table(scale, protocol, size, slot_bytes, chosen)))
}

/// Returns the tables of PPIR, of `size` bytes each, with the names of their rows.
pub(super) fn ppir(
    scale: &Scale,
    size: usize,
    chosen: Chosen<'_>,
) -> [(Protocol, &'static str, Result<TableParams, ProtocolError>); PPIR.len()] {
    PPIR.map(|(protocol, name, form)| {
        let table = suited_table(scale, protocol, size, PPIR_RECORD, chosen);
        (protocol, name, table.and_then(|table| table.in_form(form)))
    })
}

/// Returns a table of `size` bytes, of the shape that suits its protocol, but for what is chosen.
fn suited_table(
    scale: &Scale,
    protocol: Protocol,
    size: usize,
    slot_bytes: usize,
    chosen: Chosen<'_>,
) -> Result<TableParams, ProtocolError> {
    let page = protocol.page();
    let preset = chosen.preset.unwrap_or_else(|| set(scale, protocol, slot_bytes));
    let slots = Slots { count: size / slot_bytes, slot_bytes, by_key: false };
    page.table(preset, page.shape(preset, slots, chosen.columns)?)
}

/// Returns the parameter set of the scale for a protocol, or else the protocol's own default.
fn set(scale: &Scale, protocol: Protocol, slot_bytes: usize) -> &'static str {
    let sets = [scale.column.name(), scale.pack.name(), scale.onion.name(), scale.tfhe.name()];
    let page = protocol.page();
    sets.into_iter().find(|set| page.has_set(set)).unwrap_or_else(|| page.default_set(slot_bytes))
}

/// Returns a table of about `size` bytes, with `columns` columns unless there are too few records for a few blocks of them.
pub(super) fn table_shape(size: usize, columns: usize) -> TableShape {
    let records = size / RECORD_BYTES;
    let columns = columns.min(records.div_ceil(LEAST_BLOCKS)).max(1);
    TableShape { columns, blocks: records.div_ceil(columns).max(1), slot_bytes: RECORD_BYTES }
}

impl Bench<'_> {
    /// Measures the answers of one table, as far as the device has room for it. Prints a row like `row` for each of `batches`, or
    /// of the batches of the scale.
    fn measure(
        &mut self,
        row: Row,
        params: TableParams,
        batches: Option<&[usize]>,
    ) -> Result<(), Box<dyn Error>> {
        let device = self.cuda.device();
        let free = room_for_tables(self.cuda);
        let plan = MemoryPlan::of_share::<Cuda>(&params, &Share::whole(), true, 1);
        let plan = plan.in_blocks(|bytes, buffers| device.bytes_taken(bytes, buffers));
        let bytes = params.facts().encoded_bytes;
        let protocol = params.facts().protocol;
        let row = row.table(bytes as usize);
        let batches = batches.unwrap_or(self.scale.batches);
        let sizes = match batches_that_fit(&plan, &device.info().name, free, bytes, batches) {
            Ok(sizes) => sizes,
            Err(why) => {
                self.report.skip(&row, why);
                return Ok(());
            }
        };
        protocol.visit(Answers { bench: self, params: &params, row, sizes })
    }
}

/// A visitor that measures the answers of any page.
struct Answers<'a, 'b> {
    bench: &'a mut Bench<'b>,
    params: &'a TableParams,
    row: Row,
    /// The batches that are measured.
    sizes: Vec<usize>,
}

impl Visitor for Answers<'_, '_> {
    type Output = Result<(), Box<dyn Error>>;

    /// Measures each batch alone, and with as many in flight as the server has; then on all GPUs together, if there are several.
    fn visit<P: Page>(self) -> Self::Output {
        let Self { bench, params, row, sizes } = self;
        let facts = params.facts();
        let table = P::described(P::Set::named(facts.preset)?, facts.shape, facts.word_bits)?;
        let table = P::in_form(table, params.database().form())?;
        let client_keys = facts.keys.map(|set| Arc::new(RingKeys::from_seed(&set, &[5; 32])));
        let client = P::client(&table, &Given { keys: client_keys.clone(), ..files::given(facts) })?;
        let mut rng = Csprng::from_os();
        let shape = facts.shape;
        let queries = (0..sizes.iter().copied().max().unwrap_or(0)).map(|index: usize| {
            let columns = vec![((index * 7919 % shape.columns) as u32, 1)];
            let target = Target { columns, block: index * 31 % shape.blocks };
            P::query(&table, &client, &target, &mut rng).0
        });
        let queries = queries.collect();
        let files = files::random(&params.files())?;
        let upload = client_keys.map(|keys| keys.upload().to_vec());
        let asked = BenchTable::<P> { table, files, queries, upload };
        let hosted =
            Hosted::<P, Cuda>::open(bench.cuda.clone(), asked.table.clone(), files::SEED, &asked.files)?;
        let keys = asked.keys(&hosted)?;
        let answer = |batch| hosted.answer(&asked.queries[..batch], &repeated(&keys, batch)).map(drop);
        bench.batches(params, &row, &sizes, 1, answer);
        let several = row.renamed(format!("{}, {BATCHES_IN_FLIGHT} in flight", row.name));
        bench.batches(params, &several, &sizes, BATCHES_IN_FLIGHT, answer);
        drop((keys, hosted));
        if bench.others.is_empty() {
            return Ok(());
        }
        let cudas: Vec<_> = [bench.cuda].into_iter().chain(bench.others).cloned().collect();
        let copies = row.renamed(format!("{}, {} copies", row.name, cudas.len()));
        bench.attempt(copies.clone(), |bench| asked.on_copies(bench, params, &copies, &sizes, &cudas));
        let shares = row.renamed(format!("{}, {} shares", row.name, cudas.len()));
        bench.attempt(shares.clone(), |bench| asked.on_shares(bench, params, &shares, &sizes, &cudas));
        Ok(())
    }
}

/// A table, and queries to it.
struct BenchTable<P: Page> {
    table: P::Table,
    files: Vec<(&'static str, DbBytes)>,
    queries: Vec<Query>,
    /// The keys of the client, encoded, if the protocol has keys.
    upload: Option<Vec<u8>>,
}

impl<P: Page> BenchTable<P> {
    fn keys(&self, hosted: &Hosted<P, Cuda>) -> Result<Option<<Cuda as RingOps>::Keys>, ProtocolError> {
        self.upload.as_deref().map(|upload| hosted.share().open_keys(upload)).transpose()
    }

    /// Measures batches on a copy of the table on each GPU, in turn, with two in flight on each.
    fn on_copies(
        &self,
        bench: &mut Bench<'_>,
        params: &TableParams,
        row: &Row,
        sizes: &[usize],
        cudas: &[Arc<Cuda>],
    ) -> Result<(), Box<dyn Error>> {
        let copies = exchange::on_all(cudas.to_vec(), |_, cuda| {
            let copy = Hosted::<P, Cuda>::open(cuda, self.table.clone(), files::SEED, &self.files)?;
            let keys = self.keys(&copy)?;
            Ok::<_, ProtocolError>((copy, keys))
        })?;
        let turn = AtomicUsize::new(0);
        bench.batches(params, row, sizes, BATCHES_IN_FLIGHT * copies.len(), |batch| {
            let (copy, keys) = &copies[turn.fetch_add(1, Ordering::Relaxed) % copies.len()];
            copy.answer(&self.queries[..batch], &repeated(keys, batch)).map(drop)
        });
        Ok(())
    }

    /// Measures batches on an equal share of the table on each GPU, alone and with two in flight.
    fn on_shares(
        &self,
        bench: &mut Bench<'_>,
        params: &TableParams,
        row: &Row,
        sizes: &[usize],
        cudas: &[Arc<Cuda>],
    ) -> Result<(), Box<dyn Error>> {
        let table = P::finished_by_query(&self.table).unwrap_or_else(|| self.table.clone());
        let opened = exchange::on_all(cudas.to_vec(), |index, cuda| {
            let share = Share { index, weights: vec![1; cudas.len()] };
            let files = slice::from_ref(&self.files);
            let hosted =
                Hosted::<P, Cuda>::open_share(cuda, vec![table.clone()], files::SEED, &share, files)?;
            let keys = self.keys(&hosted)?;
            Ok::<_, ProtocolError>((hosted, keys))
        })?;
        let (devices, keys): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let answer = |batch: usize| {
            let keys: Vec<_> = keys.iter().map(|keys| repeated(keys, batch)).collect();
            exchange::answer(&devices, &self.queries[..batch], &keys).map(drop)
        };
        bench.batches(params, row, sizes, 1, answer);
        let several = row.renamed(format!("{}, {BATCHES_IN_FLIGHT} in flight", row.name));
        bench.batches(params, &several, sizes, BATCHES_IN_FLIGHT, answer);
        Ok(())
    }
}

/// Returns the keys of every query of a batch, which are those of one client.
fn repeated<K>(keys: &Option<K>, batch: usize) -> Vec<&K> {
    keys.iter().cycle().take(batch * keys.iter().len()).collect()
}

impl Bench<'_> {
    /// Measures a batch of each of `sizes`, with `in_flight` of them at once.
    fn batches(
        &mut self,
        params: &TableParams,
        row: &Row,
        sizes: &[usize],
        in_flight: usize,
        answer: impl Fn(usize) -> Result<(), ProtocolError> + Sync,
    ) {
        let (facts, path) = (params.facts(), params.path());
        let up = facts.query.total() / size_of::<u32>();
        for &batch in sizes {
            let row = row.clone().batch(batch);
            self.attempt(row.clone(), |bench| {
                let seconds = seconds_a_batch(bench.scale.runs, in_flight, || answer(batch))?;
                let work = work::answers(&path, batch, up, facts.answer_bytes);
                bench.report.push(&bench.floors.row(row, &work, seconds).queries());
                Ok(())
            });
        }
    }
}

/// Returns the seconds from one batch to the next with `in_flight` of them in flight, after a batch that does not count.
fn seconds_a_batch(
    runs: usize,
    in_flight: usize,
    answer: impl Fn() -> Result<(), ProtocolError> + Sync,
) -> Result<f64, Box<dyn Error>> {
    answer()?;
    let answer = &answer;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..in_flight).map(|_| scope.spawn(move || (0..runs).try_for_each(|_| answer()))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("answers do not panic"))
    })?;
    Ok(start.elapsed().as_secs_f64() / (runs * in_flight) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_few_blocks() {
        for (size, columns, expected) in [
            (64 << 30, 1 << 16, (1 << 16, 256)),
            (1 << 30, 1 << 15, (1 << 15, 8)),
            (1 << 20, 1 << 15, (64, 4)),
            (1 << 20, 64, (64, 4)),
            (3 << 20, 100, (100, 8)),
            (0, 10, (1, 1)),
        ] {
            let shape = table_shape(size, columns);
            assert_eq!((shape.columns, shape.blocks), expected, "{size}");
            assert!(size <= RECORD_BYTES * shape.columns * shape.blocks);
        }
    }
}
