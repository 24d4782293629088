//! Checksums of a file in chunks, so that damage is located and large files are checked in parallel.

use std::{collections::BTreeSet, ops::Range, path::Path, thread};

use parking_lot::Mutex;
use rayon::prelude::*;

use super::SnapshotError;
use crate::cancel::{Cancel, Cancelled};

/// The bytes that one checksum covers.
pub const CHUNK_BYTES: usize = 4 << 20;

/// The least number of threads that read a file, even with fewer cores: a disk serves several reads at a time.
const READERS: usize = 8;

/// A buffer for the bytes of a chunk, which a thread reuses.
#[derive(Default)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    /// Returns `length` bytes of the buffer, with whatever content was left in it.
    pub(super) fn of(&mut self, length: usize) -> &mut [u8] {
        if self.0.len() < length {
            self.0 = vec![0; length];
        }
        &mut self.0[..length]
    }
}

/// Passes the items to `work` on several threads, in order, until a call fails. Returns the error of the first failed item.
pub(super) fn in_parallel<I: Send>(
    items: Vec<I>,
    work: impl Fn(I, &mut Buffer) -> Result<(), SnapshotError> + Sync,
) -> Result<(), SnapshotError> {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = items.len().min(cores.max(READERS));
    let waiting = Mutex::new(items.into_iter().enumerate());
    let failed = Mutex::new(None);
    let run = || {
        let mut buffer = Buffer::default();
        while failed.lock().is_none() {
            let Some((index, item)) = waiting.lock().next() else { return };
            if let Err(error) = work(item, &mut buffer) {
                let mut failed = failed.lock();
                if failed.as_ref().is_none_or(|(first, _)| index < *first) {
                    *failed = Some((index, error));
                }
            }
        }
    };
    match threads {
        0 | 1 => run(),
        _ => thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run)))),
    }
    failed.into_inner().map_or(Ok(()), |(_, error)| Err(error))
}

/// Returns the BLAKE3 hash of every chunk of `bytes`.
pub(super) fn chunk_hashes(bytes: &[u8], cancel: &Cancel) -> Result<Vec<blake3::Hash>, Cancelled> {
    bytes.par_chunks(CHUNK_BYTES).map(|chunk| cancel.check().map(|()| blake3::hash(chunk))).collect()
}

/// Returns the numbers of the chunks that contain a byte of `ranges`, ascending.
pub(super) fn chunks_of(ranges: &[Range<usize>]) -> Vec<usize> {
    let mut chunks = BTreeSet::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        chunks.extend(range.start / CHUNK_BYTES..range.end.div_ceil(CHUNK_BYTES));
    }
    chunks.into_iter().collect()
}

/// Returns those of `chunks` that differ from their expected hash, or are missing. `bytes` is the content of the file.
pub(super) fn differing(bytes: &[u8], expected: &[[u8; 32]], chunks: &[usize]) -> Vec<usize> {
    chunks
        .par_iter()
        .copied()
        .filter(|chunk: &usize| {
            let content = bytes.chunks(CHUNK_BYTES).nth(*chunk);
            content
                .zip(expected.get(*chunk))
                .is_none_or(|(content, expected)| blake3::hash(content) != *expected)
        })
        .collect()
}

/// Checks every chunk of `bytes`, the content of the file at `path`. Fails with [`SnapshotError::Corrupt`] at the first bad one.
pub(super) fn verify_chunks(path: &Path, bytes: &[u8], expected: &[[u8; 32]]) -> Result<(), SnapshotError> {
    let damaged = bytes
        .par_chunks(CHUNK_BYTES)
        .zip(expected)
        .position_first(|(chunk, expected)| blake3::hash(chunk) != blake3::Hash::from_bytes(*expected));
    match damaged {
        None => Ok(()),
        Some(chunk) => Err(SnapshotError::Corrupt {
            path: path.to_owned(),
            start: (chunk * CHUNK_BYTES) as u64,
            end: ((chunk + 1) * CHUNK_BYTES).min(bytes.len()) as u64,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use super::*;

    #[test]
    fn the_first_fault_is_told_even_if_it_is_found_later() {
        let has_failed = AtomicBool::new(false);
        let outcome = in_parallel(vec!["first", "second"], |item, _| {
            while item == "first" && !has_failed.load(SeqCst) {
                thread::yield_now();
            }
            has_failed.store(true, SeqCst);
            Err(SnapshotError::Exists(item.into()))
        });
        assert!(matches!(outcome, Err(SnapshotError::Exists(item)) if item == Path::new("first")));
        assert!(in_parallel(Vec::<()>::new(), |(), _| Err(SnapshotError::Exists("".into()))).is_ok());
    }

    #[test]
    fn a_buffer_has_the_length_that_is_asked_for() {
        let mut buffer = Buffer::default();
        assert_eq!([3, 5, 2, 0].map(|length| buffer.of(length).len()), [3, 5, 2, 0]);
    }
}
