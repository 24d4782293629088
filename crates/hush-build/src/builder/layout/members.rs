//! The assignment of keys to blocks.

/// The keys of every block. A key is the number of a record, 4 bytes.
pub(in crate::builder) struct Members {
    /// The index in `keys` at which the keys of each block start. The last entry is the end of the last block.
    starts: Vec<usize>,
    keys: Vec<u32>,
}

impl Members {
    /// Creates the lists of keys from pairs of a block and a key. The keys of each block stay in the order of the
    /// pairs.
    pub(in crate::builder) fn new(blocks: usize, pairs: impl Iterator<Item = (usize, u32)> + Clone) -> Self {
        let mut starts = vec![0; blocks + 1];
        pairs.clone().for_each(|(block, _)| starts[block + 1] += 1);
        for block in 0..blocks {
            starts[block + 1] += starts[block];
        }
        let mut next = starts.clone();
        let mut keys = vec![0; starts[blocks]];
        for (block, key) in pairs {
            keys[next[block]] = key;
            next[block] += 1;
        }
        Self { starts, keys }
    }

    /// Returns the number of blocks.
    pub(in crate::builder) fn blocks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the keys of a block.
    pub(in crate::builder) fn of(&self, block: usize) -> &[u32] {
        &self.keys[self.starts[block]..self.starts[block + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_in_order() {
        let members = Members::new(4, [(2, 7), (0, 1), (2, 3), (2, 5)].into_iter());
        assert_eq!(
            (0..members.blocks()).map(|block| members.of(block)).collect::<Vec<_>>(),
            [&[1][..], &[], &[7, 3, 5], &[]]
        );
    }
}
