//! The runtime of a device: a GPU behind its driver, or the emulator. The one place where they differ.

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
    /// The kernels on the CPU.
    #[cfg(feature = "emulator")]
    Emulator(Emulator),
}

/// The call on a GPU, and the call on the emulator, if it is another one.
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

    /// `bytes` bytes, aligned to 256, of any contents.
    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, CudaError> {
        on!(self, device => device.allocate(bytes))
    }

    /// Takes back what [`Runtime::allocate`] gave, and no work that is queued has use for.
    pub(super) fn free(&self, address: u64) {
        on!(self, device => device.free(address));
    }

    /// Sets memory to zeros.
    pub(super) fn clear(&self, address: u64, bytes: usize) -> Result<(), CudaError> {
        on!(self, device => device.clear(address, bytes))
    }

    /// Copies to the device. `host` may be changed when this returns.
    pub(super) fn upload(&self, host: &[u8], address: u64) -> Result<(), CudaError> {
        on!(self, device => device.upload(host, address))
    }

    /// Waits for all work, then hands bytes of the device to `take`, in parts, one after another.
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

    /// Has all later work wait for that of another device until now. Where one of them is emulated, there is nothing to wait for.
    pub(super) fn wait_for(&self, peer: &Self) -> Result<(), CudaError> {
        match (self, peer) {
            #[cfg(feature = "driver")]
            (Self::Gpu(gpu), Self::Gpu(peer)) => gpu.wait_for(peer),
            #[cfg(feature = "emulator")]
            _ => Ok(()),
        }
    }

    /// Copies from the memory of another device, in the order of work here.
    pub(super) fn copy_from(&self, peer: &Self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        on!(self,
            gpu => on!(peer,
                peer => gpu.copy_from(peer, from, to, bytes),
                _emulator => self.copy_by_host(peer, from, to, bytes)),
            emulator => on!(peer,
                _gpu => self.copy_by_host(peer, from, to, bytes),
                peer => emulator.copy_from(peer, from, to, bytes)))
    }

    /// Copies by way of the host, where one of the devices is emulated.
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

    /// Queues a kernel on the side stream. The emulator has none: its kernels have ended when they are launched.
    pub(super) fn launch_beside(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        on!(self, gpu => gpu.launch_beside(kernel, launch, args), emulator => emulator.launch(kernel, launch, args))
    }

    /// Has all later work of the side stream wait for all other work until now.
    pub(super) fn fork(&self) -> Result<(), CudaError> {
        on!(self, gpu => gpu.fork(), _emulator => Ok(()))
    }

    /// Has all later work wait for that of the side stream until now.
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

    /// Returns whether memory is rounded up, and kept for later.
    pub(super) fn is_pooled(&self) -> bool {
        on!(self, _gpu => true, emulator => emulator.is_pooled())
    }
}
