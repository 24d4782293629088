//! Polynomials modulo Q_1 to powers of two.

use std::ops::Range;

use hush_ops::OpsError;

use super::{CudaRing, RingTables, addresses::addresses};
use crate::{
    Cuda,
    device::{Arg, Buffer, CudaError, Device, Word},
};

/// As `SwitchJob` in `kernels/mod_switch.cu`; addresses on the device.
#[repr(C)]
#[derive(Clone, Copy)]
struct SwitchJob {
    batches: u64,
    widths: u64,
    out: u64,
    first: u32,
    count: u32,
    wide: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<SwitchJob>() == 40);

/// As [`hush_ops::contract::RingOps::mod_switch`]: one launch for all of `polys`.
pub(super) fn mod_switch(
    cuda: &Cuda,
    ring: &CudaRing,
    polys: &[&Buffer<u32>],
    which: Range<usize>,
    bits: &[u32],
) -> Result<Vec<Vec<Vec<u64>>>, OpsError> {
    let kept = ring.kept();
    let words = if bits.iter().any(|&bits| bits > u32::BITS) {
        cuda.device().download(&switch::<u64>(cuda.device(), kept, polys, which, bits)?.slice(..))?
    } else {
        let words = switch::<u32>(cuda.device(), kept, polys, which, bits)?;
        cuda.device().download(&words.slice(..))?.into_iter().map(u64::from).collect()
    };
    let degree = kept.degree().words();
    let mut values = words.chunks_exact(degree).map(<[u64]>::to_vec);
    Ok(polys.iter().map(|_| values.by_ref().take(bits.len()).collect()).collect())
}

/// `[batch][poly][coefficient]` on the device, for operands that fit together and widths that fit `T`.
pub(crate) fn switch<T: Word>(
    device: &Device,
    ring: &RingTables,
    polys: &[&Buffer<u32>],
    which: Range<usize>,
    bits: &[u32],
) -> Result<Buffer<T>, CudaError> {
    let (degree, blocks) = (ring.degree(), polys.len() * bits.len());
    let out = device.alloc::<T>(blocks * degree.words())?;
    let batches = addresses(device, polys.iter().map(|words| words.slice(..)))?;
    let widths = device.upload(bits)?;
    let job = SwitchJob {
        batches: batches.slice(..).address(),
        widths: widths.slice(..).address(),
        out: out.slice(..).address(),
        first: which.start as u32,
        count: bits.len() as u32,
        wide: u32::from(size_of::<T>() > size_of::<u32>()),
        reserved: 0,
    };
    let kernel = degree.pick(["mod_switch_6", "mod_switch_8", "mod_switch_11", "mod_switch_12"]);
    let launch = degree.launch([blocks as u32, 1, 1], ring.limbs());
    // SAFETY: `repr(C)` and laid out as in C++ (asserted on both sides), without padding.
    device.launch(kernel, launch, &[unsafe { Arg::of(&job) }, ring.view(), ring.radix()])?;
    Ok(out)
}
