//! The filter of one block, or of a stripe of its slots, with everything that it depends on.

use std::sync::Arc;

use hush_cpu::Cpu;
use hush_ops::symbol::Symbol;
use hush_protocol::keyword::{FilterKind, FilterParams, KeyDigest, WrappedFilter};

use crate::builder::BuildError;

/// The size of a filter: the same for all blocks of a segment.
#[derive(Clone, Copy)]
pub(in crate::builder) struct FilterSize {
    pub(in crate::builder) kind: FilterKind,
    /// The slots of a block: its columns.
    pub(in crate::builder) slots: usize,
    /// The columns of the base, if the segment is beside one; `None` in the base.
    pub(in crate::builder) base_columns: Option<usize>,
}

/// The seeds under which a filter is built.
pub(in crate::builder) enum Seeds {
    /// A seed is found for the block.
    Any,
    /// The seed of the block is given.
    OfBlock(u8),
    /// The segment is beside a base, and each key has the seed of its block in the base.
    OfKeys(Vec<u8>),
}

/// A block to be solved, or a stripe of its slots.
pub(in crate::builder) struct FilterBlock<S> {
    /// The digests of the block's keys; stripes of one block share them.
    pub(in crate::builder) digests: Arc<Vec<KeyDigest>>,
    pub(in crate::builder) seeds: Seeds,
    /// The symbols of all keys, `size` for each.
    pub(in crate::builder) values: Vec<S>,
    /// The number of symbols of a slot.
    pub(in crate::builder) size: usize,
}

impl<S: Symbol> FilterBlock<S> {
    /// Returns the seed of the block (0 beside a base), and the symbols of its slots, one slot after another. The seed depends only
    /// on the keys, so that all stripes of a block have the same one.
    ///
    /// # Errors
    /// [`BuildError::Filter`] if no seed solves the block; [`BuildError::Ops`] if a computation fails.
    ///
    /// # Panics
    /// If seeds are given, and they do not solve the block.
    pub(in crate::builder) fn solve(
        &self,
        filter: FilterSize,
        cpu: &Cpu,
    ) -> Result<(u8, Vec<S>), BuildError> {
        let FilterSize { kind, slots, base_columns } = filter;
        let Self { digests, values, size, .. } = self;
        let mut out = vec![S::default(); slots * size];
        let base = FilterParams { kind, slots };
        let seed = match &self.seeds {
            Seeds::Any => base.build(digests, values, *size, cpu, &mut out)?,
            Seeds::OfBlock(seed) => {
                let is_solved = base.build_under(*seed, digests, values, *size, cpu, &mut out)?;
                assert!(is_solved, "it was solved when the seeds were taken over");
                *seed
            }
            Seeds::OfKeys(seeds) => {
                let base_columns = base_columns.expect("seeds of keys are those of a base");
                let filter = WrappedFilter { kind, base_columns, columns: slots };
                let keys: Vec<_> = digests.iter().zip(seeds.iter().copied()).collect();
                let is_solved = filter.build(&keys, values, *size, cpu, &mut out)?;
                assert!(is_solved, "it was solved when the lanes were chosen");
                0
            }
        };
        Ok((seed, out))
    }
}

/// A symbol of slots, with its encoding as little-endian bytes in tasks.
pub(in crate::builder) trait SlotSymbol: Symbol {
    fn to_bytes(symbols: &[Self]) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

impl SlotSymbol for u8 {
    fn to_bytes(symbols: &[Self]) -> Vec<u8> {
        symbols.to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Vec<Self> {
        bytes.to_vec()
    }
}

impl SlotSymbol for u32 {
    fn to_bytes(symbols: &[Self]) -> Vec<u8> {
        symbols.iter().flat_map(|symbol| symbol.to_le_bytes()).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Vec<Self> {
        bytes.as_chunks().0.iter().map(|symbol| Self::from_le_bytes(*symbol)).collect()
    }
}
