//! The key filter of one block. It stores the values of `keys` keys in `slots` slots, each value as a small sum of slots.

use std::{fmt, str::FromStr};

use hush_ops::{OpsError, contract::FilterOps, symbol::Symbol};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{KeyDigest, band, fuse, key_hash::Block};
use crate::wording::Wording;

/// A kind of filter, by its name in a descriptor: `fuse3`, `band256`, ...
///
/// | filter    | slots a key, 2^15 slots | 2^20 slots | slots in a look-up |
/// |-----------|-------------------------|------------|--------------------|
/// | `fuse3`   | 1.189                   | 1.128      | 3                  |
/// | `fuse4`   | 1.136                   | 1.077      | 4                  |
/// | `band64`  | 1.073                   | 1.099      | about 33           |
/// | `band128` | 1.029                   | 1.042      | about 65           |
/// | `band192` | 1.018                   | 1.026      | about 97           |
/// | `band256` | 1.012                   | 1.018      | about 129          |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterKind {
    /// Binary fuse, three slots a key.
    Fuse3,
    /// Binary fuse, four slots a key.
    Fuse4,
    /// Band of width 64.
    Band64,
    /// Band of width 128.
    Band128,
    /// Band of width 192.
    Band192,
    /// Band of width 256.
    Band256,
}

/// The error for a name that no filter has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no key filter is called {name:?}; there are fuse3, fuse4, band64, band128, band192 and band256")]
pub struct UnknownFilter {
    /// The unknown name.
    pub name: String,
}

/// The reason why a filter could not be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum FilterError {
    #[error("key filter: {what} is {actual}, expected {expected}")]
    Shape { what: &'static str, expected: usize, actual: usize },
    #[error("a key occurs twice in one block")]
    DuplicateKey,
    #[error(
        "{keys} keys do not fit into {slots} slots under any of the 256 seeds: {}",
        Wording("use {filter=band256}, or another {columns}")
    )]
    NoSeed { keys: usize, slots: usize },
    /// A step of the backend failed.
    #[error(transparent)]
    Ops(#[from] OpsError),
}

enum Family {
    Fuse { arity: usize },
    Band { width: usize },
}

impl FilterKind {
    /// All filters.
    pub const ALL: [Self; 6] =
        [Self::Fuse3, Self::Fuse4, Self::Band64, Self::Band128, Self::Band192, Self::Band256];

    /// Returns the name that descriptors and the command line use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fuse3 => "fuse3",
            Self::Fuse4 => "fuse4",
            Self::Band64 => "band64",
            Self::Band128 => "band128",
            Self::Band192 => "band192",
            Self::Band256 => "band256",
        }
    }

    /// Returns the number of slots that a block of `keys` keys should have, at least 1. It is the smallest number found to
    /// work under one of the first few seeds (`docs/explanation/notes/key-filters.md`).
    pub fn slots_for(self, keys: usize) -> usize {
        match self.family() {
            Family::Fuse { arity } => fuse::slots_for(arity, keys),
            Family::Band { width } => band::slots_for(width, keys),
        }
    }

    /// Returns the most keys of a block of `slots` slots: the largest number with `slots_for(keys) <= slots`.
    pub fn capacity(self, slots: usize) -> usize {
        let mut fits = 0;
        let mut too_many = slots + 1;
        while too_many - fits > 1 {
            let keys = fits + (too_many - fits) / 2;
            if self.slots_for(keys) <= slots { fits = keys } else { too_many = keys }
        }
        fits
    }

    /// Returns the width of the band, or `None` if the filter is no band filter.
    pub(super) fn band_width(self) -> Option<usize> {
        match self.family() {
            Family::Fuse { .. } => None,
            Family::Band { width } => Some(width),
        }
    }

    fn family(self) -> Family {
        match self {
            Self::Fuse3 => Family::Fuse { arity: 3 },
            Self::Fuse4 => Family::Fuse { arity: 4 },
            Self::Band64 => Family::Band { width: 64 },
            Self::Band128 => Family::Band { width: 128 },
            Self::Band192 => Family::Band { width: 192 },
            Self::Band256 => Family::Band { width: 256 },
        }
    }
}

impl fmt::Display for FilterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FilterKind {
    type Err = UnknownFilter;

    fn from_str(name: &str) -> Result<Self, UnknownFilter> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownFilter { name: name.to_owned() })
    }
}

/// A kind of filter with its size, which is the same for all blocks of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterParams {
    /// The kind of filter.
    pub kind: FilterKind,
    /// The number of slots of a block (D0), below 2^32.
    pub slots: usize,
}

impl FilterParams {
    /// Returns the slots of a key with their coefficients, ascending. The value of the key is `sum coefficient * slot`,
    /// symbol by symbol, and a look-up encrypts the coefficients. The number of entries depends on the filter alone; some
    /// coefficients may be 0. Source: ChalametPIR sections 3.1 and 5 (a look-up is the sum of a key's slots).
    pub fn support(&self, digest: &KeyDigest, block_seed: u8) -> Vec<(u32, u8)> {
        match self.kind.family() {
            Family::Fuse { arity } => fuse::support(digest, block_seed, arity, self.slots),
            Family::Band { width } => band::support(digest, block_seed, width, self.slots),
        }
    }

    /// Builds the filter, and returns the first seed byte, from 0 to 255, under which this succeeds. The seed depends on
    /// the keys alone, not on their order, the values, the symbols or the backend.
    /// Over `u8` the values are sums modulo 256. Over `u32` they are sums modulo 2^32, and therefore modulo 2^k for every k
    /// <= 32: for symbols of k bits, the high bits of the slots may be dropped. Sources: Graf and Lemire (`fuse`),
    /// Dietzfelbinger and Walzer (`band`).
    ///
    /// | name         | shape                  | unit                                 |
    /// |--------------|------------------------|--------------------------------------|
    /// | `digests`    | keys                   |                                      |
    /// | `values`     | keys x `slot_size`     | symbols, in the order of the digests |
    /// | `out`        | slots x `slot_size`    | symbols, slot after slot             |
    ///
    /// # Errors
    /// [`FilterError::Shape`] if a length is wrong. [`FilterError::DuplicateKey`] if a key occurs twice.
    /// [`FilterError::NoSeed`] if there are more keys than slots, or if none of 256 seeds works, which does not happen up
    /// to [`FilterKind::capacity`]. [`FilterError::Ops`] if the backend fails.
    pub fn build<S: Symbol>(
        &self,
        digests: &[KeyDigest],
        values: &[S],
        slot_size: usize,
        ops: &dyn FilterOps,
        out: &mut [S],
    ) -> Result<u8, FilterError> {
        check("value symbols", digests.len() * slot_size, values.len())?;
        check("slot symbols", self.slots * slot_size, out.len())?;
        let no_seed = FilterError::NoSeed { keys: digests.len(), slots: self.slots };
        if digests.len() > self.slots || u32::try_from(self.slots).is_err() {
            return Err(no_seed);
        }
        let block = Block { digests, values, slot_size, slots: self.slots };
        for seed in 0..=u8::MAX {
            if self.try_seed(&block, seed, ops, out)? {
                return Ok(seed);
            }
            if seed == 0 && has_duplicates(digests) {
                return Err(FilterError::DuplicateKey);
            }
        }
        Err(no_seed)
    }

    /// Builds the filter under the seed byte `seed`. Returns `false` if that is impossible under this seed. Fails with
    /// [`FilterError::Shape`] if `values` or `out` has a wrong length, and with [`FilterError::Ops`] if the backend fails.
    pub fn build_under<S: Symbol>(
        &self,
        seed: u8,
        digests: &[KeyDigest],
        values: &[S],
        slot_size: usize,
        ops: &dyn FilterOps,
        out: &mut [S],
    ) -> Result<bool, FilterError> {
        check("value symbols", digests.len() * slot_size, values.len())?;
        check("slot symbols", self.slots * slot_size, out.len())?;
        let fits = digests.len() <= self.slots && u32::try_from(self.slots).is_ok();
        Ok(fits && self.try_seed(&Block { digests, values, slot_size, slots: self.slots }, seed, ops, out)?)
    }

    fn try_seed<S: Symbol>(
        &self,
        block: &Block<'_, S>,
        seed: u8,
        ops: &dyn FilterOps,
        out: &mut [S],
    ) -> Result<bool, OpsError> {
        match self.kind.family() {
            Family::Fuse { arity } => Ok(fuse::build(block, seed, arity, out)),
            Family::Band { width } => match band::build(block, seed, width, ops, out) {
                Ok(()) => Ok(true),
                Err(OpsError::Singular) => Ok(false),
                Err(error) => Err(error),
            },
        }
    }
}

fn check(what: &'static str, expected: usize, actual: usize) -> Result<(), FilterError> {
    if expected == actual { Ok(()) } else { Err(FilterError::Shape { what, expected, actual }) }
}

fn has_duplicates(digests: &[KeyDigest]) -> bool {
    let mut sorted: Vec<&KeyDigest> = digests.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}
