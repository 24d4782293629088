//! Files in this process's own memory: read once, checked while reading, and shared by all readers of the same content.
//!
//! A scan reads a whole database for every batch. Anonymous memory on huge pages is faster to scan than the system's cache of a
//! file, and is not affected if the file is truncated or written to. The cache is advised to drop what was read, so that the
//! content is not in memory twice.

use std::{
    io,
    ops::Range,
    sync::{Arc, Weak},
};

use memmap2::{Mmap, MmapMut, MmapOptions};
use parking_lot::Mutex;

use super::stored::{Stamp, StoredFile};
use crate::snapshot::{
    CHUNK_BYTES, FileEntry, SnapshotError,
    checksum::{self, Buffer},
    system,
};

/// The bytes of a huge page of x86-64.
const HUGE_PAGE: usize = 2 << 20;

/// The treatment of checksums while a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// The checksums are not compared: the content may be anything.
    Skip,
    /// The checksums are compared.
    Compare,
    /// The checksums are not compared: those of the whole file have been compared before. The file must not have changed since.
    Known,
    /// The checksums are not compared: those of the wanted ranges were compared when the bytes were fetched. Other ranges of
    /// the file may still be fetched.
    Fetched,
}

/// The content of a file, or some ranges of it, in memory.
pub struct ResidentFile {
    map: Mmap,
    digest: [u8; 32],
    ranges: Vec<Range<usize>>,
    /// The stamp of the file that was read, if its content was not compared with the digest; `None` if it was.
    unchecked: Option<Stamp>,
}

/// All files in memory. The memory of a file is freed with its last user.
static RESIDENT: Mutex<Vec<Weak<ResidentFile>>> = Mutex::new(Vec::new());

impl ResidentFile {
    /// Returns memory with this content: shares existing memory, or reads the file.
    pub(in crate::snapshot) fn shared(
        file: &StoredFile,
        entry: &FileEntry,
        ranges: &[Range<usize>],
        checksums: Checksums,
    ) -> Result<Arc<Self>, SnapshotError> {
        if let Some(found) = Self::find(file, entry, ranges, checksums) {
            return Ok(found);
        }
        let map = read(file, entry, ranges, checksums)?;
        let unchecked = (checksums == Checksums::Skip).then(|| file.stamp());
        let read = Arc::new(Self { map, digest: entry.digest(), ranges: ranges.to_vec(), unchecked });
        let mut all = RESIDENT.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&read));
        Ok(read)
    }

    /// Returns existing memory with this content, if there is any. Unchecked content is shared only if it was read from the same
    /// file, and if the caller does not want it checked.
    pub(in crate::snapshot) fn find(
        file: &StoredFile,
        entry: &FileEntry,
        ranges: &[Range<usize>],
        checksums: Checksums,
    ) -> Option<Arc<Self>> {
        let digest = entry.digest();
        RESIDENT.lock().iter().filter_map(Weak::upgrade).find(|found: &Arc<Self>| {
            let is_right = match found.unchecked {
                None => true,
                Some(stamp) => checksums != Checksums::Compare && stamp == file.stamp(),
            };
            is_right
                && found.digest == digest
                && found.map.len() as u64 == entry.bytes
                && found.ranges == ranges
        })
    }
}

impl AsRef<[u8]> for ResidentFile {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

/// Reads ranges of a file on several threads, one chunk at a time.
fn read(
    file: &StoredFile,
    entry: &FileEntry,
    ranges: &[Range<usize>],
    checksums: Checksums,
) -> Result<Mmap, SnapshotError> {
    let refused = |error: io::Error| SnapshotError::io(file.path(), "find memory for")(error);
    let length = entry.bytes as usize;
    let mut options = MmapOptions::new();
    options.len(length);
    if *ranges != [0..length] {
        // The bytes outside the ranges take no memory.
        options.no_reserve_swap();
    }
    let mut map = options.map_anon().map_err(refused)?;
    ranges.iter().for_each(|range| advise_huge(&map, range));
    let chunks: Vec<_> = map
        .chunks_mut(CHUNK_BYTES)
        .enumerate()
        .filter_map(|(chunk, to)| {
            let parts = within(ranges, &entry.chunk(chunk));
            (!parts.is_empty()).then_some((chunk, to, parts))
        })
        .collect();
    checksum::in_parallel(chunks, |(chunk, to, parts), buffer| {
        read_chunk(file, entry, chunk, to, &parts, checksums, buffer)
    })?;
    // Without a comparison of checksums, a write to the file during the read is noticed only by its stamp.
    if matches!(checksums, Checksums::Skip | Checksums::Known) && !file.is_unchanged() {
        return Err(file.changed());
    }
    map.make_read_only().map_err(refused)
}

/// Reads `parts` of one chunk into `to`, which has the length of the chunk. Parts are relative to the chunk's start.
fn read_chunk(
    file: &StoredFile,
    entry: &FileEntry,
    chunk: usize,
    to: &mut [u8],
    parts: &[Range<usize>],
    checksums: Checksums,
    buffer: &mut Buffer,
) -> Result<(), SnapshotError> {
    let start = chunk * CHUNK_BYTES;
    system::advise_cache(file.file(), start..start + to.len(), true);
    if *parts == [0..to.len()] {
        file.read_at(to, start)?;
        if checksums == Checksums::Compare {
            file.compare(entry, chunk, to)?;
        }
    } else if checksums == Checksums::Compare {
        let content = buffer.of(to.len());
        file.read_at(content, start)?;
        file.compare(entry, chunk, content)?;
        parts.iter().for_each(|part| to[part.clone()].copy_from_slice(&content[part.clone()]));
    } else {
        parts.iter().try_for_each(|part| file.read_at(&mut to[part.clone()], start + part.start))?;
    }
    system::advise_cache(file.file(), start..start + to.len(), false);
    Ok(())
}

/// Returns the parts of `ranges` within a chunk, relative to its start.
fn within(ranges: &[Range<usize>], chunk: &Range<usize>) -> Vec<Range<usize>> {
    ranges
        .iter()
        .filter_map(|range: &Range<usize>| {
            let start = range.start.max(chunk.start);
            let end = range.end.min(chunk.end);
            (start < end).then(|| start - chunk.start..end - chunk.start)
        })
        .collect()
}

/// Advises huge pages for a range of the map. Unless the range is the whole map, only pages that lie completely within it get the
/// advice, so that unread bytes take no memory.
fn advise_huge(map: &MmapMut, range: &Range<usize>) {
    let base = map.as_ptr().addr();
    let is_all = *range == (0..map.len());
    let start = (base + range.start).next_multiple_of(HUGE_PAGE);
    let end = if is_all { base + range.end } else { (base + range.end) / HUGE_PAGE * HUGE_PAGE };
    if start < end {
        system::advise_huge(map, start - base..end - base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_chunks_are_what_ranges_have_of_them() {
        let ranges = [0..5, 8..20, 30..31];
        assert_eq!(within(&ranges, &(0..10)), [0..5, 8..10]);
        assert_eq!(within(&ranges, &(10..20)), [0..10]);
        assert!(within(&ranges, &(20..30)).is_empty());
        assert_eq!(within(&ranges, &(30..31)), [0..1]);
    }
}
