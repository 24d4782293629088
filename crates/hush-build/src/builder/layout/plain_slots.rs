//! Slots as plain bytes, written by many threads, and the compressed file of them that clients download.

use std::{
    ops::Range,
    sync::atomic::{AtomicU8, Ordering::Relaxed},
};

use hush_engine::Progress;
use hush_ingest::{IngestError, compress_slots};
use hush_protocol::{descriptor::BlobRef, table::TableShape};
use hush_store::snapshot::{DB_FILE, FileEntry, HINT_FILE, MappedFile, SegmentWriter};

use crate::builder::BuildError;

/// The slots of all blocks, as relaxed atomic bytes, which compile to plain stores.
pub(in crate::builder) struct PlainSlots<'a> {
    bytes: &'a [AtomicU8],
    shape: TableShape,
}

impl<'a> PlainSlots<'a> {
    /// Creates the slots of a table of `shape` over `bytes`.
    pub(in crate::builder) fn new(bytes: &'a mut [u8], shape: TableShape) -> Self {
        // SAFETY: AtomicU8 has the size, alignment and validity of u8; the borrow is exclusive.
        let bytes = unsafe { &*(std::ptr::from_mut(bytes) as *const [AtomicU8]) };
        Self { bytes, shape }
    }

    /// Returns the shape of the table.
    pub(in crate::builder) fn shape(&self) -> TableShape {
        self.shape
    }

    /// Writes the bytes `part` of all slots of a block.
    pub(in crate::builder) fn write(&self, block: usize, part: &Range<usize>, slots: &[u8]) {
        let TableShape { columns, slot_bytes, .. } = self.shape;
        let block = &self.bytes[block * columns * slot_bytes..][..columns * slot_bytes];
        for (slot, own) in block.chunks_exact(slot_bytes).zip(slots.chunks_exact(part.len())) {
            slot[part.clone()].iter().zip(own).for_each(|(to, &byte)| to.store(byte, Relaxed));
        }
    }
}

/// Writes the file that clients download, and removes the slots of the segment. The file is a Zstandard frame of the slots, or
/// the slots themselves if a frame is no shorter.
pub(in crate::builder) fn write_download(
    writer: &SegmentWriter<'_>,
    progress: &dyn Progress,
) -> Result<(BlobRef, FileEntry), BuildError> {
    let slots = MappedFile::open(&writer.path(DB_FILE))?;
    let slots: &[u8] = slots.as_ref();
    progress.start("compress", slots.len() as u64, "bytes");
    let frame = compress_slots(slots).map_err(IngestError::Compress)?;
    let content = if frame.len() < slots.len() { &frame[..] } else { slots };
    let mut file = writer.create_mapped(HINT_FILE, content.len())?;
    file.bytes().copy_from_slice(content);
    progress.advance(slots.len() as u64);
    let blob = BlobRef { blake3: file.blob_hash()?, bytes: content.len() as u64 };
    let entry = file.finish()?;
    writer.remove(DB_FILE)?;
    Ok((blob, entry))
}
