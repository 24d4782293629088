//! The ways to spread a table over several GPUs, with the times of each.

use hush_engine::SpreadChoice;
use hush_ops::path::Content;
use hush_protocol::{any_page::TableParams, share::shares};
use serde::Serialize;

use super::{Machine, Offer, Records};
use crate::builder::{BuildError, BuildOptions, Plan, Tiers};

/// A table on some GPUs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Spread {
    /// The way, by the name that `serve --spread` takes.
    pub spread: &'static str,
    /// The number of GPUs that have the table, or a copy or share of it.
    pub gpus: usize,
    /// The bytes of the table's files on the GPU with most.
    pub gpu_bytes: u64,
    /// The seconds of a single look-up.
    pub seconds: f64,
    /// The number of queries of a batch.
    pub batch: usize,
    /// The seconds of a batch.
    pub batch_seconds: f64,
    /// The most look-ups a second.
    pub queries_per_second: f64,
}

/// Returns the ways to spread the table of an offer over `gpus` GPUs like `machine`; none if its server computes nothing. A GPU
/// receives `link` bytes a second from another.
///
/// # Errors
/// [`BuildError`] if the records have no such table.
pub fn spreads(
    records: &Records,
    offer: &Offer,
    machine: &Machine,
    gpus: usize,
    link: f64,
) -> Result<Vec<Spread>, BuildError> {
    let options = BuildOptions {
        protocol: Some(offer.protocol),
        preset: Some(offer.preset.to_owned()),
        columns: Some(offer.geometry.columns),
        form: offer.form,
        tiers: Tiers::Ends(offer.tiers.clone()),
        ..BuildOptions::default()
    };
    let table = Plan::of_protocol(records.lengths(), records.by_key(), &options)?.params;
    if table.path().is_empty() {
        return Ok(Vec::new());
    }
    let shared = table.finished_by_query().unwrap_or_else(|| table.clone());
    let on_one = |batch| machine.spread_times(&table, link, |times| times.on_one(batch));
    let on_shares =
        |batch| machine.spread_times(&shared, link, |times| times.on_shares(&vec![1; gpus], batch));
    let spread =
        |choice: SpreadChoice, count: usize, at_once: usize, seconds: &dyn Fn(usize) -> f64| Spread {
            spread: choice.name(),
            gpus: count,
            gpu_bytes: gpu_bytes(&shared, count / at_once),
            seconds: seconds(1),
            batch: offer.batch,
            batch_seconds: seconds(offer.batch),
            queries_per_second: (at_once * offer.batch) as f64 / seconds(offer.batch),
        };
    Ok(vec![
        spread(SpreadChoice::One, 1, 1, &on_one),
        spread(SpreadChoice::Replicate, gpus, gpus, &on_one),
        spread(SpreadChoice::Shard, gpus, 1, &on_shares),
    ])
}

/// Returns the bytes of the files on the GPU that has most of a table in `parts` parts.
fn gpu_bytes(table: &TableParams, parts: usize) -> u64 {
    if parts == 1 {
        return table.held_bytes();
    }
    let held = |content: &Content| if content.is_held() { content.bytes() } else { 0 };
    let own = shares(&vec![1; parts], &table.scanned()).into_iter().map(|units| {
        let segments = table.segments().iter().zip(units);
        let files = segments.flat_map(|(segment, units)| {
            let part = if units.is_empty() { Vec::new() } else { segment.part(&units).files };
            part.into_iter().chain(segment.head(&[0..segment.facts().units]).files)
        });
        files.map(|file| held(&file.content)).sum()
    });
    own.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use hush_engine::{Silent, SpreadTimes};
    use hush_protocol::Protocol;

    use super::*;
    use crate::planner::{Wishes, offers};

    /// Copies double what a GPU answers, and leave the time of a look-up; shares shorten it, in half of the memory.
    #[test]
    fn copies_are_for_many_look_ups_and_shares_for_short_ones() {
        let records = Records::new([(1024, 1 << 22)], false).unwrap();
        let machine = Machine::gpu_floors();
        for protocol in [Protocol::Colpack, Protocol::Hybrid, Protocol::Onion, Protocol::Simple] {
            let options = BuildOptions { protocol: Some(protocol), ..BuildOptions::default() };
            let mut wishes = Wishes::default();
            wishes.budgets.linkable = true;
            let offer = offers(&records, &options, &wishes, &machine, &Silent).unwrap().remove(0);
            let all = spreads(&records, &offer, &machine, 2, SpreadTimes::PCIE).unwrap();
            let [one, copies, shares] = &all[..] else { panic!("three ways") };
            assert_eq!([one.gpus, copies.gpus, shares.gpus], [1, 2, 2]);
            assert_eq!((copies.seconds, copies.gpu_bytes), (one.seconds, one.gpu_bytes), "{protocol}");
            assert!((copies.queries_per_second / one.queries_per_second - 2.0).abs() < 1e-9);
            assert!(shares.seconds < one.seconds, "{protocol}: {all:?}");
            assert!(shares.gpu_bytes < one.gpu_bytes * 3 / 4, "{protocol}: {all:?}");
        }
    }
}
