//! The kernels of a fold: the passes into which they divide a batch, and their launches.

use crate::device::{DeviceInfo, Launch};

use super::tiles::{TILE_COLS, TILE_ROWS};

/// A kernel of the fold. All kernels give the same words, and differ in speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoldKernel {
    /// The kernel with `wgmma` and bulk copies, for Hopper only. A pass has up to 64 queries. From 17 queries on, clusters of two
    /// blocks share the queries.
    Wgmma,
    /// The kernel with `mma.sync`, for any GPU from Ampere on. A pass has up to 32 queries.
    Mma,
}

impl FoldKernel {
    /// Returns the fastest kernel of a device.
    pub(super) fn of(info: &DeviceInfo) -> Self {
        if info.is_hopper() { Self::Wgmma } else { Self::Mma }
    }

    /// Returns the largest number of queries of a pass over the database.
    pub fn pass_queries(self) -> usize {
        match self {
            Self::Wgmma => 64,
            Self::Mma => 32,
        }
    }

    /// Returns the passes of a batch: full passes, and a last pass for the rest.
    pub(super) fn passes(self, batch: usize) -> impl Iterator<Item = Pass> {
        let most = self.pass_queries();
        (0..batch).step_by(most).map(move |first| Pass::new(self, first, most.min(batch - first)))
    }
}

/// The fewest queries to which a pass is padded: they share 16 byte columns.
const FEWEST_PADDED: usize = 4;
/// The bytes of a query word, each in its own byte column.
const WORD_BYTES: usize = 4;

/// Some queries of a batch, folded by one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    kernel: FoldKernel,
    /// The index in the batch of the first query.
    pub(super) first: usize,
    /// The number of queries.
    pub(super) queries: usize,
    /// The number of queries with padding: a power of two, at least 4.
    pub(super) padded: usize,
}

impl Pass {
    fn new(kernel: FoldKernel, first: usize, queries: usize) -> Self {
        Self { kernel, first, queries, padded: queries.next_power_of_two().max(FEWEST_PADDED) }
    }

    /// Returns the bytes of one k tile of the prepared queries.
    pub(super) fn tile_bytes(&self) -> usize {
        self.padded * WORD_BYTES * TILE_COLS
    }

    /// Returns the kernel's name.
    pub(super) fn kernel_name(&self) -> &'static str {
        match (self.kernel, self.padded) {
            (FoldKernel::Wgmma, 4) => "lwe_fold_n16_hopper",
            (FoldKernel::Wgmma, 8) => "lwe_fold_n32_hopper",
            (FoldKernel::Wgmma, 16) => "lwe_fold_n64_hopper",
            (FoldKernel::Wgmma, 32) => "lwe_fold_n128_cluster_hopper",
            (FoldKernel::Wgmma, _) => "lwe_fold_n256_cluster_hopper",
            (FoldKernel::Mma, 4) => "lwe_fold_n16",
            (FoldKernel::Mma, 8) => "lwe_fold_n32",
            (FoldKernel::Mma, 16) => "lwe_fold_n64",
            (FoldKernel::Mma, _) => "lwe_fold_n128",
        }
    }

    /// Returns the launch over `rows` rows and `k_tiles` k tiles. The launch has as many blocks as run at once, or one for each
    /// unit of work if there are fewer units. Even on one multiprocessor, it has a whole cluster.
    pub(super) fn launch(&self, info: &DeviceInfo, rows: usize, k_tiles: usize) -> Launch {
        let block = self.block();
        let cluster = self.cluster();
        let at_once = (info.multiprocessors as usize * block.at_once(info) / cluster).max(1);
        let units = rows.div_ceil(cluster * block.rows) * k_tiles;
        Launch::new((cluster * at_once.min(units)) as u32, block.threads).shared(block.shared)
    }

    /// Returns the number of blocks that share a unit of work and its queries.
    fn cluster(&self) -> usize {
        if self.kernel == FoldKernel::Wgmma && self.padded >= 32 { 2 } else { 1 }
    }

    /// Returns the shape of the kernel's blocks, as in its source.
    fn block(&self) -> Block {
        match self.kernel {
            FoldKernel::Wgmma => {
                const BARRIERS: usize = 2 * size_of::<u64>();
                let (rows, stages) = match self.padded {
                    64 => (192, 4),
                    32 => (384, 3),
                    _ => (384, 4),
                };
                let stage = rows * TILE_COLS + self.tile_bytes();
                Block { rows, threads: 512, shared: stages * (stage + BARRIERS), most_at_once: 1 }
            }
            FoldKernel::Mma => {
                let rows = TILE_ROWS / 2;
                let stage = rows * TILE_COLS + self.tile_bytes();
                // A thread has 126 registers for 128 byte columns, 64 for fewer.
                let most_at_once = if self.padded == 32 { 2 } else { 3 };
                Block { rows, threads: 256, shared: 3 * stage, most_at_once }
            }
        }
    }
}

/// The shape of a block of a kernel.
struct Block {
    /// The rows of a unit of work.
    rows: usize,
    threads: u32,
    /// The bytes of shared memory.
    shared: usize,
    /// The number of blocks for which a multiprocessor has registers.
    most_at_once: usize,
}

impl Block {
    /// Returns the number of blocks that a multiprocessor runs at once.
    fn at_once(&self, info: &DeviceInfo) -> usize {
        // The shared memory that the system reserves for each block. A block may use all of a multiprocessor but one such part.
        const SYSTEM: usize = 1 << 10;
        let fit = (info.shared_per_block + SYSTEM) / (self.shared + SYSTEM);
        fit.clamp(1, self.most_at_once)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [FoldKernel; 2] = [FoldKernel::Wgmma, FoldKernel::Mma];

    fn device(capability: (u32, u32), shared_per_block: usize) -> DeviceInfo {
        DeviceInfo {
            name: "test".into(),
            capability,
            multiprocessors: 132,
            memory_bytes: 1 << 30,
            l2_bytes: 1 << 20,
            shared_per_block,
            shared_per_multiprocessor: shared_per_block,
        }
    }

    #[test]
    fn passes_cover_the_batch() {
        for kernel in ALL {
            for batch in 0..200 {
                let mut next = 0;
                for pass in kernel.passes(batch) {
                    assert_eq!(pass.first, next);
                    next += pass.queries;
                    assert!(pass.queries >= 1 && pass.queries <= pass.padded.min(kernel.pass_queries()));
                    assert!(
                        pass.padded.is_power_of_two() && pass.padded < 2 * pass.queries.max(FEWEST_PADDED)
                    );
                }
                assert_eq!(next, batch);
            }
        }
    }

    #[test]
    fn launches_fit_the_device() {
        for (info, kernels) in [
            (device((9, 0), 227 << 10), &ALL[..]),
            (device((8, 0), 163 << 10), &ALL[1..]),
            (device((8, 9), 99 << 10), &ALL[1..]),
        ] {
            for pass in kernels.iter().flat_map(|kernel| (1..=64).flat_map(|batch| kernel.passes(batch))) {
                let launch = pass.launch(&info, 1 << 20, 512);
                assert!(launch.shared as usize <= info.shared_per_block, "{pass:?}");
                assert!(launch.grid[0] >= info.multiprocessors, "{pass:?}");
                assert_eq!(pass.launch(&info, 1, 3).grid, [3 * pass.cluster() as u32, 1, 1]);
                assert_eq!(pass.launch(&info, 0, 3).grid, [0, 1, 1]);
            }
        }
    }
    #[test]
    fn clusters_are_whole() {
        let mut info = device((9, 0), 227 << 10);
        let pass = |batch| FoldKernel::Wgmma.passes(batch).next().expect("there are queries");
        for (multiprocessors, blocks) in [(1, 2), (2, 2), (3, 2), (133, 132)] {
            info.multiprocessors = multiprocessors;
            for batch in [17, 32, 33, 64] {
                assert_eq!(pass(batch).launch(&info, 1 << 20, 512).grid[0], blocks);
            }
            assert_eq!(pass(16).launch(&info, 1 << 20, 512).grid[0], multiprocessors);
        }
    }
}
