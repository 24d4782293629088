//! The runtime of a device: a GPU behind its driver, or the emulator. Only this file branches between the two.

#[cfg(all(feature = "driver", feature = "emulator"))]
use super::UPLOAD_BYTES;
#[cfg(feature = "driver")]
use super::driver::Gpu;
#[cfg(feature = "emulator")]
use super::emulated::Emulator;
use super::{Arg, CudaError, DeviceInfo, Launch};

/// A GPU or the emulator.
pub(super) enum Runtime {
    /// A GPU.
    #[cfg(feature = "driver")]
    Gpu(Gpu),
    /// The emulator, which runs the kernels on the CPU.
    #[cfg(feature = "emulator")]
    Emulator(Emulator),
}

/// Evaluates a call on the GPU, or the call on the emulator, which may be given separately.
macro_rules! on {
    ($runtime:expr, $device:ident => $both:expr) => {
        on!($runtime, $device => $both, $device => $both)
    };
    ($runtime:expr, $gpu:ident => $on_gpu:expr, $emulator:ident => $emulated:expr) => {
        match *$runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(ref $gpu) => $on_gpu,
            #[cfg(feature = "emulator")]
            Runtime::Emulator(ref $emulator) => $emulated,
        }
    };
}

impl Runtime {
    pub(super) fn info(&self) -> &DeviceInfo {
        on!(self, device => device.info())
    }

    /// Returns the bytes of device memory that are free.
    pub(super) fn free_bytes(&self) -> Result<usize, CudaError> {
        on!(self, device => device.free_bytes())
    }

    /// Allocates `bytes` bytes, aligned to 256, with arbitrary contents.
    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, CudaError> {
        on!(self, device => device.allocate(bytes))
    }

    /// Frees memory of [`Runtime::allocate`] that no queued work uses.
    pub(super) fn free(&self, address: u64) {
        on!(self, device => device.free(address));
    }

    /// Sets memory to zeros.
    pub(super) fn clear(&self, address: u64, bytes: usize) -> Result<(), CudaError> {
        on!(self, device => device.clear(address, bytes))
    }

    /// Copies to the device. The caller may change `host` as soon as this returns.
    pub(super) fn upload(&self, host: &[u8], address: u64) -> Result<(), CudaError> {
        on!(self, device => device.upload(host, address))
    }

    /// Waits for all work, then passes bytes of the device to `take`, one part after another.
    pub(super) fn download(
        &self,
        address: u64,
        bytes: usize,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), CudaError> {
        on!(self, device => device.download(address, bytes, take))
    }

    /// Copies on the device.
    pub(super) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        on!(self, device => device.copy(from, to, bytes))
    }

    /// Makes all later work wait for the work that another device has queued so far. Emulated work has always ended, so there is
    /// no wait.
    pub(super) fn wait_for(&self, peer: &Self) -> Result<(), CudaError> {
        match (self, peer) {
            #[cfg(feature = "driver")]
            (Self::Gpu(gpu), Self::Gpu(peer)) => gpu.wait_for(peer),
            #[cfg(feature = "emulator")]
            _ => Ok(()),
        }
    }

    /// Returns whether the device reads the memory of another one by NVLink.
    pub(super) fn is_linked(&self, peer: &Self) -> bool {
        match (self, peer) {
            #[cfg(feature = "driver")]
            (Self::Gpu(gpu), Self::Gpu(peer)) => gpu.is_linked(peer),
            #[cfg(feature = "emulator")]
            (Self::Emulator(emulator), _) => emulator.is_linked(),
            #[cfg(all(feature = "driver", feature = "emulator"))]
            _ => false,
        }
    }

    /// Copies from the memory of another device, in the order of this device's work.
    pub(super) fn copy_from(&self, peer: &Self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        on!(self,
            gpu => on!(peer,
                peer => gpu.copy_from(peer, from, to, bytes),
                _emulator => self.copy_by_host(peer, from, to, bytes)),
            emulator => on!(peer,
                _gpu => self.copy_by_host(peer, from, to, bytes),
                peer => emulator.copy_from(peer, from, to, bytes)))
    }

    /// Copies by way of the host, if one of the devices is emulated.
    #[cfg(all(feature = "driver", feature = "emulator"))]
    fn copy_by_host(&self, peer: &Self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        let mut host = Vec::with_capacity(bytes);
        peer.download(from, bytes, &mut |part| host.extend_from_slice(part))?;
        host.chunks(UPLOAD_BYTES)
            .enumerate()
            .try_for_each(|(index, part)| self.upload(part, to + (index * UPLOAD_BYTES) as u64))
    }

    /// Queues a kernel.
    pub(super) fn launch(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        on!(self, device => device.launch(kernel, launch, args))
    }

    /// Queues a kernel on the side stream. The emulator has no side stream: its kernels have ended when the launch returns.
    pub(super) fn launch_beside(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        on!(self, gpu => gpu.launch_beside(kernel, launch, args), emulator => emulator.launch(kernel, launch, args))
    }

    /// Returns the registers of a thread of a kernel. Emulated kernels have as many as two blocks of 256 threads may have.
    pub(super) fn registers(&self, kernel: &'static str) -> Result<u32, CudaError> {
        on!(self, gpu => gpu.registers(kernel), _emulator => Ok(128))
    }

    /// Makes all later work of the side stream wait for all other work queued so far.
    pub(super) fn fork(&self) -> Result<(), CudaError> {
        on!(self, gpu => gpu.fork(), _emulator => Ok(()))
    }

    /// Makes all later work wait for the work of the side stream queued so far.
    pub(super) fn join(&self) -> Result<(), CudaError> {
        on!(self, gpu => gpu.join(), _emulator => Ok(()))
    }

    /// Waits for all work of the side stream.
    pub(super) fn finish_side(&self) -> Result<(), CudaError> {
        on!(self, gpu => gpu.finish_side(), _emulator => Ok(()))
    }

    /// Waits for all work.
    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        on!(self, device => device.synchronize())
    }

    /// Returns whether sizes of memory are rounded up, and freed memory is kept for later.
    pub(super) fn is_pooled(&self) -> bool {
        on!(self, _gpu => true, emulator => emulator.is_pooled())
    }
}
