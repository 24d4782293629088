//! The kernels of a stage, which is a level of a tree of ciphertexts: several kernels for its operations, or one kernel for all.
//!
//! Kernels of single operations have a block for each ciphertext and limb, and their digits go through device memory. A kernel of
//! the whole stage keeps the digits in shared memory, and has a block for each ciphertext: it moves less, and has fewer blocks.
//! Both compute the same words. Source: GPIR (sections 4.1 and 4.4).

use std::{
    env, fmt,
    io::{Write, stderr},
    sync::OnceLock,
};

use super::Degree;
use crate::device::{DeviceInfo, Launch};

/// The number of threads that keep the memory of a multiprocessor busy: 16 warps (GPIR, section 4.3).
const BUSY: usize = 512;
/// The environment variable that, set to 1, prints every choice on standard error.
const PRINT: &str = "HUSH_PRINT_CONFIGS";

/// The choice of kernels for the stages of trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stages {
    /// The kernels that suit the device and the stage.
    #[default]
    Suited,
    /// The kernels of single operations, for comparison.
    Operations,
    /// The kernels of whole stages, if the device has enough shared memory for them.
    Whole,
}

/// A stage of all queries of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// The name of the step.
    pub(super) step: &'static str,
    /// The number of the level or round.
    pub(super) depth: usize,
    /// The number of ciphertexts that are multiplied.
    pub(super) ciphertexts: usize,
    /// The words that kernels of single operations read and write: ciphertexts before and after, digits, keys.
    pub(super) words: usize,
    /// The degree of the ring.
    pub(super) degree: Degree,
    /// The polynomials of one limb in the shared memory of a block of the kernel of the whole stage.
    pub(super) polys: usize,
}

impl Stage {
    /// Returns a launch of `grid` blocks of the kernel of the whole stage.
    pub(super) fn launch(&self, grid: [u32; 3]) -> Launch {
        self.degree.launch(grid, self.polys)
    }

    fn bytes(&self) -> usize {
        size_of::<u32>() * self.words
    }

    /// Returns whether one kernel computes the whole stage.
    ///
    /// With [`Stages::Suited`], the answer is yes under two conditions: the intermediate results of kernels of single operations
    /// would exceed the second-level cache, and there are enough ciphertexts for every multiprocessor.
    pub(super) fn is_whole(&self, info: &DeviceInfo, stages: Stages) -> bool {
        let Launch { block: threads, shared, .. } = self.launch([1; 3]);
        let fits = shared as usize <= info.shared_per_block;
        let is_whole = match stages {
            Stages::Operations => false,
            Stages::Whole => fits,
            Stages::Suited => {
                let at_once = (BUSY / threads as usize).min(info.shared_per_block / shared as usize);
                let is_busy = self.ciphertexts >= at_once * info.multiprocessors as usize;
                fits && self.bytes() > info.l2_bytes && is_busy
            }
        };
        if is_printed() {
            let kernels = if is_whole { "one kernel" } else { "kernels of operations" };
            // An error is ignored: a closed standard error is no reason to fail.
            let _ = writeln!(stderr(), "{self}, L2 {}: {kernels}", Mebibytes(info.l2_bytes));
        }
        is_whole
    }
}

fn is_printed() -> bool {
    static PRINTED: OnceLock<bool> = OnceLock::new();
    *PRINTED.get_or_init(|| env::var_os(PRINT).is_some_and(|value| value == "1"))
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, depth, ciphertexts, .. } = *self;
        let bytes = Mebibytes(self.bytes());
        let shared = self.launch([1; 3]).shared >> 10;
        write!(f, "{step} {depth}: {ciphertexts} ciphertexts, {bytes}, {shared} KiB a block")
    }
}

struct Mebibytes(usize);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn stage(ciphertexts: usize, bytes: usize) -> Stage {
        Stage { step: "expand", depth: 3, ciphertexts, words: bytes / 4, degree: Degree::N4096, polys: 5 }
    }

    #[test]
    fn a_stage_is_whole_where_its_digits_leave_the_cache() {
        let info = DeviceInfo {
            name: "test".into(),
            capability: (9, 0),
            multiprocessors: 132,
            memory_bytes: 80 << 30,
            l2_bytes: 50 * MIB,
            shared_per_block: 227 << 10,
            shared_per_multiprocessor: 228 << 10,
        };
        let suited = |stage: Stage, info: &DeviceInfo| stage.is_whole(info, Stages::Suited);
        assert!(suited(stage(264, 51 * MIB), &info));
        assert!(!suited(stage(264, 50 * MIB), &info), "all of it stays in the cache");
        assert!(!suited(stage(263, 51 * MIB), &info), "multiprocessors would have nothing to do");
        // A multiprocessor runs one block, then none.
        let ada = DeviceInfo { shared_per_block: 99 << 10, ..info.clone() };
        assert!(suited(stage(132, 51 * MIB), &ada));
        let small = DeviceInfo { shared_per_block: 64 << 10, ..info.clone() };
        assert!(!suited(stage(1 << 20, 51 * MIB), &small));
        for (stages, on_ada, on_small) in [(Stages::Operations, false, false), (Stages::Whole, true, false)] {
            assert_eq!([&ada, &small].map(|info| stage(1, 1).is_whole(info, stages)), [on_ada, on_small]);
        }
    }

    #[test]
    fn choices_are_told_with_figures() {
        let told = stage(264, 51 * MIB + MIB / 2).to_string();
        assert_eq!(told, "expand 3: 264 ciphertexts, 51.5 MiB, 80 KiB a block");
    }
}
