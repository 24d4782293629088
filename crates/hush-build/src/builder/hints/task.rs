//! Tasks of a build for a crew, as self-contained bytes.

use std::{ops::Range, os::unix::ffi::OsStrExt, path::Path};

use hush_protocol::keyword::KeyDigest;
use prost::{Message, Oneof, bytes::Bytes};

use crate::builder::layout::filter_block::{FilterBlock, FilterSize, Seeds, SlotSymbol};

/// A task of a build for a crew.
#[derive(Clone, PartialEq, Message)]
pub(in crate::builder) struct Task {
    #[prost(oneof = "HintTaskKind", tags = "1, 2")]
    pub(super) what: Option<HintTaskKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum HintTaskKind {
    #[prost(message, tag = "1")]
    Hint(HintTask),
    #[prost(message, tag = "2")]
    Filters(FilterTask),
}

/// A task to compute pieces of a hint's product from the databases of an unfinished table.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HintTask {
    /// The folder of the unfinished table, as the bytes of a path.
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) folder: Bytes,
    #[prost(uint64, tag = "2")]
    pub(super) segment: u64,
    /// Whether the pieces are words of the hint from which a second database is made, not pieces of the final product.
    #[prost(bool, tag = "3")]
    pub(super) is_first: bool,
    #[prost(uint64, tag = "4")]
    pub(super) start: u64,
    #[prost(uint64, tag = "5")]
    pub(super) end: u64,
}

/// A task to solve the filters of blocks of one size.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FilterTask {
    #[prost(string, tag = "1")]
    pub(super) kind: String,
    #[prost(uint64, tag = "2")]
    pub(super) slots: u64,
    /// The columns of the base, if the blocks are of a segment beside it; `None` for blocks of the base.
    #[prost(uint64, optional, tag = "3")]
    pub(super) base_columns: Option<u64>,
    /// The bytes of a symbol: 1 or 4.
    #[prost(uint64, tag = "4")]
    pub(super) symbol_bytes: u64,
    #[prost(message, repeated, tag = "5")]
    pub(super) blocks: Vec<BlockTask>,
}

/// The keys of a block.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BlockTask {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) digests: Bytes,
    /// The seeds: one for each key, or one for the block, or none if the worker has to find the block's seed.
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) seeds: Bytes,
    /// The number of symbols in a slot.
    #[prost(uint64, tag = "3")]
    pub(super) size: u64,
    /// The symbols of all keys, little-endian.
    #[prost(bytes = "bytes", tag = "4")]
    pub(super) values: Bytes,
}

impl Task {
    /// Creates a task to compute pieces of a hint's product, for a segment of the unfinished table in `folder`.
    pub(in crate::builder) fn hint(
        folder: &Path,
        segment: usize,
        is_first: bool,
        pieces: &Range<usize>,
    ) -> Self {
        let folder = Bytes::copy_from_slice(folder.as_os_str().as_bytes());
        let start = pieces.start as u64;
        let end = pieces.end as u64;
        let task = HintTask { folder, segment: segment as u64, is_first, start, end };
        Self { what: Some(HintTaskKind::Hint(task)) }
    }

    /// Creates a task to solve the filters of `blocks`, all of `size`. Its result is, for each block, the seed and the slots.
    pub(in crate::builder) fn filters<S: SlotSymbol>(size: FilterSize, blocks: &[FilterBlock<S>]) -> Self {
        let block = |block: &FilterBlock<S>| BlockTask {
            digests: block.digests.iter().flat_map(KeyDigest::to_bytes).collect(),
            seeds: match &block.seeds {
                Seeds::Any => Bytes::new(),
                Seeds::OfBlock(seed) => Bytes::copy_from_slice(&[*seed]),
                Seeds::OfKeys(seeds) => Bytes::copy_from_slice(seeds),
            },
            size: block.size as u64,
            values: S::to_bytes(&block.values).into(),
        };
        let task = FilterTask {
            kind: size.kind.name().into(),
            slots: size.slots as u64,
            base_columns: size.base_columns.map(|columns| columns as u64),
            symbol_bytes: size_of::<S>() as u64,
            blocks: blocks.iter().map(block).collect(),
        };
        Self { what: Some(HintTaskKind::Filters(task)) }
    }

    pub(in crate::builder) fn to_bytes(&self) -> Bytes {
        self.encode_to_vec().into()
    }
}
