//! The devices that tests run on: emulations, and the GPU of this machine if it has one.

#![allow(clippy::print_stderr)]
#![allow(dead_code, reason = "no binary of tests runs on all of them")]

use hush_cuda::device::{Device, Emulation};

/// Makes a missing GPU an error.
const REQUIRE: &str = "HUSH_REQUIRE_CUDA";
/// An earlier GPU.
const AMPERE: Emulation =
    Emulation { capability: (8, 0), multiprocessors: 2, seed: 0, pooled: false, is_linked: true };

/// A device whose blocks have less shared memory than those of any other.
const ADA: Emulation = Emulation { capability: (8, 9), ..AMPERE };

/// Returns a Hopper GPU: in order, or in disorder if `seed` is not 0.
fn hopper(seed: u64) -> Emulation {
    Emulation { seed, ..Emulation::default() }
}

fn with_gpu(emulations: impl IntoIterator<Item = Emulation>) -> Vec<Device> {
    emulations.into_iter().map(Device::emulated).chain(gpu()).collect()
}

/// Returns the GPU where one is required: the emulator has its own runs elsewhere, and its time is a GPU's. Else what
/// `with_gpu` has.
fn gpu_or(emulations: impl IntoIterator<Item = Emulation>) -> Vec<Device> {
    let emulations = emulations.into_iter().filter(|_| std::env::var_os(REQUIRE).is_none());
    with_gpu(emulations)
}

/// Returns all: the emulator as a Hopper GPU, in order and in disorder, and as an earlier GPU; and the GPU.
pub(crate) fn devices() -> Vec<Device> {
    with_gpu([hopper(0), hopper(0x5eed), AMPERE])
}

/// Returns an emulated device of each kind, in order, since disorder is slow.
pub(crate) fn emulated() -> [Device; 2] {
    [hopper(0), ADA].map(Device::emulated)
}

/// Returns the orderly devices, and the GPU.
pub(crate) fn orderly() -> Vec<Device> {
    gpu_or([hopper(0), ADA])
}

/// Returns a Hopper GPU in disorder and an earlier GPU in order, for steps whose kernels are the same on both; and the GPU.
pub(crate) fn varied() -> Vec<Device> {
    gpu_or([hopper(0x5eed), ADA])
}

/// Returns the emulated device with the least shared memory.
pub(crate) fn little_shared() -> Device {
    Device::emulated(ADA)
}

/// Returns one emulated Hopper GPU, for tests that have much to compute, and the GPU.
pub(crate) fn one_and_gpu(seed: u64) -> Vec<Device> {
    gpu_or([hopper(seed)])
}

/// Returns the GPU, or else one emulated device, in order: for what is long in the emulator.
pub(crate) fn gpu_or_one() -> Device {
    gpu().unwrap_or_else(|| Device::emulated(hopper(0)))
}

/// Two devices of a kind: emulated ones, whose memory is kept for later or not, and the first two GPUs, if there are as many.
pub(crate) fn pairs() -> Vec<[Device; 2]> {
    let emulated =
        [false, true].map(|pooled| [(); 2].map(|()| Device::emulated(Emulation { pooled, ..hopper(0) })));
    let gpus = gpu().and_then(|one| Some([one, Device::open(1).ok()?]));
    emulated.into_iter().chain(gpus).collect()
}

/// Returns the devices that the sanitizers run on: emulated devices of each kind, in order and in disorder.
pub(crate) fn small() -> Vec<Device> {
    [hopper(0), hopper(7), AMPERE, Emulation { seed: 8, ..ADA }].map(Device::emulated).into()
}

/// Returns the GPU of this machine; says that a test is skipped if there is none.
///
/// # Panics
/// If there is none, but one is required.
pub(crate) fn gpu() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(reason) if std::env::var_os(REQUIRE).is_some() => panic!("{reason}"),
        Err(reason) => {
            eprintln!("skipped on a GPU: {reason}");
            None
        }
    }
}
