//! The file of keys as it would be opened, without writing to it.

use std::{collections::BTreeMap, io, ops::Bound};

use parking_lot::Mutex;
use redb::{BackendError, StorageBackend, backends::FileBackend};

/// The bytes of the blocks in which changes are kept.
const BLOCK: usize = 4096;

/// A file whose changes stay in memory.
#[derive(Debug)]
pub(super) struct Untouched {
    file: FileBackend,
    state: Mutex<TrialState>,
}

#[derive(Debug)]
struct TrialState {
    /// The length that the file would have.
    len: u64,
    /// The length up to which the file's own bytes count: the least that `len` has ever been.
    kept: u64,
    /// The blocks that would have changed, by their number.
    changed: BTreeMap<u64, Vec<u8>>,
}

impl Untouched {
    pub(super) fn new(file: FileBackend) -> io::Result<Untouched> {
        let len = file.len()?;
        Ok(Untouched { file, state: Mutex::new(TrialState { len, kept: len, changed: BTreeMap::new() }) })
    }

    /// Reads the file's own bytes before `kept`, and zeros beyond.
    fn read_file(&self, kept: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        out.fill(0);
        let there = kept.saturating_sub(offset).min(out.len() as u64) as usize;
        if there == 0 { Ok(()) } else { self.file.read(offset, &mut out[..there]) }
    }
}

/// Splits a range at the blocks. Yields for each block its number, the first byte inside it, and the bytes of the range that are
/// there.
fn blocks(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let inside = (at % BLOCK as u64) as usize;
        let start = done;
        done = (start + BLOCK - inside).min(len);
        (start < len).then_some((at / BLOCK as u64, inside, start..done))
    })
}

impl StorageBackend for Untouched {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_file(state.kept, offset, out)?;
        for (block, inside, range) in blocks(offset, out.len()) {
            if let Some(bytes) = state.changed.get(&block) {
                let count = range.len();
                out[range].copy_from_slice(&bytes[inside..inside + count]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let last = len / BLOCK as u64;
        let inside = (len % BLOCK as u64) as usize;
        state.changed.retain(|&block, _| block <= last);
        if let Some(bytes) = state.changed.get_mut(&last) {
            bytes[inside..].fill(0);
        }
        state.len = len;
        state.kept = state.kept.min(len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        for (block, inside, range) in blocks(offset, data.len()) {
            let mut bytes = match state.changed.remove(&block) {
                Some(bytes) => bytes,
                None => {
                    let mut bytes = vec![0; BLOCK];
                    self.read_file(state.kept, block * BLOCK as u64, &mut bytes)?;
                    bytes
                }
            };
            bytes[inside..inside + range.len()].copy_from_slice(&data[range]);
            state.changed.insert(block, bytes);
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    // Locks go to the file itself: a file that a server uses is found to be in use.

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn changes_are_read_and_the_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let before: Vec<u8> = (0..3 * BLOCK + 100).map(|byte| (byte + byte / BLOCK) as u8 | 1).collect();
        fs::write(&path, &before).unwrap();
        let file = fs::File::options().read(true).write(true).open(&path).unwrap();
        let tried = Untouched::new(FileBackend::new(file).unwrap()).unwrap();
        let mut expected = before.clone();
        let same = |tried: &Untouched, expected: &[u8]| {
            let mut read = vec![9; expected.len()];
            tried.read(0, &mut read).unwrap();
            assert!(read == expected && tried.len().unwrap() == expected.len() as u64);
            assert!(tried.read(1, &mut read).is_err());
        };
        same(&tried, &expected);
        for (offset, count) in [(0, 1), (BLOCK - 1, 2), (BLOCK + 7, 2 * BLOCK), (3 * BLOCK + 99, 1)] {
            tried.write(offset as u64, &vec![2; count]).unwrap();
            expected[offset..offset + count].fill(2);
            same(&tried, &expected);
        }
        // Bytes that are cut off do not come back.
        for len in [2 * BLOCK + 5, 5 * BLOCK, 0, 100] {
            tried.set_len(len as u64).unwrap();
            expected.resize(len, 0);
            same(&tried, &expected);
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
