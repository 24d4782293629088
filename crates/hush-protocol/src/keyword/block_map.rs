//! The public map from keys to blocks, which evens out the loads of the blocks.
//!
//! Hashing alone gives some blocks about `3.5 sqrt(load)` keys too many, and all blocks have the same size. So every block
//! publishes a threshold: a key whose balance byte is below the threshold of its first block is stored in its second block.
//! The thresholds are raised one step (1/256 of the block's keys) at a time, until no block is too full.

use std::collections::VecDeque;

use hush_math::constant_time::byte_at;
use rayon::prelude::*;
use thiserror::Error;

use super::KeyDigest;

/// The most blocks of a table by key. Its descriptor lists two bytes for each, in hex.
pub const MAX_BLOCKS: usize = 1 << 23;

/// The error if no thresholds keep every block within its capacity.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{keys} keys cannot be spread over {blocks} blocks of at most {capacity} keys each")]
pub struct NotBalanced {
    /// The number of keys.
    pub keys: usize,
    /// The number of blocks.
    pub blocks: usize,
    /// The most keys of a block.
    pub capacity: usize,
}

/// The public arrays that tell a client the block of a key and the seed of that block's filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMap {
    /// The thresholds, one byte for each block. Keys whose balance byte is below the threshold are in their second block.
    pub thresholds: Vec<u8>,
    /// The filter seeds, one byte for each block: the seed under which the block's filter could be built.
    pub seeds: Vec<u8>,
}

impl BlockMap {
    /// Returns the map in which every key is in its first block, with seeds 0.
    pub fn unbalanced(blocks: usize) -> Self {
        Self { thresholds: vec![0; blocks], seeds: vec![0; blocks] }
    }

    /// Returns a map under which no block has more than `capacity` keys, with seeds 0. Fails with [`NotBalanced`] if there is no
    /// such map, or `blocks` is 0 or above [`MAX_BLOCKS`]. See [`BlockKeys::assign`].
    pub fn assign<'a>(
        digests: impl IntoIterator<Item = &'a KeyDigest>,
        blocks: usize,
        capacity: usize,
    ) -> Result<Self, NotBalanced> {
        if !(1..=MAX_BLOCKS).contains(&blocks) {
            return Err(NotBalanced { keys: 0, blocks, capacity });
        }
        let keys = digests.into_iter().map(|digest| BlockKey::new(digest, blocks)).collect();
        BlockKeys::new(keys, blocks).assign(capacity)
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.thresholds.len()
    }

    /// Returns the seed of the key's block. The block is meaningful only if the key is in the table.
    ///
    /// # Panics
    /// If the map has no blocks.
    pub fn seed_of(&self, digest: &KeyDigest) -> u8 {
        self.seeds[self.block_of(digest)]
    }

    /// Returns the block of a key that is looked up, and the seed of that block. Reads the whole map, whatever the key.
    pub fn sought(&self, digest: &KeyDigest) -> (usize, u8) {
        let block = digest.sought_block(&self.thresholds);
        (block, byte_at(&self.seeds, block))
    }

    /// Returns the block in which a key is stored if it is in the table.
    ///
    /// # Panics
    /// If the map has no blocks.
    pub fn block_of(&self, digest: &KeyDigest) -> usize {
        let first = digest.first_block(self.blocks());
        if digest.balance() < self.thresholds[first] { digest.second_block(self.blocks()) } else { first }
    }
}

/// The first block, the balance byte and the second block of all keys of a table, in 8 bytes for each key.
pub struct BlockKeys {
    blocks: usize,
    sorted: Vec<BlockKey>,
}

impl BlockKeys {
    /// Creates the sorted list of the keys of a table of `blocks` blocks.
    pub fn new(mut keys: Vec<BlockKey>, blocks: usize) -> Self {
        keys.par_sort_unstable();
        Self { blocks, sorted: keys }
    }

    /// Returns a map under which no block has more than `capacity` keys, with seeds 0.
    ///
    /// A sufficient capacity is the mean load + 1 for blocks of 20 to 500 keys, and about 0.5 % above the mean for large ones.
    ///
    /// # Errors
    /// [`NotBalanced`] if there is no such map, or the number of blocks is 0 or above [`MAX_BLOCKS`].
    pub fn assign(&self, capacity: usize) -> Result<BlockMap, NotBalanced> {
        let Self { blocks, sorted } = self;
        let not_balanced = NotBalanced { keys: sorted.len(), blocks: *blocks, capacity };
        if !(1..=MAX_BLOCKS).contains(blocks) || sorted.len() > blocks.saturating_mul(capacity) {
            return Err(not_balanced);
        }
        let mut loads = Loads::new(sorted, *blocks);
        let mut map = BlockMap::unbalanced(*blocks);
        let mut crowded: VecDeque<usize> =
            (0..*blocks).filter(|&block| loads.keys_in[block] > capacity).collect();
        while let Some(block) = crowded.pop_front() {
            while loads.keys_in[block] > capacity {
                let moved = loads.pass_on(block).ok_or(not_balanced)?;
                map.thresholds[block] = moved.threshold;
                for key in moved.keys {
                    loads.keys_in[key.second_block()] += 1;
                    if loads.keys_in[key.second_block()] == capacity + 1 {
                        crowded.push_back(key.second_block());
                    }
                }
            }
        }
        Ok(map)
    }

    /// Returns the number of keys in the fullest block if all keys are in their first block.
    pub fn fullest(&self) -> usize {
        self.sorted.chunk_by(|a, b| a.first_block() == b.first_block()).map(<[_]>::len).max().unwrap_or(0)
    }
}

/// The first block, the balance byte and the second block of a key, in one word. Words sort by first block, then in the
/// order in which the block passes keys on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockKey(u64);

impl BlockKey {
    /// Creates the word of a key in a table of `blocks` blocks, 1 to [`MAX_BLOCKS`].
    pub fn new(digest: &KeyDigest, blocks: usize) -> Self {
        let first = digest.first_block(blocks) as u64;
        let second = digest.second_block(blocks) as u64;
        Self(first << 32 | u64::from(digest.balance()) << 24 | second)
    }

    fn first_block(self) -> usize {
        (self.0 >> 32) as usize
    }

    fn balance(self) -> u8 {
        (self.0 >> 24) as u8
    }

    fn second_block(self) -> usize {
        (self.0 & 0xff_ffff) as usize
    }
}

struct Loads<'a> {
    keys_in: Vec<usize>,
    /// The keys that a block can still pass on, those with the lowest balance byte first.
    own: Vec<&'a [BlockKey]>,
}

/// The keys that leave a block when its threshold is raised.
struct Moved<'a> {
    threshold: u8,
    keys: &'a [BlockKey],
}

impl<'a> Loads<'a> {
    fn new(sorted: &'a [BlockKey], blocks: usize) -> Self {
        let mut own: Vec<&[BlockKey]> = vec![&[]; blocks];
        for run in sorted.chunk_by(|a, b| a.first_block() == b.first_block()) {
            own[run[0].first_block()] = run;
        }
        Self { keys_in: own.iter().map(|own| own.len()).collect(), own }
    }

    /// Removes the keys with the lowest balance byte from a block. Returns `None` if the block has no key left to pass on.
    fn pass_on(&mut self, block: usize) -> Option<Moved<'a>> {
        let own = self.own[block];
        let lowest = own.first()?.balance();
        let threshold = lowest.checked_add(1)?;
        let (keys, rest) = own.split_at(own.partition_point(|key| key.balance() == lowest));
        self.own[block] = rest;
        self.keys_in[block] -= keys.len();
        Some(Moved { threshold, keys })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digests(count: usize, salt: u8) -> Vec<KeyDigest> {
        (0..count as u64).map(|key| KeyDigest::new(&[salt; 32], &key.to_le_bytes()).unwrap()).collect()
    }

    fn loads(map: &BlockMap, digests: &[KeyDigest]) -> Vec<usize> {
        let mut loads = vec![0; map.blocks()];
        for digest in digests {
            loads[map.block_of(digest)] += 1;
            assert_eq!(map.sought(digest), (map.block_of(digest), map.seed_of(digest)));
        }
        loads
    }

    #[test]
    fn blocks_fill_to_half_a_percent_over_the_mean() {
        for (keys, blocks) in [(60_000, 2), (100_000, 3), (200_000, 8), (300_000, 30)] {
            let digests = digests(keys, 1);
            let capacity = (keys / blocks) * 1005 / 1000 + 1;
            let map = BlockMap::assign(&digests, blocks, capacity).unwrap();
            let loads = loads(&map, &digests);
            assert!(loads.iter().all(|&load| load <= capacity), "{blocks} blocks: {loads:?}");
            assert_eq!(loads.iter().sum::<usize>(), keys);
        }
    }

    #[test]
    fn small_blocks_fill_to_one_key_over_the_mean() {
        for (mean, blocks) in [(30, 1000), (123, 400), (251, 400), (500, 100)] {
            let digests = digests(mean * blocks, 5);
            let map = BlockMap::assign(&digests, blocks, mean + 1).unwrap();
            assert!(loads(&map, &digests).into_iter().all(|load| load <= mean + 1));
        }
    }

    #[test]
    fn twenty_thousand_blocks() {
        let digests = digests(80_000, 2);
        let map = BlockMap::assign(&digests, 20_000, 6).unwrap();
        assert!(loads(&map, &digests).into_iter().max() <= Some(6));
        let hashed = loads(&BlockMap::unbalanced(20_000), &digests);
        assert!(hashed.into_iter().max() > Some(10), "hashing alone would do");
    }

    #[test]
    fn keys_that_all_hash_to_one_block_are_spread() {
        let crowded: Vec<KeyDigest> =
            digests(40_000, 3).into_iter().filter(|digest| digest.first_block(20) == 7).collect();
        let capacity = crowded.len() / 20 + 60;
        let map = BlockMap::assign(&crowded, 20, capacity).unwrap();
        assert!(loads(&map, &crowded).into_iter().all(|load| load <= capacity));
        assert!(map.thresholds[7] > 200);
        assert_eq!(map.thresholds.iter().filter(|&&threshold| threshold > 0).count(), 1);
    }

    #[test]
    fn a_key_has_the_seed_of_its_block() {
        let digests = digests(100, 5);
        let mut map = BlockMap::assign(&digests, 4, 26).unwrap();
        map.seeds = vec![7, 0, 255, 9];
        assert_eq!(loads(&map, &digests).iter().sum::<usize>(), 100);
        assert!(digests.iter().all(|digest| map.seed_of(digest) == map.seeds[map.block_of(digest)]));
        let keys = digests.iter().map(|digest| BlockKey::new(digest, 4)).collect();
        let in_first = |block| digests.iter().filter(|digest| digest.first_block(4) == block).count();
        assert_eq!(Some(BlockKeys::new(keys, 4).fullest()), (0..4).map(in_first).max());
    }

    #[test]
    fn impossible_loads_are_refused() {
        let digests = digests(100, 4);
        let assign = |blocks, capacity| BlockMap::assign(&digests, blocks, capacity);
        assert_eq!(assign(4, 24), Err(NotBalanced { keys: 100, blocks: 4, capacity: 24 }));
        assert!(assign(4, 25).is_err() || loads(&assign(4, 25).unwrap(), &digests) == [25; 4]);
        assert!(assign(0, 100).is_err() && assign(MAX_BLOCKS + 1, 100).is_err());
        assert_eq!(assign(1, 100), Ok(BlockMap::unbalanced(1)));
        assert!(assign(1, 99).is_err());
        assert_eq!(BlockMap::assign(&[], 3, 0), Ok(BlockMap::unbalanced(3)));
    }

    proptest! {
        #[test]
        fn the_capacity_holds_or_the_error_says_so(
            keys in 0usize..600, blocks in 1usize..40, slack in 0usize..30, salt: u8,
        ) {
            let digests = digests(keys, salt);
            let capacity = keys.div_ceil(blocks) + slack;
            if let Ok(map) = BlockMap::assign(&digests, blocks, capacity) {
                prop_assert!(loads(&map, &digests).into_iter().all(|load| load <= capacity));
            } else {
                // Only a mean load close to the capacity may be refused.
                prop_assert!(slack < 12);
            }
        }
    }
}
