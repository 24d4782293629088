//! The step `mod_switch`: from polynomials modulo Q_1 to powers of two, and to the bytes of an answer.

use hush_ops::{OpsError, contract};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{CudaRing, RingTables, tables::addresses::addresses};
use crate::{
    Cuda,
    device::{Arg, Buffer, CudaError, Device},
};

/// The polynomials of shared memory that coefficients of 64 bits need before they are packed.
const COEFFICIENT_POLYS: usize = 2;

/// The struct `SentPoly` of `kernels/mod_switch.cu`.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
struct SentPoly {
    offset: u64,
    bits: u32,
    stride: u32,
    count: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<SentPoly>() == 24);

/// The struct `SwitchJob` of `kernels/mod_switch.cu`; addresses on the device.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
struct SwitchJob {
    batches: u64,
    sent: u64,
    out: u64,
    answer_bytes: u64,
    first: u32,
    count: u32,
}

const _: () = assert!(size_of::<SwitchJob>() == 40);

/// Runs [`hush_ops::contract::RingOps::mod_switch`] with one launch for all of `polys`, and one download.
pub(super) fn mod_switch(
    cuda: &Cuda,
    ring: &CudaRing,
    polys: &[&Buffer<u32>],
    first: usize,
    sent: &[contract::SentPoly],
) -> Result<Vec<Vec<u8>>, OpsError> {
    let packed = switch(cuda.device(), ring.kept(), polys, first, sent)?;
    Ok(cuda.device().download_rows(&packed.slice(..), polys.len())?)
}

/// Returns `[batch][bytes of an answer]` on the device, for checked operands.
pub(crate) fn switch(
    device: &Device,
    ring: &RingTables,
    polys: &[&Buffer<u32>],
    first: usize,
    sent: &[contract::SentPoly],
) -> Result<Buffer<u8>, CudaError> {
    let degree = ring.degree();
    let mut answer_bytes = 0;
    let sent = sent.iter().map(|sent| {
        let offset = answer_bytes as u64;
        answer_bytes += sent.bytes();
        let stride = sent.stride as u32;
        let count = sent.count as u32;
        SentPoly { offset, bits: sent.bits, stride, count, reserved: 0 }
    });
    let sent = device.upload(&sent.collect::<Vec<_>>())?;
    let out = device.alloc(polys.len() * answer_bytes)?;
    let batches = addresses(device, polys.iter().map(|words| words.slice(..)))?;
    let job = SwitchJob {
        batches: batches.slice(..).address(),
        sent: sent.slice(..).address(),
        out: out.slice(..).address(),
        answer_bytes: answer_bytes as u64,
        first: first as u32,
        count: sent.len() as u32,
    };
    let kernels = ["mod_switch_6", "mod_switch_8", "mod_switch_11", "mod_switch_12"];
    let kernel = ring.pick(kernels, "mod_switch_11_wide");
    let blocks = (polys.len() * sent.len()) as u32;
    let launch = degree.launch([blocks, 1, 1], ring.limbs().max(COEFFICIENT_POLYS));
    device.launch(kernel, launch, &[Arg::of(&job), ring.view(), ring.radix()])?;
    Ok(out)
}
