//! Sorted tables: rows in the order of their keys, so that a client finds neighbours, prefixes and ranges.
//!
//! A record of such a table is a [leaf]: some rows that follow each other. The first key of each leaf, its *fence*, is public: a
//! client downloads all [fences] once, and looks the leaf of its key up by position. A leaf also has the row before its own rows,
//! and one or more rows behind them, so that a single look-up always finds both neighbours of a key.

pub mod fences;
pub mod found;
pub mod leaf;
pub mod order;

use serde::{Deserialize, Serialize};

use crate::{
    ProtocolError,
    descriptor::{BlobRef, Descriptor, Lookup},
    table::invalid_descriptor,
};
use fences::MAX_FENCE_BYTES;
use order::SortOrder;

/// The description of a sorted table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sorted {
    /// The order of keys.
    pub order: SortOrder,
    /// The form of rows that are ranges. `None` if rows have a single key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeForm>,
    /// The number of rows. A range that others interrupt has several rows.
    pub rows: u64,
    /// The most bytes of rows that a leaf repeats from those behind it; at least one row is repeated.
    pub overlap: u64,
    /// The fences of the leaves that were built, in order.
    pub fences: FenceFile,
    /// The fences of leaves that were split from others, with the position of each. `None` if no leaf was split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<FenceFile>,
}

/// A file of fences: a Zstandard frame (RFC 8878).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceFile {
    /// The file as clients download it.
    pub blob: BlobRef,
    /// The length of the text of the frame, in bytes.
    pub length: u64,
}

/// The form of ranges in the input, which is the form in which clients are shown ranges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RangeForm {
    /// A column of first keys, which is the key column, and a column of last keys of this name.
    To(String),
    /// A column of networks, such as `192.0.2.0/24`.
    Network,
}

impl Sorted {
    /// Checks the description as a part of `descriptor`.
    ///
    /// # Errors
    /// [`ProtocolError::Descriptor`] if the table cannot be sorted, or a length is out of range.
    pub fn check(&self, descriptor: &Descriptor) -> Result<(), ProtocolError> {
        if matches!(descriptor.lookup, Lookup::Key(_)) {
            return Err(invalid_descriptor("the leaves of a sorted table are found by position"));
        }
        if descriptor.schema.as_ref().is_none_or(|schema| schema.key.len() != 1) {
            return Err(invalid_descriptor("the key of a sorted table is one column"));
        }
        if matches!(self.range, Some(RangeForm::Network)) && self.order != SortOrder::Ip {
            return Err(invalid_descriptor("networks are in the order of IP addresses"));
        }
        let mut files = [Some(&self.fences), self.added.as_ref()].into_iter().flatten();
        if !files.all(|file| file.blob.bytes <= MAX_FENCE_BYTES && file.length <= MAX_FENCE_BYTES) {
            return Err(invalid_descriptor("the fences are longer than any table's"));
        }
        Ok(())
    }

    /// Returns the files of fences.
    pub fn files(&self) -> impl Iterator<Item = &FenceFile> {
        std::iter::once(&self.fences).chain(&self.added)
    }
}
