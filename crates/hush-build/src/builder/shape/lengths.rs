//! The lengths of a table's values.

use std::collections::BTreeMap;

use hush_ingest::SpooledRecords;

/// The lengths below this are counted in an array: nearly all lengths.
const SHORT: usize = 1 << 16;

/// The number of values of each length.
#[derive(Clone)]
pub(crate) struct Lengths {
    /// Pairs of a length in bytes and the number of values of that length, with ascending lengths.
    counts: Vec<(usize, usize)>,
    /// For each entry of `counts`, the number of values that are at least as long.
    at_least: Vec<usize>,
}

impl Lengths {
    /// Returns the lengths of the values of `records`, of which there has to be one.
    pub(in crate::builder) fn of(records: &SpooledRecords) -> Self {
        Self::count(records.value_lens().map(|length| length as usize))
    }

    /// Creates the lengths from pairs of a length and a number of values.
    pub(crate) fn counted(lengths: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut counts = BTreeMap::new();
        for (length, count) in lengths {
            *counts.entry(length).or_insert(0) += count;
        }
        Self::new(counts.into_iter().filter(|&(_, count)| count > 0).collect())
    }

    fn count(lengths: impl Iterator<Item = usize>) -> Self {
        let mut short = vec![0usize; SHORT];
        let mut long = BTreeMap::new();
        for length in lengths {
            match short.get_mut(length) {
                Some(count) => *count += 1,
                None => *long.entry(length).or_insert(0) += 1,
            }
        }
        Self::new(short.into_iter().enumerate().filter(|&(_, count)| count > 0).chain(long).collect())
    }

    fn new(counts: Vec<(usize, usize)>) -> Self {
        let mut at_least: Vec<usize> = counts
            .iter()
            .rev()
            .scan(0, |sum, &(_, count)| {
                *sum += count;
                Some(*sum)
            })
            .collect();
        at_least.reverse();
        Self { counts, at_least }
    }

    /// Returns the number of values.
    pub(crate) fn records(&self) -> usize {
        self.at_least.first().copied().unwrap_or(0)
    }

    /// Returns the bytes of all values.
    pub(crate) fn payload(&self) -> usize {
        self.counts.iter().map(|(length, count)| length * count).sum()
    }

    /// Returns the shortest and the longest length; 0 for both if there are no values.
    pub(crate) fn ends(&self) -> (usize, usize) {
        let length = |entry: Option<&(usize, usize)>| entry.map_or(0, |&(length, _)| length);
        (length(self.counts.first()), length(self.counts.last()))
    }

    /// Returns the number of values that are longer than `length`.
    pub(in crate::builder) fn longer_than(&self, length: usize) -> usize {
        let at = self.counts.partition_point(|&(own, _)| own <= length);
        self.at_least.get(at).copied().unwrap_or(0)
    }

    /// Returns the smallest length that at most `records` values exceed.
    pub(in crate::builder) fn beyond(&self, records: usize) -> usize {
        let at = self.at_least.partition_point(|&longer| longer > records);
        at.checked_sub(1).map_or(0, |at| self.counts[at].0)
    }

    /// Returns the lengths with one more value of `length` bytes, unless a value is as long or longer.
    pub(in crate::builder) fn up_to(mut self, length: usize) -> Self {
        if self.ends().1 < length {
            self.counts.push((length, 1));
            return Self::new(self.counts);
        }
        self
    }

    /// Returns the lengths without the longest `records` values. Values of equal length stay or go together, so fewer may go.
    pub(in crate::builder) fn without_longest(&self, records: usize) -> Self {
        let kept = self.at_least.partition_point(|&longer| longer > records);
        Self::new(self.counts[..kept].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted() {
        let lengths = Lengths::count([5, 70_000, 5, 9, 100, 5].into_iter());
        assert_eq!((lengths.records(), lengths.payload(), lengths.ends()), (6, 70_124, (5, 70_000)));
        let longer = [0, 5, 8, 9, 100, 69_999, 70_000].map(|length| lengths.longer_than(length));
        assert_eq!(longer, [6, 3, 3, 2, 1, 1, 0]);
        assert_eq!([0, 1, 2, 3, 5, 6].map(|records| lengths.beyond(records)), [70_000, 100, 9, 5, 5, 0]);
        let shorter = lengths.without_longest(1);
        assert_eq!((shorter.records(), shorter.ends()), (5, (5, 100)));
        assert_eq!(lengths.without_longest(6).records(), 0);
    }
}
