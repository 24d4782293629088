//! The `fuse` filter: a binary fuse filter over Z_2^k.
//!
//! The slots are cut into segments. A key has one slot in each of `k` (3 or 4) consecutive segments, and its value is the
//! sum of these slots, symbol by symbol. The system is solved by peeling. A slot that only one key has can be set last, so
//! that key is removed with its slots. This repeats until no key is left.
//!
//! Source: Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters" (2022); over Z_p, ChalametPIR
//! section 4.

use hush_ops::symbol::Symbol;

use super::{
    KeyDigest,
    key_hash::{Block, scale},
};

/// The most slots of a key.
const MAX_ARITY: usize = 4;

/// The division of a block's slots into segments.
#[derive(Clone, Copy)]
struct Segments {
    /// The number of slots of a key.
    arity: usize,
    /// The number of segments.
    count: usize,
    /// The number of slots of a segment.
    length: usize,
}

impl Segments {
    /// Creates the segments of a filter. All have one length, and left-over slots stay empty.
    fn new(arity: usize, slots: usize) -> Self {
        let arity = arity.min(slots);
        let wanted = slots / segment_length(arity, slots).max(1);
        let count = wanted.max(arity).max(1);
        Self { arity, count, length: slots / count }
    }

    /// Returns the slots of a key. The first `arity` entries are valid.
    fn locate(&self, digest: &KeyDigest, block_seed: u8) -> [u32; MAX_ARITY] {
        let [first, offsets @ ..] = digest.positions(block_seed);
        let first = scale(first, self.count + 1 - self.arity);
        std::array::from_fn(|i| ((first + i) * self.length + scale(offsets[i], self.length)) as u32)
    }
}

/// Returns the segment length that peels best with the number of slots of [`slots_for`], as measured. A small filter has
/// four segments. In a larger one the length is a power of two that grows with the filter, as in the paper but with other
/// constants. The computation uses only integers, so that every client gets the same result.
fn segment_length(arity: usize, slots: usize) -> usize {
    match (arity, slots.max(1).ilog2()) {
        (..=3, ..=11) | (4.., ..=9) => slots / 4,
        (..=3, size) => 1 << ((6 * size + 5) / 10),
        (4.., size) => 1 << ((7 * size - 11) / 10),
    }
}

/// Slots for 1000 keys, in a block of `2^i` keys, for arity 3 and 4. Measured so that three of four seeds work. The last
/// number holds from `2^20` keys on.
const SLOTS_A_KEY: [[usize; 21]; 2] = [
    [
        4000, 4000, 3000, 2500, 1900, 1630, 1460, 1370, 1335, 1320, 1305, 1285, 1255, 1230, 1205, 1185, 1168,
        1152, 1140, 1131, 1128,
    ],
    [
        4000, 4000, 2500, 2000, 1800, 1620, 1440, 1390, 1365, 1360, 1320, 1275, 1228, 1190, 1158, 1132, 1117,
        1100, 1087, 1080, 1077,
    ],
];

/// Returns the number of slots for `keys` keys. Most seeds work with it.
pub(super) fn slots_for(arity: usize, keys: usize) -> usize {
    let slots_a_key = &SLOTS_A_KEY[usize::from(arity == 4)];
    let Some(size) = keys.checked_ilog2().map(|size| size as usize) else { return 1 };
    let Some(&[below, above]) = slots_a_key.get(size..size + 2).and_then(<[usize]>::first_chunk) else {
        return (keys * slots_a_key[20]).div_ceil(1000);
    };
    let low = below << size;
    let high = above << (size + 1);
    (low + (high - low) * (keys - (1 << size)) / (1 << size)).div_ceil(1000)
}

/// Returns the slots whose sum is the key's value.
pub(super) fn support(digest: &KeyDigest, block_seed: u8, arity: usize, slots: usize) -> Vec<(u32, u8)> {
    let segments = Segments::new(arity, slots);
    segments.locate(digest, block_seed)[..segments.arity].iter().map(|&slot| (slot, 1)).collect()
}

/// Fills the slots. Returns `false` if the keys cannot be peeled under this seed.
pub(super) fn build<S: Symbol>(block: &Block<'_, S>, block_seed: u8, arity: usize, out: &mut [S]) -> bool {
    let &Block { digests, values, slot_size, slots } = block;
    let segments = Segments::new(arity, slots);
    let located: Vec<_> = digests.iter().map(|digest| segments.locate(digest, block_seed)).collect();
    let Some(order) = peel(&located, segments.arity, slots) else { return false };
    out.fill(S::default());
    let mut slot_value = vec![S::default(); slot_size];
    for &Peeled { key, slot } in order.iter().rev() {
        slot_value.copy_from_slice(&values[key as usize * slot_size..][..slot_size]);
        for &other in located[key as usize][..segments.arity].iter().filter(|&&other| other != slot) {
            for (symbol, other) in slot_value.iter_mut().zip(&out[other as usize * slot_size..]) {
                *symbol = symbol.wrapping_sub(*other);
            }
        }
        out[slot as usize * slot_size..][..slot_size].copy_from_slice(&slot_value);
    }
    true
}

/// A key that was removed, and the slot that only it had then.
struct Peeled {
    key: u32,
    slot: u32,
}

/// The remaining keys that have a certain slot.
#[derive(Clone, Copy, Default)]
struct Holders {
    count: u32,
    /// The exclusive or of their indices. If there is one key, this is its index.
    xor: u32,
}

/// Returns an order in which all keys can be removed, or `None` if there is none.
fn peel(located: &[[u32; MAX_ARITY]], arity: usize, slots: usize) -> Option<Vec<Peeled>> {
    let mut holders = vec![Holders::default(); slots];
    for (key, positions) in (0u32..).zip(located) {
        for &slot in &positions[..arity] {
            holders[slot as usize].count += 1;
            holders[slot as usize].xor ^= key;
        }
    }
    let mut single: Vec<u32> = (0..slots as u32).filter(|&slot| holders[slot as usize].count == 1).collect();
    let mut order = Vec::with_capacity(located.len());
    while let Some(slot) = single.pop() {
        let Holders { count: 1, xor: key } = holders[slot as usize] else { continue };
        order.push(Peeled { key, slot });
        for &slot in &located[key as usize][..arity] {
            let holder = &mut holders[slot as usize];
            holder.count -= 1;
            holder.xor ^= key;
            if holder.count == 1 {
                single.push(slot);
            }
        }
    }
    (order.len() == located.len()).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All clients, whatever their version, must compute the same.
    #[test]
    fn the_lengths_of_segments_stay() {
        for (arity, slots, length) in [
            (3, 10, 2),
            (3, 4095, 1023),
            (3, 4096, 1 << 7),
            (3, 1 << 20, 1 << 12),
            (4, 1023, 255),
            (4, 1024, 1 << 5),
            (4, 1 << 20, 1 << 12),
            (4, 1 << 24, 1 << 15),
        ] {
            assert_eq!(segment_length(arity, slots), length, "{arity} {slots}");
        }
    }
}
