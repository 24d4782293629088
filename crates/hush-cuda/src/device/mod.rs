//! A device: its memory, copies, and launches of kernels, all of them done in the order in which they are asked for.

#[cfg(feature = "emulator")]
use std::collections::BTreeSet;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

mod buffer;
#[cfg(feature = "driver")]
mod driver;
#[cfg(feature = "emulator")]
mod emulated;
mod error;
mod info;
mod launch;
#[cfg(feature = "driver")]
mod modules;
#[cfg(feature = "driver")]
mod pinned;
mod pool;
mod runtime;

pub use buffer::{Buffer, Slice, Word};
#[cfg(feature = "driver")]
pub use driver::Stopwatch;
#[cfg(feature = "emulator")]
pub use emulated::{Emulation, emulated_kernels};
pub use error::CudaError;
pub use info::DeviceInfo;
pub use launch::{Arg, Launch};
use pool::Pool;
use runtime::Runtime;

/// Bytes that are uploaded at once, at most: what pinned memory holds, and the grain of progress.
const UPLOAD_BYTES: usize = 16 << 20;

/// A GPU, or the emulator.
pub struct Device {
    runtime: Arc<Runtime>,
    pool: Arc<Pool>,
    uploaded: AtomicU64,
}

impl Device {
    /// GPU number `ordinal`.
    ///
    /// # Errors
    /// [`CudaError`] says why it cannot be used: no driver, no such GPU, too old, or a program without GPU support.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        #[cfg(feature = "driver")]
        return Ok(Self::of(Runtime::Gpu(driver::Gpu::open(ordinal)?)));
        #[cfg(not(feature = "driver"))]
        {
            let _ = ordinal;
            Err(CudaError::NotBuilt)
        }
    }

    /// What the GPUs of this machine say of themselves, in the driver's order; those that cannot be used too.
    ///
    /// # Errors
    /// [`CudaError`] if there is no driver, or the program has no GPU support.
    pub fn list() -> Result<Vec<DeviceInfo>, CudaError> {
        #[cfg(feature = "driver")]
        return driver::list();
        #[cfg(not(feature = "driver"))]
        Err(CudaError::NotBuilt)
    }

    /// The version of CUDA that the driver has: major and minor.
    ///
    /// # Errors
    /// [`CudaError`] if there is no driver, or the program has no GPU support.
    pub fn driver_version() -> Result<(u32, u32), CudaError> {
        #[cfg(feature = "driver")]
        return driver::version();
        #[cfg(not(feature = "driver"))]
        Err(CudaError::NotBuilt)
    }

    /// The emulator: the same kernels on the CPU.
    #[cfg(feature = "emulator")]
    pub fn emulated(emulation: Emulation) -> Self {
        Self::emulated_with_memory(emulation, emulated::MEMORY_BYTES)
    }

    /// The emulator with so many bytes of memory: who asks for more gets [`CudaError::OutOfMemory`].
    #[cfg(feature = "emulator")]
    pub fn emulated_with_memory(emulation: Emulation, bytes: usize) -> Self {
        Self::of(Runtime::Emulator(emulated::Emulator::new(emulation, bytes)))
    }

    /// The names of the kernels that were launched until now, for tests of tests. A GPU does not keep them.
    #[cfg(feature = "emulator")]
    pub fn launched_kernels(&self) -> BTreeSet<&'static str> {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => BTreeSet::new(),
            Runtime::Emulator(ref emulator) => emulator.launched(),
        }
    }

    fn of(runtime: Runtime) -> Self {
        let runtime = Arc::new(runtime);
        Self { pool: Arc::new(Pool::new(runtime.clone())), runtime, uploaded: AtomicU64::new(0) }
    }

    /// What it says of itself.
    pub fn info(&self) -> &DeviceInfo {
        self.runtime.info()
    }

    /// Whether kernels for Hopper alone run on it.
    pub fn is_hopper(&self) -> bool {
        self.info().is_hopper()
    }

    /// Bytes of device memory that can be had: what the driver has, and what is kept for later.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn free_bytes(&self) -> Result<usize, CudaError> {
        Ok(self.runtime.free_bytes()? + self.pool.kept_bytes())
    }

    /// Bytes that were uploaded until now: who opens a large table looks here for its progress.
    pub fn uploaded_bytes(&self) -> u64 {
        self.uploaded.load(Ordering::Relaxed)
    }

    /// Memory for `len` values, which are any.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`].
    pub fn alloc<T: Word>(&self, len: usize) -> Result<Buffer<T>, CudaError> {
        let (address, bytes) = self.pool.take(len * size_of::<T>())?;
        Ok(Buffer::new(self.pool.clone(), address, bytes, len))
    }

    /// Memory for `len` zeros.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`].
    pub fn zeroed<T: Word>(&self, len: usize) -> Result<Buffer<T>, CudaError> {
        let buffer = self.alloc(len)?;
        self.clear(&buffer.slice(..))?;
        Ok(buffer)
    }

    /// Sets memory to zeros.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn clear<T: Word>(&self, slice: &Slice<'_, T>) -> Result<(), CudaError> {
        if slice.is_empty() { Ok(()) } else { self.runtime.clear(slice.address(), slice.bytes()) }
    }

    /// A copy of `host` on the device.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::Driver`].
    pub fn upload<T: Word>(&self, host: &[T]) -> Result<Buffer<T>, CudaError> {
        let buffer = self.alloc(host.len())?;
        self.upload_into(host, &buffer.slice(..))?;
        Ok(buffer)
    }

    /// Copies `host` to memory of the same length.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn upload_into<T: Word>(&self, host: &[T], to: &Slice<'_, T>) -> Result<(), CudaError> {
        assert_eq!(host.len(), to.len());
        // SAFETY: words have no padding.
        let bytes = unsafe { std::slice::from_raw_parts(host.as_ptr().cast(), size_of_val(host)) };
        for (index, part) in bytes.chunks(UPLOAD_BYTES).enumerate() {
            self.runtime.upload(part, to.address() + (index * UPLOAD_BYTES) as u64)?;
            self.uploaded.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A copy of device memory, as it is after all work until now. Waits for that.
    ///
    /// # Errors
    /// [`CudaError::Driver`], also for work that was queued before.
    pub fn download<T: Word + Default>(&self, from: &Slice<'_, T>) -> Result<Vec<T>, CudaError> {
        let mut host = vec![T::default(); from.len()];
        // SAFETY: any bits are a value, and words have no padding.
        let bytes = unsafe { std::slice::from_raw_parts_mut(host.as_mut_ptr().cast(), from.bytes()) };
        self.runtime.download(from.address(), bytes)?;
        Ok(host)
    }

    /// Copies device memory to device memory of the same length.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn copy<T: Word>(&self, from: &Slice<'_, T>, to: &Slice<'_, T>) -> Result<(), CudaError> {
        assert_eq!(from.len(), to.len());
        if from.is_empty() { Ok(()) } else { self.runtime.copy(from.address(), to.address(), from.bytes()) }
    }

    /// Queues a kernel. A grid without blocks is no work.
    ///
    /// The kernel reads and writes what its arguments point to: that these are what it takes is up to the step that launches it,
    /// as its tests show.
    ///
    /// # Errors
    /// [`CudaError::NoKernel`], [`CudaError::Driver`].
    pub fn launch(&self, kernel: &'static str, launch: Launch, args: &[Arg<'_>]) -> Result<(), CudaError> {
        if launch.grid.contains(&0) { Ok(()) } else { self.runtime.launch(kernel, launch, args) }
    }

    /// Waits for all work until now.
    ///
    /// # Errors
    /// [`CudaError::Driver`], also for work that was queued before.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.runtime.synchronize()
    }

    /// Gives memory that is kept for later back to the driver.
    pub fn release_unused(&self) {
        self.pool.release();
    }
}
