//! The memory of a server for a table and its batches.

use std::hint::black_box;

use hush_cpu::Cpu;
use hush_ops::path::{Content, Footprint, batch_bytes, largest_batch};
use hush_protocol::any_page::TableParams;

use crate::{EngineError, machine};

/// The bytes that the queries and answers of a batch may take in any case.
const BATCH_BYTES: usize = 1 << 30;

/// Returns the bytes of a table that a server has in memory: its files, except those that clients download, and the evaluation
/// keys of `clients` clients, ready for look-ups.
pub fn server_bytes(table: &TableParams, clients: usize) -> u64 {
    let keys = table.facts().keys.map_or(0, |ring| clients * <Cpu as Footprint>::keys(&ring));
    table.held_bytes() + keys as u64
}

/// Returns the most queries that one scan on the CPU answers. Beside the files they take at most a quarter of these, or 1 GiB.
pub fn host_batch(params: &TableParams) -> usize {
    let files = params.files().into_iter().map(|file| file.content);
    let scanned: u64 = files.filter(Content::is_scanned).map(|content| content.bytes()).sum();
    let room = BATCH_BYTES.max(scanned as usize / 4);
    // Segments are answered one after another.
    let batches = params.segments().iter().map(|segment| largest_batch::<Cpu>(&segment.path(), room));
    batches.min().unwrap_or(1)
}

/// The bytes that a scan on the CPU takes beside the table, by the number of its queries.
pub(crate) struct ScanMemory(Vec<usize>);

/// The bytes of a scan from which the memory of the machine is looked at: that takes some 100 µs.
const LOOKED_AT: usize = 16 << 20;

impl ScanMemory {
    /// Creates the list for scans of up to `max_batch` queries.
    pub(crate) fn new(params: &TableParams, max_batch: usize) -> Self {
        let paths: Vec<_> = params.segments().iter().map(|segment| segment.path()).collect();
        // Segments are answered one after another.
        let bytes = |queries| paths.iter().map(|path| batch_bytes::<Cpu>(path, queries)).max().unwrap_or(0);
        Self((0..=max_batch).map(bytes).collect())
    }

    /// Checks that a scan of so many `queries` finds its memory: the system gives it, and neither machine nor container has less
    /// left. Without this, a scan that finds none would end the process, and with it all tables.
    ///
    /// # Errors
    /// [`EngineError::Memory`].
    pub(crate) fn check(&self, queries: usize) -> Result<(), EngineError> {
        let bytes = self.0.get(queries).or(self.0.last()).copied().unwrap_or(0);
        let mut tried = Vec::<u8>::new();
        let is_given = tried.try_reserve_exact(bytes).is_ok();
        // The compiler may leave out memory that nobody looks at.
        black_box(&tried);
        let is_there = || machine::memory().is_none_or(|memory| memory.available >= bytes as u64);
        if is_given && (bytes < LOOKED_AT || is_there()) {
            Ok(())
        } else {
            Err(EngineError::Memory { bytes })
        }
    }
}

#[cfg(test)]
mod tests {
    use hush_protocol::{Protocol, table::TableShape};

    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_scan_without_memory_is_refused() {
        let memory = ScanMemory(vec![0, 1 << 10, LOOKED_AT, usize::MAX / 4, 1 << 62]);
        for (queries, is_there) in [(0, true), (1, true), (2, true), (3, false), (4, false), (9, false)] {
            assert_eq!(memory.check(queries).is_ok(), is_there, "{queries}");
        }
    }

    /// Each case has columns, blocks and bytes of a slot, and the queries that fit, which is what 1 GiB or a quarter of the files
    /// holds.
    #[test]
    fn batches_are_as_large_as_memory_allows() {
        let colpack = Protocol::Colpack;
        let colpack_s = Protocol::ColpackS;
        let large = "COLPACK_N2048_Q52";
        let small = "INSECURE_COLPACK_N256";
        for (protocol, preset, (columns, blocks, slot_bytes), expected) in [
            // The cases are many short entries, and the longest table that answers hold whole.
            (colpack, large, (1 << 16, 64, 4096), 64),
            (colpack, large, (1 << 10, 1 << 15, 60), 64),
            (colpack_s, large, (1 << 16, 1 << 12, 4096), 64),
            // The longest queries that the bound of failure allows: 64 of 8 MiB.
            (colpack, large, (1 << 21, 1, 1), 64),
            // One entry of 1 MiB. Each query takes 8 MiB of words, 16 MiB of chosen planes, the answer and its parts.
            (colpack, small, (1 << 10, 1, MIB), 32),
            (colpack_s, small, (1 << 10, 1, MIB), 64),
            // Words of 480 MiB, and the answer and its parts; 15.9 GiB for all.
            (colpack_s, small, (64, 1 << 20, 60), 26),
            (Protocol::Hybrid, "PACK_M31", (1 << 15, 8, 4096), 8),
            (Protocol::Simple, "LWE_N1280_STD3_2_RING256", (1 << 15, 8, 4096), 64),
        ] {
            let shape = TableShape { columns, blocks, slot_bytes };
            let params = protocol.page().table(preset, shape).expect("within the limits");
            assert_eq!(host_batch(&params), expected, "{protocol}, {preset}, {shape:?}");
        }
    }
}
