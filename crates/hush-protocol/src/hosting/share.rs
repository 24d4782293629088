//! A share of a table: the units that one device has.

use std::ops::Range;

use hush_ops::path::Content;

use crate::facts::FileSpec;

/// A share of a table. There is a share for each weight, and each has its weight's fraction of the scanned bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of the share, from 0.
    pub index: usize,
    /// The weights of all shares. Their sum is not 0.
    pub weights: Vec<u32>,
}

/// The size of a segment in a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSize {
    /// The number of units.
    pub units: usize,
    /// The scanned bytes of all units.
    pub bytes: u64,
}

impl SegmentSize {
    /// Creates the size of a segment with `units` units and with `files`. Only the bytes of scanned files count.
    pub fn new(units: usize, files: Vec<FileSpec>) -> Self {
        let scanned = files.into_iter().map(|file| file.content).filter(Content::is_scanned);
        Self { units, bytes: scanned.map(|content| content.bytes()).sum() }
    }
}

impl Share {
    /// Returns the share that is the whole table.
    pub fn whole() -> Self {
        Self { index: 0, weights: vec![1] }
    }

    /// Returns a share without units. Another share has all units.
    pub fn nothing() -> Self {
        Self { index: 0, weights: vec![0, 1] }
    }

    /// Returns the share's units in each segment.
    ///
    /// # Panics
    /// If `index` is out of range, or all weights are 0.
    pub fn of(&self, segments: &[SegmentSize]) -> Vec<Range<usize>> {
        shares(&self.weights, segments).swap_remove(self.index)
    }
}

/// Returns the units in each segment of each share: `[share][segment]`. The segments form one line of bytes, which is cut
/// in proportion to the weights; a unit belongs to the share that contains its middle. So a share has units of few
/// segments, and short segments do not all go to one share.
///
/// # Panics
/// If all weights are 0.
pub fn shares(weights: &[u32], segments: &[SegmentSize]) -> Vec<Vec<Range<usize>>> {
    // A segment without bytes needs a position in the line too.
    let length = |segment: &SegmentSize| u128::from(segment.bytes.max(1));
    let all: u128 = segments.iter().map(length).sum();
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    // For each segment, the first unit with `before + bytes (2 unit + 1) / (2 units)` at or after the cut.
    let firsts = |cut: u128| {
        let mut before = 0;
        segments
            .iter()
            .map(|segment: &SegmentSize| {
                let units = segment.units as u128;
                let bytes = length(segment);
                let twice = (2 * units * cut.saturating_sub(before)).saturating_sub(bytes);
                before += bytes;
                twice.div_ceil(2 * bytes).min(units) as usize
            })
            .collect::<Vec<_>>()
    };
    let mut up_to = 0;
    let mut starts = firsts(0);
    weights
        .iter()
        .map(|&weight: &u32| {
            up_to += u128::from(weight);
            let ends = firsts(all * up_to / total);
            let units = starts.iter().zip(&ends).map(|(&start, &end)| start..end).collect();
            starts = ends;
            units
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every list of up to three weights to 3, and of up to two segments to 4 units and 3 bytes.
    #[test]
    fn every_small_table_is_cut_into_all_of_its_units_once() {
        let lists = |count: usize, most: u32| {
            (1..=count as u32).flat_map(move |length| {
                let values = u64::from(most) + 1;
                (0..values.pow(length)).map(move |code| {
                    (0..length).map(|digit| (code / values.pow(digit) % values) as u32).collect::<Vec<_>>()
                })
            })
        };
        let mut cuts = 0;
        for weights in lists(3, 3).filter(|weights| weights.iter().any(|&weight| weight > 0)) {
            for codes in lists(2, 19) {
                let size = |&code: &u32| SegmentSize { units: code as usize / 4, bytes: u64::from(code % 4) };
                let segments: Vec<_> = codes.iter().map(size).collect();
                let shares = shares(&weights, &segments);
                for (number, segment) in segments.iter().enumerate() {
                    let units: Vec<_> = shares.iter().flat_map(|share| share[number].clone()).collect();
                    assert!(units.into_iter().eq(0..segment.units), "{weights:?}, {segments:?}");
                }
                let idle = weights.iter().zip(&shares).filter(|(weight, _)| **weight == 0);
                assert!(idle.flat_map(|(_, share)| share).all(Range::is_empty), "{weights:?}, {segments:?}");
                cuts += 1;
            }
        }
        assert_eq!(cuts, (3 + 15 + 63) * (20 + 400));
    }

    #[test]
    fn shares_are_all_of_the_units_once() {
        for (weights, segments) in [
            (vec![1], &[(1, 1)][..]),
            (vec![1, 1, 1], &[(2, 7)]),
            (vec![2, 2, 1, 2, 1], &[(1000, 1 << 40), (10, 1 << 33), (1, 1 << 20), (3, 0)]),
            (vec![0, 7, 0], &[(5, 50), (0, 0)]),
            (vec![1; 9], &[(1, 1), (1, 100), (1, 1)]),
            (vec![u32::MAX; 9], &[(1 << 40, u64::MAX), (1, 1)]),
        ] {
            let parts = weights.len();
            let segments: Vec<_> =
                segments.iter().map(|&(units, bytes)| SegmentSize { units, bytes }).collect();
            let shares: Vec<_> =
                (0..parts).map(|index| Share { index, weights: weights.clone() }.of(&segments)).collect();
            for (number, segment) in segments.iter().enumerate() {
                assert_eq!((shares[0][number].start, shares[parts - 1][number].end), (0, segment.units));
                assert!(
                    shares
                        .windows(2)
                        .all(|pair: &[Vec<Range<usize>>]| pair[0][number].end == pair[1][number].start),
                    "{weights:?}"
                );
            }
        }
        let one = |index| {
            let share = Share { index, weights: vec![2, 2, 1, 2, 1] };
            share.of(&[SegmentSize { units: 80, bytes: 4096 }]).remove(0)
        };
        assert_eq!([one(0), one(2), one(4)], [0..20, 40..50, 70..80]);
        // Short segments go to different parts.
        let short = [SegmentSize { units: 1, bytes: 10 }; 4];
        let halves = shares(&[1, 1], &short);
        assert_eq!(halves, [[0..1, 0..1, 0..0, 0..0], [1..1, 1..1, 0..1, 0..1]]);
    }
}
