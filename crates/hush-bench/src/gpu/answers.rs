//! Whole answers from tables of random bytes: the pages of the protocols on real queries.

use std::{error::Error, sync::Arc, time::Instant};

use hush_cuda::Cuda;
use hush_engine::{BATCHES_IN_FLIGHT, MemoryPlan, room_for_tables};
use hush_he::params::ParameterSet;
use hush_math::csprng::Csprng;
use hush_protocol::{
    Protocol, ProtocolError, Target,
    any_page::{Slots, TableParams},
    client::Given,
    facts::DbForm,
    hosted::Hosted,
    page::Page,
    registry::Visitor,
    ring_keys::RingKeys,
    share::Share,
    table::TableShape,
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
const PPIR: [(Protocol, &str, DbForm); 2] = [
    (Protocol::Tfhe, "answer, on the fly", DbForm::Symbols),
    (Protocol::Tfhe, "answer, stored", DbForm::Evaluation),
];

/// The fewest blocks of a table.
const LEAST_BLOCKS: usize = 4;

/// Measures all protocols, or the requested one, on tables of `args.size` bytes, if the engine's plan has room for them.
pub(super) fn run(bench: &mut Bench<'_>, args: &Args) -> Result<(), Box<dyn Error>> {
    // Tables of up to a GiB have half of the columns.
    let most = bench.scale.columns >> u32::from(args.size <= 1 << 30);
    let columns = args.columns.map_or(most, |columns| columns.get());
    let shape = table_shape(args.size, columns);
    let same = PROTOCOLS.map(|protocol| (protocol, table_params(bench.scale, protocol, shape)));
    let answers = same.into_iter().chain(suited(bench.scale, args.size));
    let answers = answers.map(|(protocol, params)| (protocol, "answer", params));
    let answers =
        answers.filter(|(protocol, ..)| args.protocol.is_empty() || args.protocol.contains(protocol));
    let ppir = ppir(bench.scale, args.size).into_iter();
    let ppir = ppir.filter(|(protocol, ..)| args.protocol.contains(protocol));
    for (protocol, name, params) in answers.chain(ppir) {
        let row = Row::named(name).of(protocol).table(args.size);
        bench.attempt(row.clone(), |bench| bench.measure(row, params?, args.batch.as_deref()));
    }
    Ok(())
}

/// Returns a table of `shape`, under the parameter set of the scale for its protocol.
pub(super) fn table_params(
    scale: &Scale,
    protocol: Protocol,
    shape: TableShape,
) -> Result<TableParams, ProtocolError> {
    protocol.page().table(set(scale, protocol, shape.slot_bytes), shape)
}

/// Returns the tables of the other protocols that are measured, of `size` bytes each.
pub(super) fn suited(
    scale: &Scale,
    size: usize,
) -> [(Protocol, Result<TableParams, ProtocolError>); SUITED.len()] {
    SUITED.map(|(protocol, slot_bytes)| (protocol, suited_table(scale, protocol, size, slot_bytes)))
}

/// Returns the tables of PPIR, of `size` bytes each, with the names of their rows.
pub(super) fn ppir(
    scale: &Scale,
    size: usize,
) -> [(Protocol, &'static str, Result<TableParams, ProtocolError>); PPIR.len()] {
    PPIR.map(|(protocol, name, form)| {
        let table = suited_table(scale, protocol, size, PPIR_RECORD);
        (protocol, name, table.and_then(|table| table.in_form(form)))
    })
}

/// Returns a table of `size` bytes, of the shape that suits its protocol.
fn suited_table(
    scale: &Scale,
    protocol: Protocol,
    size: usize,
    slot_bytes: usize,
) -> Result<TableParams, ProtocolError> {
    let page = protocol.page();
    let preset = set(scale, protocol, slot_bytes);
    let slots = Slots { count: size / slot_bytes, slot_bytes, by_key: false };
    page.table(preset, page.shape(preset, slots, None)?)
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

    /// Measures each batch alone, and with as many in flight as the server has.
    fn visit<P: Page>(self) -> Self::Output {
        let Self { bench, params, row, sizes } = self;
        let facts = params.facts();
        let path = params.path();
        let table = P::described(P::Set::named(facts.preset)?, facts.shape, facts.word_bits)?;
        let table = P::in_form(table, params.database().form())?;
        let files = files::random(&params.files())?;
        let hosted = Hosted::<P, Cuda>::open(bench.cuda.clone(), table.clone(), files::SEED, &files)?;
        let client_keys = facts.keys.map(|set| Arc::new(RingKeys::from_seed(&set, &[5; 32])));
        let client = P::client(&table, &Given { keys: client_keys.clone(), ..files::given(facts) })?;
        let keys = client_keys.map(|keys| hosted.share().open_keys(keys.upload())).transpose()?;
        let mut rng = Csprng::from_os();
        let shape = facts.shape;
        let queries: Vec<_> = (0..sizes.iter().copied().max().unwrap_or(0))
            .map(|index: usize| {
                let columns = vec![((index * 7919 % shape.columns) as u32, 1)];
                let target = Target { columns, block: index * 31 % shape.blocks };
                P::query(&table, &client, &target, &mut rng).0
            })
            .collect();
        let up = facts.query.total() / size_of::<u32>();
        for batch in sizes {
            let keys: Vec<_> = keys.iter().cycle().take(batch * keys.iter().len()).collect();
            for in_flight in [1, BATCHES_IN_FLIGHT] {
                let several = format!("{}, {in_flight} in flight", row.name);
                let row = if in_flight > 1 { row.renamed(several) } else { row.clone() }.batch(batch);
                bench.attempt(row.clone(), |bench| {
                    let seconds = seconds_a_batch(bench.scale.runs, in_flight, || {
                        hosted.answer(&queries[..batch], &keys).map(drop)
                    })?;
                    let work = work::answers(&path, batch, up, facts.answer_bytes);
                    bench.report.push(&bench.floors.row(row, &work, seconds).queries());
                    Ok(())
                });
            }
        }
        Ok(())
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
