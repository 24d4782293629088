//! Leaves of sorted rows, and their fences.
//!
//! ```text
//!   leaf 0   a b c d|e          a leaf has the last row of the leaf before it, its own rows, and some of those behind
//!   leaf 1   d|e f g h|i        (here one), which other look-ups find in their own leaves
//!   leaf 2   h|i k l
//! ```

use std::{collections::VecDeque, path::Path};

use hush_ingest::{IngestError, OnDuplicate, Record, Spool, SpooledRecords};
use hush_protocol::sorted::{
    fences::fence_between,
    leaf::{LeafWriter, most_row_bytes},
};

/// The key and the value of a row.
pub(crate) type LeafPair = (Vec<u8>, Vec<u8>);

/// The sizes of leaves, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafLimits {
    /// The most bytes of a leaf.
    pub(crate) leaf_bytes: usize,
    /// The bytes that are filled when the leaf is built. The rest is for changes.
    pub(crate) filled: usize,
    /// The bytes of rows that are repeated from the leaves behind; at least one row is.
    pub(crate) overlap: usize,
    /// The most bytes of a row.
    pub(crate) longest: usize,
}

/// Puts rows that come in order into leaves.
pub(crate) struct LeafPacker {
    limits: LeafLimits,
    spool: Spool,
    fences: LeafWriter,
    /// The last row of the leaf before.
    before: Option<LeafPair>,
    /// The rows that are in no leaf yet.
    waiting: VecDeque<LeafPair>,
    /// The bytes of these rows, without what keys share.
    waiting_bytes: usize,
    /// The bytes at which leaves are made of them.
    enough: usize,
    /// The number of all rows, and their bytes.
    rows: usize,
    bytes: usize,
}

impl LeafPacker {
    pub(crate) fn create(dir: &Path, limits: LeafLimits) -> Result<Self, IngestError> {
        let spool = Spool::create(dir)?;
        let fences = LeafWriter::default();
        let enough = 2 * limits.leaf_bytes;
        Ok(Self {
            limits,
            spool,
            fences,
            before: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            enough,
            rows: 0,
            bytes: 0,
        })
    }

    pub(crate) fn limits(&self) -> LeafLimits {
        self.limits
    }

    /// Returns the mean bytes of a row, at least 1.
    pub(crate) fn mean_row(&self) -> usize {
        self.bytes.div_ceil(self.rows.max(1)).max(1)
    }

    /// Appends a row, whose key is above those before.
    pub(crate) fn push(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), IngestError> {
        self.waiting_bytes += key.len() + value.len() + 1;
        self.rows += 1;
        self.bytes += most_row_bytes(&key, &value);
        self.waiting.push_back((key, value));
        if self.waiting_bytes > self.enough {
            self.fill(false)?;
            // Rows may take much less in a leaf, where keys share their beginnings. Then it takes many more to fill one.
            self.enough = 2 * self.waiting_bytes.max(self.limits.leaf_bytes);
        }
        Ok(())
    }

    /// Writes leaves of the rows that wait, as long as there are enough for what a leaf repeats. If `is_end`, writes all.
    fn fill(&mut self, is_end: bool) -> Result<(), IngestError> {
        let LeafLimits { filled, overlap, longest, .. } = self.limits;
        while !self.waiting.is_empty() {
            let mut leaf = LeafWriter::default();
            self.before.iter().for_each(|(key, value)| leaf.push(key, value));
            let mut own = 0;
            while let Some((key, value)) = self.waiting.get(own) {
                let behind = match overlap {
                    0 => self.waiting.get(own + 1).map_or(0, |(key, value)| most_row_bytes(key, value)),
                    _ => overlap + longest,
                };
                if own > 0 && leaf.bytes() + most_row_bytes(key, value) + behind > filled {
                    break;
                }
                leaf.push(key, value);
                own += 1;
            }
            let behind = leaf.bytes();
            let mut repeated = own;
            while let Some((key, value)) = self.waiting.get(repeated) {
                if repeated > own && leaf.bytes() - behind >= overlap {
                    break;
                }
                leaf.push(key, value);
                repeated += 1;
            }
            if repeated == self.waiting.len() && !is_end {
                break;
            }
            let first = &self.waiting[0].0;
            let fence = self.before.as_ref().map_or(&[][..], |(before, _)| fence_between(before, first));
            self.fences.push(fence, &[]);
            self.spool.push(&Record { key: None, value: leaf.finish() })?;
            self.before = self.waiting.drain(..own).next_back();
        }
        self.waiting_bytes = self.waiting.iter().map(|(key, value)| key.len() + value.len() + 1).sum();
        Ok(())
    }

    /// Ends the leaves, and appends empty ones: `spare` for their number. Returns all leaves, and the text of the fences.
    pub(crate) fn finish(
        mut self,
        spare: impl FnOnce(usize) -> usize,
    ) -> Result<(SpooledRecords, Vec<u8>), IngestError> {
        self.fill(true)?;
        if self.spool.is_empty() {
            // A table whose rows are all deleted has one empty leaf.
            self.fences.push(&[], &[]);
            self.spool.push(&Record::default())?;
        }
        for _ in 0..spare(self.spool.len()) {
            self.spool.push(&Record::default())?;
        }
        Ok((self.spool.finish(OnDuplicate::Error)?, self.fences.finish()))
    }
}
