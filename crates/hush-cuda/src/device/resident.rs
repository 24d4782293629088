//! How many blocks of a kernel a multiprocessor runs at once, and what they leave to others.

use super::{CudaError, Device, Launch};

/// The words of registers of a multiprocessor of every GPU that kernels are compiled for.
const REGISTERS: usize = 64 << 10;
/// The threads that a multiprocessor of any of these GPUs runs at least.
const THREADS: usize = 1536;
/// The bytes of shared memory that the driver takes for a block.
const SHARED_OF_DRIVER: usize = 1 << 10;
/// The registers of a thread are a multiple of this, as a warp gets 256 at a time.
const UNIT: usize = 8;

/// The resources of a block or of a multiprocessor: registers, bytes of shared memory, threads.
type Resources = [usize; 3];

impl Device {
    /// Returns how many blocks of a kernel a multiprocessor runs at once, if a block of each of `others` has room beside them.
    pub(crate) fn resident_beside(
        &self,
        kernel: (&'static str, Launch),
        others: &[(&'static str, Launch)],
    ) -> Result<Option<u32>, CudaError> {
        let block = |(kernel, launch): (&'static str, Launch)| -> Result<Resources, CudaError> {
            let registers = self.ask(|runtime| runtime.registers(kernel))? as usize;
            let threads = launch.block as usize;
            let shared = launch.shared as usize + SHARED_OF_DRIVER;
            Ok([registers.next_multiple_of(UNIT) * threads, shared, threads])
        };
        let others = others.iter().map(|&other| block(other)).collect::<Result<Vec<_>, _>>()?;
        Ok(resident([REGISTERS, self.info().shared_per_multiprocessor, THREADS], block(kernel)?, &others))
    }
}

/// Returns how many blocks that take `block` are resident where there is `all`, if a block of each of `others` has room beside.
fn resident(all: Resources, block: Resources, others: &[Resources]) -> Option<u32> {
    let blocks = all.iter().zip(block).map(|(all, each)| all / each.max(1)).min().unwrap_or(0);
    let has_room = |other: &Resources| {
        let taken = block.iter().zip(other).map(|(each, other)| blocks * each + other);
        taken.zip(all).all(|(taken, all)| taken <= all)
    };
    (blocks > 0 && others.iter().all(has_room)).then_some(blocks as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels of `rlwe_fold` by the registers that they are compiled to, with blocks that turn squares over.
    #[test]
    fn registers_and_shared_memory_decide() {
        let turn = [32 * 256, 6 << 10, 256];
        let mma = |registers: usize, shared_kib: usize| [registers * 256, (shared_kib + 1) << 10, 256];
        let hopper = [REGISTERS, 228 << 10, THREADS];
        let ampere = [REGISTERS, 164 << 10, THREADS];
        let desk = [REGISTERS, 100 << 10, THREADS];
        for (all, block, blocks) in [
            (hopper, mma(128, 80), None),
            (hopper, mma(224, 112), Some(1)),
            (ampere, mma(128, 80), None),
            (ampere, mma(232, 112), None),
            (desk, mma(128, 80), Some(1)),
            (desk, mma(80, 112), None),
        ] {
            assert_eq!(resident(all, block, &[turn]), blocks, "{all:?} {block:?}");
        }
    }
}
