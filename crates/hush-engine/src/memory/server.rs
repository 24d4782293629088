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

/// The bytes of a scan from which the memory of the machine is looked at, which takes some 0.2 ms.
const LOOKED_AT: usize = 16 << 20;

impl ScanMemory {
    /// Creates the list for scans of up to `max_batch` queries.
    pub(crate) fn new(params: &TableParams, max_batch: usize) -> Self {
        let paths: Vec<_> = params.segments().iter().map(|segment| segment.path()).collect();
        // Segments are answered one after another.
        let bytes = |queries| paths.iter().map(|path| batch_bytes::<Cpu>(path, queries)).max().unwrap_or(0);
        Self((0..=max_batch).map(bytes).collect())
    }

    /// Returns how many of `queries` a scan can answer with the memory that there is: all of them, or a half, a quarter and so on.
    /// It is at least 1. A scan that found no memory would end the process, and with it all tables.
    ///
    /// # Errors
    /// [`EngineError::Memory`] if there is not enough for one.
    pub(crate) fn fitting(&self, queries: usize) -> Result<usize, EngineError> {
        let halves =
            std::iter::successors(Some(queries.max(1)), |&more| (more > 1).then(|| more.div_ceil(2)));
        let mut fitting = halves.filter(|&queries| is_there(self.bytes(queries)));
        fitting.next().ok_or_else(|| EngineError::Memory { bytes: self.bytes(1) })
    }

    fn bytes(&self, queries: usize) -> usize {
        self.0.get(queries).or(self.0.last()).copied().unwrap_or(0)
    }
}

/// Returns whether the system gives so many bytes, and neither machine nor container has less left.
fn is_there(bytes: usize) -> bool {
    let mut tried = Vec::<u8>::new();
    let is_given = tried.try_reserve_exact(bytes).is_ok();
    // The compiler may leave out memory that nobody looks at.
    black_box(&tried);
    let is_left = || machine::memory().is_none_or(|memory| memory.available >= bytes as u64);
    is_given && (bytes < LOOKED_AT || is_left())
}

#[cfg(test)]
mod tests {
    use hush_protocol::{Protocol, table::TableShape};

    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_scan_has_as_many_queries_as_there_is_memory_for() {
        let memory = ScanMemory(vec![0, 1 << 10, LOOKED_AT, usize::MAX / 4, 1 << 62]);
        for (queries, fitting) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 2), (9, 2)] {
            assert_eq!(memory.fitting(queries), Ok(fitting), "{queries}");
        }
        let none = ScanMemory(vec![0, 1 << 62]);
        assert_eq!(none.fitting(8), Err(EngineError::Memory { bytes: 1 << 62 }));
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
