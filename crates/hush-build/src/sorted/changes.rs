//! Changes to the rows of a sorted table, as changes to its leaves.
//!
//! A changed row changes its own leaf, and those that repeat it. A leaf that becomes too long is split: its second half goes to a
//! spare leaf, and gets a fence of its own.

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use hush_engine::Progress;
use hush_ingest::{SpooledRecords, text_of_frame};
use hush_protocol::{
    descriptor::Descriptor,
    keyword::position_key,
    sorted::{
        Sorted,
        fences::{Fences, added_text, fence_between},
        leaf::{LeafWriter, most_row_bytes, rows},
    },
};
use hush_store::snapshot::{ADDED_FENCES_FILE, Changes, FENCES_FILE, KeptRecords, Snapshot};

use super::{
    FREE, SortError, SortedTable, fence_file, finished,
    leaves::{LeafLimits, LeafPacker, LeafPair},
};
use crate::{JobError, builder::BuildOptions};

/// The part of a leaf that a row may take: a leaf has at least one row of its own and its two neighbours.
pub(super) const ROW_PART: usize = 4;

/// A leaf in the order of keys.
struct ReadLeaf {
    fence: Vec<u8>,
    position: u64,
    is_added: bool,
    /// The rows of its own, once they are read.
    own: Option<Vec<LeafPair>>,
}

/// The leaves of a table.
pub(crate) struct ChangingLeaves<'a> {
    sorted: &'a Sorted,
    /// The most bytes of a leaf, and the number of all leaves, with spare ones.
    leaf_bytes: usize,
    records: u64,
    leaves: Vec<ReadLeaf>,
    /// The leaves that were built, by position.
    built: Vec<&'a [u8]>,
    changed: Changes,
}

/// Changes to leaves, and the files of fences of their table.
pub(crate) struct ChangedLeaves {
    pub(crate) changes: Changes,
    pub(crate) table: SortedTable,
}

impl<'a> ChangingLeaves<'a> {
    /// Reads the fences of a table, its leaves as they were built, and those that changed since.
    pub(crate) fn take(
        snapshot: &mut Snapshot,
        descriptor: &'a Descriptor,
        kept: &'a KeptRecords,
        changed: Changes,
    ) -> Result<Self, JobError> {
        let sorted = descriptor.sorted.as_ref().ok_or(SortError::Damaged)?;
        let mut texts = [Vec::new(), Vec::new()];
        for ((file, name), text) in sorted.files().zip([FENCES_FILE, ADDED_FENCES_FILE]).zip(&mut texts) {
            let stored = snapshot.take_checked(name)?;
            *text = text_of_frame(stored.as_ref(), file.length as usize).map_err(|_| SortError::Damaged)?;
            stored.check()?;
        }
        let fences = Fences::parse(&texts[0], &texts[1], descriptor.records).ok_or(SortError::Damaged)?;
        let built = Fences::parse(&texts[0], &[], descriptor.records).ok_or(SortError::Damaged)?.len() as u64;
        let leaves = (0..fences.len()).map(|at| ReadLeaf {
            fence: fences.fence(at).to_vec(),
            position: fences.position(at),
            is_added: fences.position(at) >= built,
            own: None,
        });
        Ok(Self {
            sorted,
            leaf_bytes: descriptor.slot.max_value_bytes as usize,
            records: descriptor.records,
            leaves: leaves.collect(),
            built: kept.iter().map(|(_, leaf)| leaf).collect(),
            changed,
        })
    }

    /// Returns the content of leaf `at`.
    fn content(&self, at: usize) -> Cow<'a, [u8]> {
        let position = self.leaves[at].position;
        match self.changed.0.get(&position_key(position)[..]) {
            Some(leaf) => leaf.clone().unwrap_or_default().into(),
            None => self.built.get(position as usize).copied().unwrap_or_default().into(),
        }
    }

    /// Returns the rows of leaf `at`'s own.
    fn read(&self, at: usize) -> Result<Vec<LeafPair>, SortError> {
        let content = self.content(at);
        let fence = &self.leaves[at].fence;
        let next = self.leaves.get(at + 1).map(|next| &next.fence);
        let mut own = Vec::new();
        rows(&content, |key, value| {
            if key >= &fence[..] && next.is_none_or(|next| key < &next[..]) {
                own.push((key.to_vec(), value.to_vec()));
            }
            Some(())
        })
        .ok_or(SortError::Damaged)?;
        Ok(own)
    }

    fn own(&mut self, at: usize) -> Result<&mut Vec<LeafPair>, SortError> {
        if self.leaves[at].own.is_none() {
            self.leaves[at].own = Some(self.read(at)?);
        }
        Ok(self.leaves[at].own.as_mut().expect("it was read"))
    }

    fn leaf_of(&self, key: &[u8]) -> usize {
        self.leaves.partition_point(|leaf| &leaf.fence[..] <= key) - 1
    }

    /// Returns the rows by which `self` differs from the leaves `before`: their new values, and `None` for those that are gone.
    ///
    /// # Errors
    /// [`SortError::Damaged`].
    pub(crate) fn difference(&self, before: &Self) -> Result<BTreeMap<Vec<u8>, Option<Vec<u8>>>, SortError> {
        let mut rows = BTreeMap::new();
        // Rows that another leaf has now were in a leaf that changed, too.
        let changed = |own: &Self, other: &Self, at: usize| {
            let key = position_key(own.leaves[at].position);
            own.changed.0.get(&key[..]) != other.changed.0.get(&key[..])
        };
        for at in (0..before.leaves.len()).filter(|&at| changed(before, self, at)) {
            rows.extend(before.read(at)?.into_iter().map(|(key, value)| (key, (Some(value), None))));
        }
        for at in (0..self.leaves.len()).filter(|&at| changed(self, before, at)) {
            for (key, value) in self.read(at)? {
                rows.entry(key).or_insert((None, None)).1 = Some(value);
            }
        }
        let difference = rows.into_iter().filter(|(_, (before, now))| before != now);
        Ok(difference.map(|(key, (_, now))| (key, now)).collect())
    }

    /// Changes rows: `None` deletes one. Deletions of absent rows are refused, unless `may_be_absent`.
    ///
    /// # Errors
    /// [`SortError::LongRow`], [`SortError::NoLeafLeft`], [`SortError::Damaged`]; the absent key.
    pub(crate) fn change(
        mut self,
        changes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
        may_be_absent: bool,
    ) -> Result<Result<ChangedLeaves, Vec<u8>>, SortError> {
        let mut number = self.sorted.rows;
        let mut touched = Vec::new();
        for (key, value) in changes {
            let at = self.leaf_of(key);
            let most = self.leaf_bytes / ROW_PART;
            let bytes = value.as_ref().map_or(0, |value| most_row_bytes(key, value));
            if bytes > most {
                let key = self.sorted.order.decode(key).unwrap_or_default();
                return Err(SortError::LongRow { key, bytes, most });
            }
            let own = self.own(at)?;
            match (own.binary_search_by(|(own, _)| own.cmp(key)), value) {
                (Ok(found), Some(value)) => own[found].1.clone_from(value),
                (Err(place), Some(value)) => {
                    own.insert(place, (key.clone(), value.clone()));
                    number += 1;
                }
                (Ok(found), None) => {
                    own.remove(found);
                    number -= 1;
                }
                (Err(_), None) if may_be_absent => continue,
                (Err(_), None) => return Ok(Err(key.clone())),
            }
            touched.push(at);
        }
        touched.dedup();
        let mut stale = Vec::new();
        for at in touched {
            stale.extend(self.repeating(at)?);
        }
        stale.sort_unstable();
        stale.dedup();
        // From the last to the first, so that a split moves no leaf that is still to be written.
        for at in stale.into_iter().rev() {
            self.write(at)?;
        }
        let added = self.leaves.iter().filter(|leaf| leaf.is_added);
        let added = added_text(added.map(|leaf| (&leaf.fence[..], Some(leaf.position as u32))));
        let (fences, file) = fence_file(&added);
        let sorted =
            Sorted { rows: number, added: (!added.is_empty()).then_some(file), ..self.sorted.clone() };
        Ok(Ok(ChangedLeaves { changes: self.changed, table: SortedTable { sorted, fences } }))
    }

    /// Returns the leaves that have rows of leaf `at`, or could have.
    fn repeating(&mut self, at: usize) -> Result<std::ops::RangeInclusive<usize>, SortError> {
        let overlap = self.sorted.overlap as usize;
        let (mut first, mut between) = (at, 0);
        while first > 0 && (first == at || between <= overlap) {
            first -= 1;
            // A row takes three bytes at least, beside its value.
            between += self.own(first)?.iter().map(|(_, value)| 3 + value.len()).sum::<usize>();
        }
        let mut last = at;
        while last + 1 < self.leaves.len() && (last == at || self.own(last)?.is_empty()) {
            last += 1;
        }
        Ok(first..=last)
    }

    /// Writes leaf `at` from its rows and those around it. Splits it if it is too long.
    fn write(&mut self, at: usize) -> Result<(), SortError> {
        let content = self.encoded(at)?;
        if content.len() <= self.leaf_bytes {
            if *content != *self.content(at) {
                let position = self.leaves[at].position;
                self.changed.0.insert(position_key(position).to_vec(), Some(content));
            }
            return Ok(());
        }
        let position = self.leaves.len() as u64;
        let records = self.records;
        let own = self.own(at)?;
        if own.len() < 2 {
            return Err(SortError::Damaged);
        }
        if position >= records {
            return Err(SortError::NoLeafLeft);
        }
        let bytes =
            |rows: &[LeafPair]| rows.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let all = bytes(own);
        let half = (1..own.len()).find(|&half| 2 * bytes(&own[..half]) >= all).unwrap_or(own.len() - 1);
        let behind = own.split_off(half);
        let fence = fence_between(&own[half - 1].0, &behind[0].0).to_vec();
        self.leaves.insert(at + 1, ReadLeaf { fence, position, is_added: true, own: Some(behind) });
        self.write(at + 1)?;
        self.write(at)
    }

    fn encoded(&mut self, at: usize) -> Result<Vec<u8>, SortError> {
        let mut leaf = LeafWriter::default();
        for before in (0..at).rev() {
            if let Some((key, value)) = self.own(before)?.last() {
                leaf.push(key, value);
                break;
            }
        }
        for (key, value) in self.own(at)? {
            leaf.push(key, value);
        }
        let (start, overlap) = (leaf.bytes(), self.sorted.overlap as usize);
        let leaf_bytes = self.leaf_bytes;
        'behind: for behind in at + 1..self.leaves.len() {
            for (key, value) in self.own(behind)? {
                let repeated = leaf.bytes() - start;
                let is_full = leaf.bytes() + most_row_bytes(key, value) > leaf_bytes;
                if repeated > 0 && (repeated >= overlap || is_full) {
                    break 'behind;
                }
                leaf.push(key, value);
            }
        }
        Ok(leaf.finish())
    }

    /// Returns the leaves of a new base, with all rows, and sets the options of its build: for values as long as `longest`, and for
    /// changes of so many `rows`.
    pub(crate) fn compacted(
        self,
        descriptor: &Descriptor,
        (longest, rows): (Option<usize>, Option<usize>),
        options: &mut BuildOptions,
        dir: &Path,
        progress: &dyn Progress,
    ) -> Result<SpooledRecords, JobError> {
        let all = (0..self.leaves.len()).map(|at| self.read(at)).collect::<Result<Vec<_>, _>>()?;
        let longest_key = all.iter().flatten().map(|(key, _)| key.len()).max().unwrap_or(0);
        // A value of this length with a key as long as any is a row.
        let of_longest = |longest| ROW_PART * most_row_bytes(&vec![0; longest_key], &vec![0; longest]);
        let leaf_bytes = self.leaf_bytes.max(longest.map_or(0, of_longest));
        let limits = LeafLimits {
            leaf_bytes,
            filled: leaf_bytes - leaf_bytes / FREE,
            overlap: self.sorted.overlap as usize,
            longest: leaf_bytes / ROW_PART,
        };
        let mut packer = LeafPacker::create(dir, limits)?;
        for (key, value) in all.into_iter().flatten() {
            packer.push(key, value)?;
        }
        let schema = descriptor.schema.clone().unwrap_or_default();
        finished(packer, self.sorted.clone(), schema, rows, options, progress)
    }
}
