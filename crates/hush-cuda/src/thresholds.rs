//! From how many queries on a batch takes another kernel: guesses, or what was measured on a device.

use crate::{FoldKernel, device::DeviceInfo};

/// Batches at which one kernel hands over to the next. All kernels give the same words, so a bad figure costs time alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Most queries that `lwe_fold` does by [`FoldKernel::Gemv`], of the two that a pass of it takes.
    pub gemv_most: usize,
    /// Fewest queries whose products with a database of ring elements are made on tensor cores.
    pub mma_from: usize,
    /// Fewest queries of which Hopper's own kernel makes them, where it can.
    pub hopper_from: usize,
    /// Fewest queries whose selectors and results are turned over beside the products of that kernel.
    pub beside_from: usize,
}

impl Thresholds {
    /// Where nothing was measured. Up to `mma_from` either kernel should read the database at the memory's rate, and CUDA cores
    /// have less to prepare; up to `hopper_from` memory should be the limit. On Hopper `dp4a` is not among the choices: its own
    /// kernel of `lwe_fold` should read at the memory's rate from one query on. Up to `beside_from` products read memory at its
    /// rate, and nothing is to be had beside them.
    pub fn guessed(info: &DeviceInfo) -> Self {
        let gemv_most = if info.is_hopper() { 0 } else { FoldKernel::Gemv.pass_queries() };
        Self { gemv_most, mma_from: 3, hopper_from: 40, beside_from: 40 }
    }

    /// The kernel of `lwe_fold` for `batch` queries on a device.
    pub fn fold_kernel(&self, info: &DeviceInfo, batch: usize) -> FoldKernel {
        if batch <= self.gemv_most.min(FoldKernel::Gemv.pass_queries()) {
            FoldKernel::Gemv
        } else if info.is_hopper() {
            FoldKernel::Wgmma
        } else {
            FoldKernel::Mma
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(capability: (u32, u32)) -> DeviceInfo {
        DeviceInfo {
            name: "test".into(),
            capability,
            multiprocessors: 132,
            memory_bytes: 80 << 30,
            l2_bytes: 50 << 20,
            shared_per_block: 227 << 10,
        }
    }

    #[test]
    fn queries_of_a_few_go_without_tensor_cores() {
        let kernels = |thresholds: Thresholds, capability| {
            [1, 2, 3, 64].map(|batch| thresholds.fold_kernel(&info(capability), batch))
        };
        use FoldKernel::{Gemv, Mma, Wgmma};
        for (capability, expected) in
            [((9, 0), [Wgmma; 4]), ((8, 0), [Gemv, Gemv, Mma, Mma]), ((10, 0), [Gemv, Gemv, Mma, Mma])]
        {
            assert_eq!(kernels(Thresholds::guessed(&info(capability)), capability), expected);
        }
        for (gemv_most, expected) in
            [(0, [Wgmma; 4]), (1, [Gemv, Wgmma, Wgmma, Wgmma]), (99, [Gemv, Gemv, Wgmma, Wgmma])]
        {
            let measured = Thresholds { gemv_most, ..Thresholds::guessed(&info((9, 0))) };
            assert_eq!(kernels(measured, (9, 0)), expected, "{gemv_most}");
        }
    }
}
