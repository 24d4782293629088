//! What a device is made of: a GPU behind its driver, or the emulator. The one place where they differ.

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

impl Runtime {
    pub(super) fn info(&self) -> &DeviceInfo {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.info(),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.info(),
        }
    }

    /// Bytes of device memory that are free.
    pub(super) fn free_bytes(&self) -> Result<usize, CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.free_bytes(),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.free_bytes(),
        }
    }

    /// `bytes` bytes, aligned to 256, of any contents.
    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.allocate(bytes),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.allocate(bytes),
        }
    }

    /// Takes back what [`Runtime::allocate`] gave, and no work that is queued has use for.
    pub(super) fn free(&self, address: u64) {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.free(address),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.free(address),
        }
    }

    /// Sets memory to zeros.
    pub(super) fn clear(&self, address: u64, bytes: usize) -> Result<(), CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.clear(address, bytes),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.clear(address, bytes),
        }
    }

    /// Copies to the device. `host` may be changed when this returns.
    pub(super) fn upload(&self, host: &[u8], address: u64) -> Result<(), CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.upload(host, address),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.upload(host, address),
        }
    }

    /// Waits for all work, then hands bytes of the device to `take`, in parts, one after another.
    pub(super) fn download(
        &self,
        address: u64,
        bytes: usize,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.download(address, bytes, take),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.download(address, bytes, take),
        }
    }

    /// Copies on the device.
    pub(super) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.copy(from, to, bytes),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.copy(from, to, bytes),
        }
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
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => match *peer {
                Self::Gpu(ref peer) => gpu.copy_from(peer, from, to, bytes),
                #[cfg(feature = "emulator")]
                Self::Emulator(_) => self.copy_by_host(peer, from, to, bytes),
            },
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => match *peer {
                #[cfg(feature = "driver")]
                Self::Gpu(_) => self.copy_by_host(peer, from, to, bytes),
                Self::Emulator(ref peer) => emulator.copy_from(peer, from, to, bytes),
            },
        }
    }

    /// The same where one of them is emulated.
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
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.launch(kernel, launch, args),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.launch(kernel, launch, args),
        }
    }

    /// Queues a kernel on the side stream. The emulator has none: its kernels have ended when they are launched.
    pub(super) fn launch_beside(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.launch_beside(kernel, launch, args),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.launch(kernel, launch, args),
        }
    }

    /// Has all later work of the side stream wait for all other work until now.
    pub(super) fn fork(&self) -> Result<(), CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.fork(),
            #[cfg(feature = "emulator")]
            Self::Emulator(_) => Ok(()),
        }
    }

    /// Has all later work wait for that of the side stream until now.
    pub(super) fn join(&self) -> Result<(), CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.join(),
            #[cfg(feature = "emulator")]
            Self::Emulator(_) => Ok(()),
        }
    }

    /// Waits for all work of the side stream.
    pub(super) fn finish_side(&self) -> Result<(), CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.finish_side(),
            #[cfg(feature = "emulator")]
            Self::Emulator(_) => Ok(()),
        }
    }

    /// Waits for all work.
    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(ref gpu) => gpu.synchronize(),
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.synchronize(),
        }
    }

    /// Whether memory is rounded up, and kept for later.
    pub(super) fn is_pooled(&self) -> bool {
        match *self {
            #[cfg(feature = "driver")]
            Self::Gpu(_) => true,
            #[cfg(feature = "emulator")]
            Self::Emulator(ref emulator) => emulator.is_pooled(),
        }
    }
}
