//! Launches of kernels whose blocks have polynomials of two limbs in registers (`kernels/limb_pair.cuh`).

use hush_ops::OpsError;

use crate::{
    device::{Arg, Device, Launch},
    ring::{CudaRing, RingTables},
};

/// The number of limbs of a polynomial.
pub(super) const LIMBS: usize = 2;

/// A kernel for each degree of the parameter sets.
pub(super) struct PairKernel {
    /// The kernels for the degrees 64, 256 and 2048.
    pub(super) names: [&'static str; 3],
    /// The number of polynomials of two limbs in the registers of a block.
    pub(super) polys: u32,
    /// The number of polynomials of one limb in the shared memory of a block.
    pub(super) shared: usize,
    /// The number of blocks of a cluster.
    pub(super) cluster: u32,
    /// The number of barriers for the cluster that each block has after the polynomials.
    pub(super) barriers: usize,
}

impl PairKernel {
    /// Creates kernels whose blocks are not in clusters.
    pub(super) const fn of_blocks(names: [&'static str; 3], polys: u32, shared: usize) -> Self {
        Self { names, polys, shared, cluster: 1, barriers: 0 }
    }

    /// Launches a grid of clusters, or of single blocks.
    pub(super) fn launch(
        &self,
        device: &Device,
        ring: &RingTables,
        [x, y, z]: [u32; 3],
        args: &[Arg<'_>],
    ) -> Result<(), OpsError> {
        let degree = ring.degree();
        let Some(name) = self.names.get(degree as usize) else { return Err(no_kernels()) };
        let threads = self.polys * LIMBS as u32 * degree.threads();
        let shared = self.shared * degree.words() * size_of::<u32>() + self.barriers * size_of::<u64>();
        let launch = Launch::grid([x * self.cluster, y, z], threads).shared(shared);
        Ok(device.launch(name, launch, args)?)
    }
}

/// Checks that there are kernels for column packing over a ring. All parameter sets of column packing have kernels.
///
/// # Errors
/// [`OpsError::Backend`] if there are no kernels.
pub(super) fn check_ring(ring: &CudaRing) -> Result<(), OpsError> {
    ring.kept().check_narrow()?;
    let fits = ring.kept().limbs() == LIMBS && ring.fold_gadget().digits() == 1;
    if fits { Ok(()) } else { Err(no_kernels()) }
}

fn no_kernels() -> OpsError {
    let reason = "the kernels of column packing take two primes, one digit and a degree of at most 2048";
    OpsError::Backend { reason: reason.into() }
}
