//! Fences: for each leaf, a text at or below its first key and above all keys before.

use hush_math::constant_time::equal_mask;
use zeroize::Zeroizing;

use super::leaf::{LeafWriter, rows};

/// The most bytes of the fences of a table, as they are read and as they are downloaded.
pub const MAX_FENCE_BYTES: u64 = 64 << 20;

/// The fences of a table, in order, with the position of each leaf.
#[derive(Clone, Default)]
pub struct Fences {
    texts: Vec<u8>,
    ends: Vec<u32>,
    /// The position of each leaf.
    positions: Vec<u32>,
}

impl Fences {
    /// Reads the fences of the leaves that were built, which have the positions from 0, and of those that were added, of a table of
    /// this many `records`. Returns `None` if a text is malformed, fences are too many or too long, or the first is not empty.
    pub fn parse(built: &[u8], added: &[u8], records: u64) -> Option<Self> {
        let mut fences = Self::default();
        let mut position = 0;
        rows(built, |fence, _| {
            fences.push(fence, position, records)?;
            position += 1;
            Some(())
        })?;
        if fences.ends.first() != Some(&0) {
            return None;
        }
        if added.is_empty() {
            return Some(fences);
        }
        let mut others = Self::default();
        rows(added, |fence, position| others.push(fence, read_position(position)?, records))?;
        fences.merged(&others, records)
    }

    fn push(&mut self, fence: &[u8], position: u32, records: u64) -> Option<()> {
        self.texts.extend_from_slice(fence);
        let end = self.texts.len() as u64;
        if end > MAX_FENCE_BYTES || u64::from(position) >= records || self.ends.len() as u64 >= records {
            return None;
        }
        self.ends.push(end as u32);
        self.positions.push(position);
        Some(())
    }

    fn merged(&self, others: &Self, records: u64) -> Option<Self> {
        let mut merged = Self::default();
        let mut at = 0;
        for index in 0..self.len() {
            while at < others.len() && others.fence(at) < self.fence(index) {
                merged.push(others.fence(at), others.positions[at], records)?;
                at += 1;
            }
            if at < others.len() && others.fence(at) == self.fence(index) {
                return None;
            }
            merged.push(self.fence(index), self.positions[index], records)?;
        }
        (at..others.len()).try_for_each(|at| merged.push(others.fence(at), others.positions[at], records))?;
        (merged.ends.first() == Some(&0)).then_some(merged)
    }

    /// Returns the number of leaves.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no leaf.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the fence of leaf `index`, in the order of keys.
    pub fn fence(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.texts[start as usize..self.ends[index] as usize]
    }

    /// Returns the position of leaf `index`, in the order of keys.
    pub fn position(&self, index: usize) -> u64 {
        self.positions[index].into()
    }

    /// Returns the position of a leaf that is looked up. Reads every position.
    pub fn sought_position(&self, index: usize) -> u64 {
        let chosen = |found, (at, own): (u32, &u32)| found | own & equal_mask(at, index as u32);
        (0..).zip(&self.positions).fold(0, chosen).into()
    }

    /// Returns the leaf that has the neighbours of `key`, in the order of keys. Reads all fences, whatever the key.
    pub fn leaf_of(&self, key: &[u8]) -> usize {
        let longest = (0..self.len()).map(|leaf| self.fence(leaf).len()).max().unwrap_or(0);
        let mut padded = Zeroizing::new(vec![0; longest.max(key.len())]);
        padded[..key.len()].copy_from_slice(key);
        let is_at_or_below = |fence: &[u8]| {
            // A fence that is the padded key's beginning is at or below the key if it is no longer than the key.
            let is_beginning = u32::from(fence.len() <= key.len());
            fence.iter().zip(padded.iter()).rev().fold(is_beginning, |rest, (&fence, &key)| {
                let [fence, key] = [fence, key].map(u32::from);
                fence.wrapping_sub(key) >> 31 | rest & (key.wrapping_sub(fence) >> 31 ^ 1)
            })
        };
        (0..self.len()).map(|leaf| is_at_or_below(self.fence(leaf)) as usize).sum::<usize>().saturating_sub(1)
    }
}

/// Returns the text of the fences of leaves at the positions from 0.
pub fn built_text<'a>(fences: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    added_text(fences.into_iter().map(|fence| (fence, None)))
}

/// Returns the text of fences in order, with the position of each leaf.
pub fn added_text<'a>(fences: impl IntoIterator<Item = (&'a [u8], Option<u32>)>) -> Vec<u8> {
    let mut writer = LeafWriter::default();
    for (fence, position) in fences {
        let position = position.map(u32::to_le_bytes);
        writer.push(fence, position.as_ref().map_or(&[], |bytes| &bytes[..]));
    }
    writer.finish()
}

fn read_position(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Returns the shortest beginning of `first` that is above `before`: the fence of a leaf with this first key.
pub fn fence_between<'a>(before: &[u8], first: &'a [u8]) -> &'a [u8] {
    let shared = first.iter().zip(before).take_while(|(a, b)| a == b).count();
    &first[..first.len().min(shared + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_leaf_of_their_fence() {
        let built = built_text([&b""[..], b"b", b"ba", b"d"]);
        let added = added_text([(&b"a"[..], Some(4)), (b"c", Some(5))]);
        let fences = Fences::parse(&built, &added, 6).unwrap();
        assert_eq!(fences.len(), 6);
        for (key, position) in [
            ("", 0),
            ("A", 0),
            ("a", 4),
            ("azz", 4),
            ("a\0", 4),
            ("b", 1),
            ("bA", 1),
            ("ba", 2),
            ("c", 5),
            ("cz", 5),
            ("d", 3),
            ("z", 3),
        ] {
            let leaf = fences.leaf_of(key.as_bytes());
            assert_eq!([fences.position(leaf), fences.sought_position(leaf)], [position; 2], "{key}");
        }
        assert_eq!(Fences::parse(&built, &[], 4).unwrap().len(), 4);
        for (built, added, records) in [
            (&built[..], &added[..], 5),
            (&built, &[], 3),
            (&built_text([&b"a"[..]]), &[], 9),
            (&[], &[], 9),
            (&built, &added_text([(&b"b"[..], Some(4))]), 9),
            (&built, &built_text([&b"c"[..]]), 9),
            (&built[..2], &[], 9),
        ] {
            assert!(Fences::parse(built, added, records).is_none(), "{built:?} {added:?} {records}");
        }
    }

    #[test]
    fn fences_are_short_and_keep_leaves_apart() {
        for (before, first, expected) in [
            ("abc", "abd", "abd"),
            ("abc", "b", "b"),
            ("abc", "bcd", "b"),
            ("a", "ab", "ab"),
            ("a", "abc", "ab"),
        ] {
            let fence = fence_between(before.as_bytes(), first.as_bytes());
            assert_eq!(fence, expected.as_bytes());
            assert!(fence > before.as_bytes() && fence <= first.as_bytes());
        }
    }
}
