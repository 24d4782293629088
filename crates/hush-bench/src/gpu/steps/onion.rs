//! The steps over rings, where `onion` has other parameters than packing.

use std::error::Error;

use hush_ops::contract::EntryOrder;
use hush_protocol::{
    Protocol,
    any_page::{Slots, shape},
    onion::Onion,
    ring_table::RingTable,
    table::TableShape,
};

use super::ring::RingBench;
use crate::{
    gpu::{Bench, RECORD_BYTES},
    row::Row,
};

/// A table of its own: the database in evaluation form is several times as long as its records, and no step here reads it.
pub(super) fn run(bench: &mut Bench<'_>, _: TableShape) -> Result<(), Box<dyn Error>> {
    let (params, records) = (bench.scale.onion, bench.scale.onion_bytes / RECORD_BYTES);
    let slots = Slots { count: records, slot_bytes: RECORD_BYTES, by_key: false };
    let table = RingTable::new(params, shape::<Onion>(&params, slots, None))?;
    let onion = RingBench::new(bench, Protocol::Onion, &params)?;
    let what = |name: &str| Row::named(name).of(Protocol::Onion);
    bench.attempt(what("expand"), |bench| onion.expand(bench, table.shape().columns, table.folds()));
    bench.attempt(what("rgsw_fold"), |bench| {
        onion.rgsw_fold(bench, table.entries(), table.planes(), EntryOrder::PlaneMajor)
    });
    bench.attempt(what("an answer"), |bench| onion.respond(bench, table.planes().next_multiple_of(2)));
    Ok(())
}
