//! The hash of a key, which determines its block, its fingerprint and its positions in the block's filter.

use hush_math::constant_time::{byte_at, divide};
use zeroize::Zeroize;

use crate::ProtocolError;

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 4096;

/// Returns the key of the record at a position, for tables of several segments. These find a record by a filter even if it
/// is asked by position.
pub fn position_key(position: u64) -> [u8; 8] {
    position.to_le_bytes()
}

/// The longest fingerprint, in bytes.
pub const MAX_FINGERPRINT_BYTES: usize = 16;

/// The BLAKE3 hash of a key under the table's public seed.
///
/// Bytes 0 to 7 choose the first block, 8 to 14 the second. Byte 15 is the balance byte, and bytes 16 to 31 are the
/// fingerprint. The positions in a filter come from a second hash, keyed by the digest, of the block's seed byte. A block
/// can therefore be rebuilt without its neighbours. A digest under a public seed confirms a guessed key, so the type has no
/// `Debug` and is wiped when dropped.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyDigest([u8; 32]);

impl Drop for KeyDigest {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl KeyDigest {
    /// Creates the digest of `key`, any bytes up to [`MAX_KEY_BYTES`], under the table's seed.
    ///
    /// # Errors
    /// [`ProtocolError::KeyTooLong`] if the key is longer.
    pub fn new(table_seed: &[u8; 32], key: &[u8]) -> Result<Self, ProtocolError> {
        if key.len() > MAX_KEY_BYTES {
            return Err(ProtocolError::KeyTooLong { actual: key.len(), max: MAX_KEY_BYTES });
        }
        Ok(Self(*blake3::keyed_hash(table_seed, key).as_bytes()))
    }

    /// Returns the 32 bytes of the digest, to be sent to other builders of filters. Only for keys of a table, never for a
    /// key that is looked up. The caller must wipe the bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Creates a digest from the bytes of [`KeyDigest::to_bytes`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(*bytes)
    }

    /// Returns the first `bytes` bytes of the fingerprint. Source: ChalametPIR section 3.1 (a hash of the key before the value).
    ///
    /// # Panics
    /// If `bytes` is over [`MAX_FINGERPRINT_BYTES`].
    pub fn fingerprint(&self, bytes: usize) -> &[u8] {
        &self.0[16..16 + bytes]
    }

    /// Returns the first 16 bytes, which stand for the key in comparisons.
    pub fn first_half(&self) -> [u8; 16] {
        *self.0.first_chunk().expect("half of 32 bytes")
    }

    /// Returns the block of the key, unless that block passes the key on to the second one. For every number of blocks,
    /// keys sorted by digest word 0 are also sorted by block.
    ///
    /// # Panics
    /// If there are no blocks.
    pub fn first_block(&self, blocks: usize) -> usize {
        assert!(blocks > 0, "a table has at least one block");
        scale(self.word(0), blocks)
    }

    /// Returns the block that takes the key if the first block passes it on. It is another block unless there is only one.
    ///
    /// # Panics
    /// If there are no blocks.
    pub fn second_block(&self, blocks: usize) -> usize {
        let step = 1 + scale(self.word(8) << 8, blocks - 1);
        divide((self.first_block(blocks) + step) as u64, blocks as u64).1
    }

    /// Returns the block of a key that is looked up, of blocks with these thresholds. Reads all of them, whatever the key.
    pub(super) fn sought_block(&self, thresholds: &[u8]) -> usize {
        let first = self.first_block(thresholds.len());
        let is_passed = usize::from(self.balance()).wrapping_sub(byte_at(thresholds, first).into());
        let mask = (is_passed >> (usize::BITS - 1)).wrapping_neg();
        first & !mask | self.second_block(thresholds.len()) & mask
    }

    /// Returns the byte that decides whether the first block passes the key on.
    pub fn balance(&self) -> u8 {
        self.0[15]
    }

    /// Returns 64 bytes, as 8 words, for the positions of the key in the filter of a block with the seed `block_seed`.
    pub(super) fn positions(&self, block_seed: u8) -> [u64; 8] {
        let mut bytes = [0; 64];
        blake3::Hasher::new_keyed(&self.0).update(&[block_seed]).finalize_xof().fill(&mut bytes);
        std::array::from_fn(|word| word_at(&bytes, 8 * word))
    }

    /// Returns the digest that chooses the lane of the key in a segment. It is independent of the digest that chooses the
    /// block in the base.
    pub(super) fn of_lanes(&self, seed: u8) -> Self {
        Self(*blake3::keyed_hash(&self.0, &[b'l', seed]).as_bytes())
    }

    fn word(&self, at: usize) -> u64 {
        word_at(&self.0, at)
    }
}

/// Maps a uniform word to `0..range` (to 0 if the range is empty).
pub(super) fn scale(word: u64, range: usize) -> usize {
    ((u128::from(word) * range as u128) >> 64) as usize
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"))
}

/// The keys and values of a block, from which a filter is built.
pub(super) struct Block<'a, S> {
    pub(super) digests: &'a [KeyDigest],
    /// The values, `digests.len() * slot_size` symbols.
    pub(super) values: &'a [S],
    /// The number of symbols of a slot.
    pub(super) slot_size: usize,
    pub(super) slots: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: [u8; 32] = [3; 32];

    fn digests(count: u32) -> impl Iterator<Item = KeyDigest> {
        (0..count).map(|key| KeyDigest::new(&SEED, &key.to_le_bytes()).unwrap())
    }

    #[test]
    fn keys_of_any_length_up_to_the_limit() {
        for length in [0, 1, 64, 1025, MAX_KEY_BYTES] {
            assert!(KeyDigest::new(&SEED, &vec![7; length]).is_ok());
        }
        let too_long = KeyDigest::new(&SEED, &[7; MAX_KEY_BYTES + 1]).err();
        assert_eq!(too_long, Some(ProtocolError::KeyTooLong { actual: 4097, max: 4096 }));
    }

    #[test]
    fn the_format_stays() {
        // A client of another version must find the same slots: these values are part of the format.
        let digest = KeyDigest::new(&SEED, b"key").unwrap();
        let hash = blake3::keyed_hash(&SEED, b"key");
        assert_eq!(digest.fingerprint(16), &hash.as_bytes()[16..]);
        assert_eq!(digest.balance(), hash.as_bytes()[15]);
        let stream = *blake3::keyed_hash(hash.as_bytes(), &[9]).as_bytes();
        assert_eq!(digest.positions(9)[3], word_at(&stream, 24));
        assert_ne!(digest.positions(9), digest.positions(10));
    }

    #[test]
    fn a_position_is_a_key_of_eight_bytes() {
        assert_eq!(position_key(0x0102), [2, 1, 0, 0, 0, 0, 0, 0]);
        let [digest, other] = [0, 1].map(|position| KeyDigest::new(&SEED, &position_key(position)).unwrap());
        assert_eq!(digest.first_half()[..8], digest.0[..8]);
        assert_ne!(digest.first_half(), other.first_half());
    }

    #[test]
    fn blocks_are_uniform_and_differ() {
        for blocks in [1, 2, 3, 100, 100_000] {
            let mut low = 0;
            for digest in digests(2000) {
                let first = digest.first_block(blocks);
                let second = digest.second_block(blocks);
                assert!(first < blocks && second < blocks);
                assert_eq!(first == second, blocks == 1);
                low += usize::from(2 * first < blocks) + usize::from(2 * second < blocks);
            }
            let expected = 4000 * blocks.div_ceil(2) / blocks;
            assert!(low.abs_diff(expected) < 200, "{blocks} blocks: {low} of 4000 in the lower half");
        }
    }
}
