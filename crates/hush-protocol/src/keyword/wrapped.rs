//! The filter of a segment that is asked with the queries of another segment, the base.
//!
//! A query encrypts the support of a key in the base. The server wraps the query: it adds column `c` of the base to column
//! `c mod D` of the segment, which has D columns. So the support of a key in the segment is its support in the base,
//! wrapped to a *cyclic* band, and the segment's filter has no seeds to choose. The lane of a key can be chosen
//! ([`LaneMap`]), because only the client uses it.
//!
//! ```text
//!   base      0 │ 1 │ 2 │ .. │ D-1 │ D │ D+1 │ ..           a key's band: columns s .. s + w
//!   segment   0 │ 1 │ 2 │ .. │ D-1 │ 0 │  1  │ ..           modulo D, it may cross the end
//!
//!   folded    0 │ D-1 │ 1 │ D-2 │ 2 │ ..                    the circle laid flat: a band of 2w without wrap-around
//! ```
//!
//! A band on a circle is never cut off at an end, so cyclic systems are solvable at loads at which linear ones are not.
//! Folded flat, they become linear systems of twice the width, for the same solver.

use hush_math::constant_time::{byte_at, chunk_at};
use hush_ops::{
    OpsError,
    contract::{BandSystem, FilterOps},
    symbol::Symbol,
};
use serde::{Deserialize, Serialize};

use super::{BlockMap, FilterKind, KeyDigest, NotBalanced, band::locate};

/// The widest band that the solver takes after folding.
const MAX_WIDTH: usize = 128;

/// The public arrays that tell a client the lane of a key within its entry of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneMap {
    /// The seeds, one byte for each entry: the seed under which the entry's lanes could be solved.
    #[serde(with = "hex")]
    pub seeds: Vec<u8>,
    /// The thresholds, one byte for each block, as in a [`BlockMap`] for the lanes of each entry.
    #[serde(with = "hex")]
    pub thresholds: Vec<u8>,
}

impl LaneMap {
    /// Distributes the keys of an entry to `lanes` lanes with at most `capacity` keys each. Returns the thresholds of the lanes.
    ///
    /// # Errors
    /// [`NotBalanced`] if there are no such thresholds.
    pub fn thresholds<'a>(
        digests: impl IntoIterator<Item = &'a KeyDigest>,
        lanes: usize,
        capacity: usize,
        seed: u8,
    ) -> Result<Vec<u8>, NotBalanced> {
        let derived: Vec<KeyDigest> = digests.into_iter().map(|digest| digest.of_lanes(seed)).collect();
        Ok(BlockMap::assign(&derived, lanes, capacity)?.thresholds)
    }

    /// Returns the block of a key in `entry`. Every entry has `lanes` lanes, and a block for each.
    pub fn block_of(&self, digest: &KeyDigest, entry: usize, lanes: usize) -> usize {
        let own = entry * lanes;
        own + Self::lane_of(digest, self.seeds[entry], &self.thresholds[own..own + lanes])
    }

    /// Returns what [`LaneMap::block_of`] does, for a key that is looked up. Reads the whole map, whatever the key.
    pub fn sought_block(&self, digest: &KeyDigest, entry: usize, lanes: usize) -> usize {
        let thresholds = chunk_at(&self.thresholds, lanes, entry);
        entry * lanes + digest.of_lanes(byte_at(&self.seeds, entry)).sought_block(&thresholds)
    }

    /// Returns the lane of a key in its entry, from the seed and the thresholds of that entry.
    pub fn lane_of(digest: &KeyDigest, seed: u8, thresholds: &[u8]) -> usize {
        let digest = digest.of_lanes(seed);
        let lanes = thresholds.len();
        let first = digest.first_block(lanes);
        if digest.balance() < thresholds[first] { digest.second_block(lanes) } else { first }
    }
}

/// The filter of a block of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrappedFilter {
    /// The kind of the base's filter.
    pub kind: FilterKind,
    /// The number of columns of the base.
    pub base_columns: usize,
    /// The number of columns of the segment, which divides that of the base.
    pub columns: usize,
}

/// A key of a block: its digest, and the filter seed of its block in the base.
pub type Seeded<'a> = (&'a KeyDigest, u8);

impl WrappedFilter {
    /// Returns whether segments can be asked with the queries of a base that has a filter of this kind.
    pub fn suits(kind: FilterKind) -> bool {
        kind.band_width().is_some_and(|width| width <= MAX_WIDTH)
    }

    /// Returns the fewest columns of a segment, which is twice the width of the band.
    pub fn min_columns(kind: FilterKind) -> usize {
        2 * kind.band_width().unwrap_or(0)
    }

    /// Returns the most keys that a block of `columns` columns should hold. As measured, at most one in a hundred blocks
    /// with so many keys has no solution; such a block is distributed again under another seed.
    pub fn capacity(kind: FilterKind, columns: usize) -> usize {
        let doublings = |from: u32| f64::from(columns.max(1).ilog2().saturating_sub(from));
        let slack = match kind.band_width() {
            Some(MAX_WIDTH) => 0.01 + 0.01 * doublings(12),
            _ => 0.025 + 0.0175 * doublings(10),
        };
        ((columns as f64 / (1.0 + slack)) as usize).saturating_sub(8)
    }

    /// Builds the filter of a block. Writes `columns x slot_size` symbols to `out`, so that the wrapped support of each key
    /// adds up to its `slot_size` values. Returns `false` if there is no such filter.
    ///
    /// # Errors
    /// [`OpsError`] if a length is wrong, or there are fewer columns than [`WrappedFilter::min_columns`].
    pub fn build<S: Symbol>(
        &self,
        keys: &[Seeded<'_>],
        values: &[S],
        slot_size: usize,
        ops: &dyn FilterOps,
        out: &mut [S],
    ) -> Result<bool, OpsError> {
        let Self { kind, base_columns, columns } = *self;
        let width = kind.band_width().filter(|&width| width <= MAX_WIDTH).unwrap_or(0);
        let step = "wrapped filter";
        OpsError::check_shape(step, "value symbols", keys.len() * slot_size, values.len())?;
        OpsError::check_shape(step, "slot symbols", columns * slot_size, out.len())?;
        OpsError::check_shape(step, "least columns", (2 * width).max(1), columns.min((2 * width).max(1)))?;
        let mut rows: Vec<(u32, [u64; 4], u32)> = (0u32..)
            .zip(keys)
            .map(|(key, (digest, seed))| {
                let (start, coeffs) = folded(locate(digest, *seed, width, base_columns), width, columns);
                (start, coeffs, key)
            })
            .collect();
        rows.sort_unstable();
        let mut sorted = Vec::with_capacity(values.len());
        for &(_, _, key) in &rows {
            sorted.extend_from_slice(&values[key as usize * slot_size..][..slot_size]);
        }
        let system = BandSystem {
            slots: columns,
            width: 2 * width,
            starts: rows.iter().map(|row| row.0).collect(),
            coeffs: rows.iter().map(|row| row.1).collect(),
        };
        drop(rows);
        let mut flat = vec![S::default(); out.len()];
        match S::band_solve(ops, &system, &sorted, slot_size, &mut flat) {
            Err(OpsError::Singular) => return Ok(false),
            outcome => outcome?,
        }
        for (column, slot) in out.chunks_exact_mut(slot_size.max(1)).enumerate() {
            slot.copy_from_slice(&flat[place(column, columns) * slot_size..][..slot_size]);
        }
        Ok(true)
    }
}

/// Returns the position of a column after the circle is laid flat. Neighbours are at most two positions apart.
fn place(column: usize, columns: usize) -> usize {
    if column < columns.div_ceil(2) { 2 * column } else { 2 * (columns - 1 - column) + 1 }
}

/// Converts a band of the base to a band of twice the width in the folded segment: its first position and its coefficients.
fn folded((start, coeffs): (u32, [u64; 4]), width: usize, columns: usize) -> (u32, [u64; 4]) {
    let places = || {
        let ones = (0..width).filter(|bit| coeffs[bit / 64] >> (bit % 64) & 1 == 1);
        ones.map(|bit| place((start as usize + bit) % columns, columns))
    };
    let first = places().min().unwrap_or(0).min(columns - 2 * width);
    let mut folded = [0; 4];
    places().for_each(|place| folded[(place - first) / 64] ^= 1 << ((place - first) % 64));
    (first as u32, folded)
}

#[cfg(test)]
mod tests {
    use hush_math::csprng::Csprng;
    use hush_ops::reference::Reference;

    use super::*;
    use crate::keyword::FilterParams;

    const BASE: usize = 1 << 14;

    fn digests(keys: std::ops::Range<u64>) -> Vec<KeyDigest> {
        keys.map(|key| KeyDigest::new(&[9; 32], &key.to_le_bytes()).unwrap()).collect()
    }

    /// Returns the result of a wrapped look-up.
    fn look_up(filter: WrappedFilter, digest: &KeyDigest, seed: u8, slots: &[u8], size: usize) -> Vec<u8> {
        let base = FilterParams { kind: filter.kind, slots: filter.base_columns };
        let mut value = vec![0u8; size];
        for (column, coeff) in base.support(digest, seed) {
            let slot = &slots[column as usize % filter.columns * size..][..size];
            value
                .iter_mut()
                .zip(slot)
                .for_each(|(sum, byte)| *sum = sum.wrapping_add(coeff.wrapping_mul(*byte)));
        }
        value
    }

    #[test]
    fn every_key_is_found_whatever_the_columns() {
        for kind in [FilterKind::Band64, FilterKind::Band128] {
            for columns in [WrappedFilter::min_columns(kind), 512, 1024, 3 * 1024, BASE] {
                let filter = WrappedFilter { kind, base_columns: BASE, columns };
                for keys in [0, 1, 7, WrappedFilter::capacity(kind, columns)] {
                    let mut first = 0;
                    loop {
                        let digests = digests(first..first + keys as u64);
                        let seeded: Vec<Seeded<'_>> =
                            digests.iter().enumerate().map(|(key, digest)| (digest, key as u8 % 3)).collect();
                        let mut values = vec![0; keys * 5];
                        Csprng::insecure_from_seed(3).fill_bytes(&mut values);
                        let mut slots = vec![7; columns * 5];
                        if !filter.build(&seeded, &values, 5, &Reference, &mut slots).unwrap() {
                            first += 1 << 20;
                            assert!(first < 5 << 20, "{kind}, {keys} keys in {columns} columns");
                            continue;
                        }
                        for ((digest, seed), value) in seeded.iter().zip(values.chunks(5)) {
                            assert_eq!(look_up(filter, digest, *seed, &slots, 5), value, "{kind}, {columns}");
                        }
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn a_block_holds_as_many_keys_as_were_measured() {
        let capacity = |kind| [9, 1024, 4096, 1 << 14, 1 << 16].map(|n| WrappedFilter::capacity(kind, n));
        assert_eq!(capacity(FilterKind::Band128), [0, 1005, 4047, 15_898, 62_407]);
        assert_eq!(capacity(FilterKind::Band64), [0, 991, 3856, 14_954, 57_988]);
    }

    #[test]
    fn lanes_fill_evenly_in_every_entry() {
        let entries: Vec<_> = (0..4).map(|entry| digests(entry * 10_000..entry * 10_000 + 3000)).collect();
        let mut map = LaneMap { seeds: vec![0, 1, 0, 7], thresholds: Vec::new() };
        for (keys, &seed) in entries.iter().zip(&map.seeds) {
            map.thresholds.extend(LaneMap::thresholds(keys, 6, 510, seed).unwrap());
        }
        for (entry, keys) in entries.iter().enumerate() {
            let mut loads = [0; 6];
            for key in keys {
                let block = map.block_of(key, entry, 6);
                loads[block - 6 * entry] += 1;
                assert_eq!(map.sought_block(key, entry, 6), block);
            }
            assert!(loads.iter().sum::<i32>() == 3000 && loads.iter().all(|&load| load <= 510), "{loads:?}");
        }
        assert!(LaneMap::thresholds(&entries[0], 6, 499, 0).is_err());
    }

    #[test]
    fn wrong_shapes_are_refused() {
        let filter = WrappedFilter { kind: FilterKind::Band128, base_columns: BASE, columns: 512 };
        let narrow = WrappedFilter { columns: 128, ..filter };
        assert!(filter.build::<u8>(&[], &[1], 1, &Reference, &mut [0; 512]).is_err());
        assert!(filter.build::<u8>(&[], &[], 1, &Reference, &mut [0; 511]).is_err());
        assert!(narrow.build::<u8>(&[], &[], 1, &Reference, &mut [0; 128]).is_err());
        assert!(!WrappedFilter::suits(FilterKind::Band256) && !WrappedFilter::suits(FilterKind::Fuse3));
    }
}
