//! The records to plan for: read from an input, or described by options.

use std::{collections::BTreeMap, env, error::Error, path::PathBuf};

use clap::Args;
use hush_build::{fetched, planner::Records};
use hush_engine::Progress;
use hush_ingest::{IngestOptions, Input, ProgressUnit};
use hush_protocol::{slot::MAX_VALUE_BYTES, wording::Slot};

use crate::commands::rows::{self, RowArgs};

/// The number of points of a described distribution of lengths.
const POINTS: usize = 200;
/// The number of records that are read between two updates of the progress bar.
const STEP: usize = 4096;

/// The records to plan for.
#[derive(Args)]
pub(super) struct RecordsArgs {
    /// Records, as `build` takes them: a file, several, a folder of files, or - for standard input.
    #[arg(required_unless_present = "records", conflicts_with_all = ["records", "size", "lengths"])]
    input: Vec<PathBuf>,
    /// Column of the key. With --records, it only says that the records have keys.
    #[arg(long, value_name = "COL", num_args = 0..=1, default_missing_value = "key")]
    key: Vec<String>,
    #[command(flatten)]
    rows: RowArgs,
    /// Number of records, to plan without an input.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    records: Option<u64>,
    /// Length of each value in bytes.
    #[arg(long, value_name = "BYTES", requires = "records", required_unless_present_any = ["input", "lengths"], value_parser = clap::value_parser!(u32).range(0..=MAX_VALUE_BYTES as i64))]
    size: Option<u32>,
    /// Median, 99th percentile and maximum of the lengths of values, in bytes.
    #[arg(
        long,
        value_name = "P50,P99,MAX",
        requires = "records",
        conflicts_with = "size",
        value_delimiter = ','
    )]
    lengths: Vec<usize>,
}

impl RecordsArgs {
    /// Reads the lengths of the records from `given`, from the named inputs, or from the description.
    ///
    /// # Errors
    /// An input cannot be read, or the description is contradictory.
    pub(super) fn read(
        self,
        given: Option<Input>,
        progress: &dyn Progress,
    ) -> Result<Records, Box<dyn Error>> {
        let by_key = !self.key.is_empty();
        let named = (!self.input.is_empty()).then(|| rows::input(&self.input));
        let Some(input) = given.or(named) else {
            let count = self.records.expect("clap sees to it") as usize;
            let lengths = match (&self.lengths[..], self.size) {
                (&[median, most, longest], _)
                    if median <= most && most <= longest && longest <= MAX_VALUE_BYTES =>
                {
                    described(count, [median, most, longest])
                }
                (&[], Some(size)) => vec![(size as usize, count)],
                _ => {
                    return Err(format!(
                        "{} is three lengths, ascending, at most {MAX_VALUE_BYTES}: 142,4000,15680",
                        Slot::Option("lengths")
                    )
                    .into());
                }
            };
            return Ok(Records::new(lengths, by_key)?);
        };
        let options =
            IngestOptions { key: self.key, max_value_size: MAX_VALUE_BYTES as u32, ..self.rows.options() };
        let input = fetched(&input, &options, &env::temp_dir(), progress)?;
        let mut source = hush_ingest::open(&input, &options)?;
        let read = source.progress();
        let unit = if matches!(read.unit, ProgressUnit::Bytes) { "bytes" } else { "rows" };
        progress.start("read", read.total.unwrap_or(0), unit);
        let mut lengths = BTreeMap::new();
        let mut last = 0;
        for number in 1usize.. {
            let record = source.next();
            if record.is_none() || number.is_multiple_of(STEP) {
                let now = source.progress().read;
                progress.advance(now.saturating_sub(last));
                last = now;
            }
            let Some(record) = record else { break };
            *lengths.entry(record?.value.len()).or_insert(0) += 1;
        }
        Ok(Records::new(lengths, by_key)?)
    }
}

/// Returns the lengths, each with its number of records, of a distribution with this median, 99th percentile and maximum. Between
/// these points the logarithm of the length is linear.
fn described(count: usize, [median, most, longest]: [usize; 3]) -> Vec<(usize, usize)> {
    let points = [(0.0, median / 2), (0.5, median), (0.99, most), (1.0, longest)];
    // The tail is finer: half of the points are for the last hundredth.
    let half = POINTS / 2;
    let shares = (1..=half).map(|point| 0.99 * point as f64 / half as f64);
    let shares: Vec<f64> =
        shares.chain((1..=half).map(|point| 0.99 + 0.01 * point as f64 / half as f64)).collect();
    let mut before = 0;
    let mut lengths = Vec::new();
    for share in shares {
        let place = points.windows(2).find(|pair| share <= pair[1].0).expect("up to 1");
        let [(from, low), (to, high)] = [place[0], place[1]];
        let low = (low.max(1) as f64).ln();
        let high = (high.max(1) as f64).ln();
        let length = (low + (high - low) * (share - from) / (to - from)).exp().round() as usize;
        let up_to = (share * count as f64).round() as usize;
        lengths.push((length, up_to.saturating_sub(before)));
        before = up_to.max(before);
    }
    // Even among few records, one has the greatest length.
    if let Some(last) = lengths.last_mut() {
        last.1 = last.1.max(1);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_lengths_have_these_quantiles() {
        let lengths = described(1_000_000, [142, 4000, 15_680]);
        let count = lengths.iter().map(|&(_, count)| count).sum::<usize>();
        let longest = lengths.last().unwrap().0;
        assert_eq!((count, longest), (1_000_000, 15_680));
        let up_to = |length| {
            lengths.iter().filter(|&&(own, _)| own <= length).map(|&(_, count)| count).sum::<usize>()
        };
        assert!((490_000..=510_000).contains(&up_to(142)), "{}", up_to(142));
        assert!((985_000..=995_000).contains(&up_to(4000)), "{}", up_to(4000));
        assert_eq!(described(1, [5, 6, 7]).iter().map(|&(_, count)| count).sum::<usize>(), 2);
    }
}
