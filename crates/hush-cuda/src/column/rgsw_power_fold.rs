//! The step `rgsw_power_fold` (7h): a single RGSW ciphertext folds the entries to one.
//!
//! The entries stay in coefficient form. There, products with powers of X are rotations, and decomposition needs no inverse
//! transform.

use hush_math::poly::Poly;
use hush_ops::{
    OpsError,
    contract::{PowerKeys, RlweBatch},
    steps::poly_bytes,
};
use zerocopy::{Immutable, IntoBytes};

use super::{
    CudaChain,
    pack_columns::transformed,
    pair_kernel::PairKernel,
    terms::{LiftedWords, lift_and_transform},
    views::FractionLift,
};
use crate::{
    Cuda,
    device::{Arg, Buffer, Device, DeviceInfo, MAX_GRID},
    ring::CudaRing,
};

/// The words of terms in memory at once, for more than one plane: 512 MiB, and twice that if their transform has several passes.
/// This bounds the planes of a launch, and so does the second dimension of a grid.
const TERM_WORDS: usize = 1 << 27;
/// The kernels with one block for each plane: both halves of a ciphertext, and four transforms and an exchange in shared memory.
const BY_BLOCK: PairKernel = PairKernel::of_blocks(["power_fold_6", "power_fold_8", "power_fold_11"], 2, 8);
/// The kernels with two blocks for each plane. Each block has a half of a ciphertext, and two transforms and two exchanges in
/// shared memory.
const BY_CLUSTER: PairKernel = PairKernel {
    names: ["power_fold_6_hopper", "power_fold_8_hopper", "power_fold_11_hopper"],
    polys: 1,
    shared: 8,
    cluster: 2,
    barriers: 2,
};

/// Returns the kernel for `planes` planes: clusters if the device has them, with a multiprocessor for each of their blocks.
fn kernel_for(info: &DeviceInfo, planes: usize) -> &'static PairKernel {
    let has_room = planes * BY_CLUSTER.cluster as usize <= info.multiprocessors as usize;
    if info.is_hopper() && has_room { &BY_CLUSTER } else { &BY_BLOCK }
}

/// The struct `PowerFold` of `kernels/power_fold.cuh`: addresses on the device.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
struct PowerFold {
    out: u64,
    masks: u64,
    bodies: u64,
    power_masks: u64,
    power_bodies: u64,
    terms: u32,
    planes: u32,
    first_unit: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<PowerFold>() == 56);

/// Runs [`hush_ops::contract::ColumnOps::rgsw_power_fold`] for operands that fit together: three launches for up to
/// eight terms, and one more for each further factor of eight.
pub(super) fn rgsw_power_fold(
    device: &Device,
    ring: &CudaRing,
    chain: &CudaChain,
    packed: &Buffer<u32>,
    powers: PowerKeys<'_>,
) -> Result<RlweBatch<Buffer<u32>>, OpsError> {
    let at_once = (TERM_WORDS / (chain.terms() * ring.kept().poly_words())).clamp(1, MAX_GRID[1]);
    fold_in_parts(device, ring, chain, packed, powers, at_once)
}

/// Folds `at_once` planes at a time.
fn fold_in_parts(
    device: &Device,
    ring: &CudaRing,
    chain: &CudaChain,
    packed: &Buffer<u32>,
    powers: PowerKeys<'_>,
    at_once: usize,
) -> Result<RlweBatch<Buffer<u32>>, OpsError> {
    let kept = ring.kept();
    let terms = chain.terms();
    let planes = chain.shape().planes();
    let ciphertext_words = 2 * kept.poly_words();
    let units = powers.bodies.len() * planes;
    let words = device.alloc(units * ciphertext_words)?;
    let lift = FractionLift::new(ring.context().kept().rns(), terms);
    let power_masks = device.upload(&powers.masks.each_ref().map(Poly::words).concat())?;
    // Each query has two rows, or none if there is one entry.
    let power_bodies: Vec<_> = powers.bodies.iter().copied().flatten().flatten().collect();
    let power_bodies = transformed(device, ring, &power_bodies)?;
    for first_unit in (0..units).step_by(at_once) {
        let units = at_once.min(units - first_unit);
        let shape = chain.rows();
        let lift = &lift;
        let from = LiftedWords { words: packed.slice(..), first_unit, units, shape, lift };
        let bodies = lift_and_transform(device, kept, &from, terms)?;
        let fold = PowerFold {
            out: device.address(&words.slice(..))?,
            masks: device.address(&chain.masks.slice(..))?,
            bodies: device.address(&bodies.slice(..))?,
            power_masks: device.address(&power_masks.slice(..))?,
            power_bodies: device.address(&power_bodies.slice(..))?,
            terms: terms as u32,
            planes: planes as u32,
            first_unit: first_unit as u32,
            reserved: 0,
        };
        let args = [Arg::of(&fold), kept.view(), ring.fold_gadget().view()];
        kernel_for(device.info(), units).launch(device, kept, [units as u32, 1, 1], &args)?;
    }
    Ok(RlweBatch { ciphertext_words, words })
}

hush_ops::footprint!(Cuda: RgswPowerFold, |step, batch| {
    let ring = &step.ring;
    let shape = &step.shape;
    let poly = poly_bytes(&step.ring);
    let planes = batch * shape.planes();
    let plane = shape.entries().next_power_of_two() * poly;
    // The terms of the planes that are folded at once, twice.
    let at_once = planes.min((size_of::<u32>() * TERM_WORDS / plane).max(1));
    let rgsw = batch * 4 * ring.fold_gadget().digits * poly;
    2 * at_once * plane + rgsw + planes * 2 * poly
});

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use std::sync::Arc;

    use hush_he::params::{INSECURE_COLPACK_PLAIN, RingContext};
    use hush_math::{csprng::Csprng, poly::Eval};
    use hush_ops::{
        contract::{ChainPolys, ColumnOps, RingOps},
        pack_shape::PackShape,
    };

    use super::*;
    use crate::{Cuda, device::Emulation};

    /// Checks that planes may be folded a part at a time, like the planes of long tables.
    #[test]
    fn parts_make_up_the_whole() {
        let cuda = Cuda::new(Device::emulated(Emulation::default()));
        let context = Arc::new(RingContext::new(*INSECURE_COLPACK_PLAIN.ring()));
        let shape = PackShape::new(context.kept().degree(), 300, 80).expect("positive");
        let mut rng = Csprng::insecure_from_seed(1);
        let mut polys = |count: usize| -> Vec<u32> {
            (0..count).flat_map(|_| context.kept().expand_uniform::<Eval>(&mut rng).into_words()).collect()
        };
        let device = cuda.device();
        let queries = 3;
        let ring = cuda.open_ring(context.clone()).unwrap();
        let count = shape.plaintexts();
        let chain = ChainPolys { digits: polys(count), masks: polys(count) };
        let chain = cuda.open_chain(&ring, &shape, chain).unwrap();
        let packed = device.upload(&polys(8)[..queries * shape.rows()]).unwrap();
        let masks = [polys(1), polys(1)].map(|words| Poly::from_words(words, context.kept().degree()));
        let mut rows = || [polys(1), polys(1)].map(|words| Poly::from_words(words, context.kept().degree()));
        let rows: Vec<_> = (0..queries).map(|_| rows()).collect();
        let bodies: Vec<_> = rows.iter().map(Some).collect();
        let powers = PowerKeys { masks: &masks, bodies: &bodies };
        let folded = |at_once| {
            let folded = fold_in_parts(device, &ring, &chain, &packed, powers, at_once).unwrap();
            device.download(&folded.words.slice(..)).unwrap()
        };
        let whole = folded(queries * shape.planes());
        assert!([1, 4, 5].into_iter().all(|at_once| folded(at_once) == whole));
    }

    #[test]
    fn clusters_fold_few_planes_on_hopper() {
        let info = |capability| {
            let emulation = Emulation { capability, multiprocessors: 132, ..Emulation::default() };
            Device::emulated(emulation).info().clone()
        };
        let hopper = info((9, 0));
        let ampere = info((8, 0));
        for (planes, cluster) in [(1, 2), (66, 2), (67, 1), (1000, 1)] {
            assert_eq!(kernel_for(&hopper, planes).cluster, cluster, "{planes}");
            assert_eq!(kernel_for(&ampere, planes).cluster, 1, "{planes}");
        }
    }
}
