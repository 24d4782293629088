//! Samples for the tests of snapshots.

use std::collections::BTreeMap;

use hush_protocol::{
    Protocol,
    descriptor::{BlobRef, DESCRIPTOR_VERSION, Descriptor, Lookup},
    slot::SlotFormat,
};
use hush_store::snapshot::{FORMAT_VERSION, FileEntry, Header};

/// Returns the header of a table with these files.
pub(crate) fn header(descriptor: Descriptor, files: Vec<FileEntry>) -> Header {
    Header {
        version: FORMAT_VERSION,
        written_by: "test".into(),
        descriptor,
        payload_bytes: 1,
        source: "test".into(),
        choice: None,
        changes: None,
        followed: None,
        files,
        objects: BTreeMap::new(),
    }
}

/// Returns the descriptor of a table of one byte.
pub(crate) fn descriptor(hint: Option<BlobRef>) -> Descriptor {
    Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol: Protocol::Simple,
        preset: "none".into(),
        records: 1,
        columns: 1,
        blocks: 1,
        word_bits: Some([32; 3]),
        form: Default::default(),
        slot: SlotFormat::for_values(0, 1, 1),
        schema: None,
        compression: None,
        sorted: None,
        lookup: Lookup::Index,
        hint,
        whitening: None,
        database: [0; 32],
        segments: Vec::new(),
        signature: None,
    }
}
