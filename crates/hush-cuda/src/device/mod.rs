//! A device: its memory, copies, and launches of kernels, all of them done in the order in which they are asked for.

#[cfg(feature = "emulator")]
use std::collections::BTreeSet;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use zerocopy::IntoBytes;

#[cfg(feature = "driver")]
mod calls;
mod copies;
#[cfg(feature = "driver")]
mod driver;
#[cfg(feature = "emulator")]
mod emulated;
mod error;
mod health;
mod id;
mod info;
mod launch;
mod memory;
#[cfg(feature = "driver")]
mod modules;
mod runtime;
mod side;
#[cfg(feature = "driver")]
mod stopwatch;
#[cfg(feature = "driver")]
mod stream;

#[cfg(feature = "emulator")]
pub use emulated::{Emulation, emulated_kernels, emulated_sanitizer};
pub use error::CudaError;
use health::Health;
pub use info::{DeviceInfo, LEAST_SHARED};
pub use launch::{Arg, Launch, MAX_GRID, Memory};
pub use memory::buffer::{Buffer, Slice, Word};
use memory::pool::Pool;
use runtime::Runtime;
pub(crate) use side::Side;
#[cfg(feature = "driver")]
pub use stopwatch::Stopwatch;

/// Bytes that are uploaded at once, at most: what a buffer of pinned memory holds, and the grain of progress. The queries of a
/// batch are a few of them, so that these, too, are copied into one buffer while another goes up; a copy takes much longer than to
/// ask for it.
const UPLOAD_BYTES: usize = 2 << 20;

/// Words that go from the memory of a device to that of another, or of the same.
pub struct PeerCopy<'a, T: Word> {
    /// Where they are.
    pub from: (&'a Device, Slice<'a, T>),
    /// Where they go: as many.
    pub to: (&'a Device, Slice<'a, T>),
}

/// A GPU, or the emulator. Clones are the same device.
///
/// Whatever is asked of it after a failure for good fails with [`CudaError::Lost`]. Where memory is short, all that was kept for
/// later is given back to the driver before a call fails for it.
#[derive(Clone)]
pub struct Device {
    runtime: Arc<Runtime>,
    pool: Arc<Pool>,
    uploaded: Arc<AtomicU64>,
    health: Arc<Health>,
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

    /// Returns all GPUs of this machine that can be used, at least one, in the driver's order.
    ///
    /// # Errors
    /// That of the first one, if none can be used.
    pub fn open_all() -> Result<Vec<Self>, CudaError> {
        let count = Self::list().map_or(1, |devices| devices.len().max(1));
        let mut devices = Vec::new();
        let mut first_error = None;
        for ordinal in 0..count {
            match Self::open(ordinal) {
                Ok(device) => devices.push(device),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match first_error {
            Some(error) if devices.is_empty() => Err(error),
            _ => Ok(devices),
        }
    }

    /// Returns the facts that the GPUs of this machine report, in the driver's order; GPUs that cannot be used too.
    ///
    /// # Errors
    /// [`CudaError`] if there is no driver, or the program has no GPU support.
    pub fn list() -> Result<Vec<DeviceInfo>, CudaError> {
        #[cfg(feature = "driver")]
        return driver::list();
        #[cfg(not(feature = "driver"))]
        Err(CudaError::NotBuilt)
    }

    /// Returns the version of CUDA that the driver has: major and minor.
    ///
    /// # Errors
    /// [`CudaError`] if there is no driver, or the program has no GPU support.
    pub fn driver_version() -> Result<(u32, u32), CudaError> {
        #[cfg(feature = "driver")]
        return driver::version();
        #[cfg(not(feature = "driver"))]
        Err(CudaError::NotBuilt)
    }

    /// Returns the emulator: the same kernels on the CPU.
    #[cfg(feature = "emulator")]
    pub fn emulated(emulation: Emulation) -> Self {
        Self::emulated_with_memory(emulation, emulated::MEMORY_BYTES)
    }

    /// Returns the emulator with so many bytes of memory: who asks for more gets [`CudaError::OutOfMemory`].
    #[cfg(feature = "emulator")]
    pub fn emulated_with_memory(emulation: Emulation, bytes: usize) -> Self {
        Self::of(Runtime::Emulator(emulated::Emulator::new(emulation, bytes)))
    }

    /// Returns the names of the kernels that were launched until now, for tests of tests. A GPU does not keep them.
    #[cfg(feature = "emulator")]
    pub fn launched_kernels(&self) -> BTreeSet<&'static str> {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => BTreeSet::new(),
            Runtime::Emulator(ref emulator) => emulator.launched(),
        }
    }

    /// Returns by how many bytes the peak of an emulated device's memory since the last call exceeded what is taken now, for tests.
    #[cfg(feature = "emulator")]
    pub fn take_emulated_peak(&self) -> usize {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => 0,
            Runtime::Emulator(ref emulator) => emulator.take_peak(),
        }
    }

    /// Returns how often somebody waited for an emulated device until now, for tests: at a download, or for all its work.
    #[cfg(feature = "emulator")]
    pub fn emulated_waits(&self) -> usize {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => 0,
            Runtime::Emulator(ref emulator) => emulator.waits(),
        }
    }

    /// Makes everything fail from now on that an emulated device is asked for. Does nothing to a GPU.
    #[cfg(feature = "emulator")]
    pub fn emulate_loss(&self) {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => {}
            Runtime::Emulator(ref emulator) => emulator.lose(),
        }
    }

    fn of(runtime: Runtime) -> Self {
        let runtime = Arc::new(runtime);
        let pool = Arc::new(Pool::new(runtime.clone()));
        Self { runtime, pool, uploaded: Arc::default(), health: Arc::default() }
    }

    /// Asks the runtime for something: once more with all of the pool's memory given back, if memory is short for it.
    fn ask<T>(&self, mut what: impl FnMut(&Runtime) -> Result<T, CudaError>) -> Result<T, CudaError> {
        self.health.watch(&self.runtime, || self.pool.with_room(|| what(&self.runtime)))
    }

    /// Why it does nothing any more, once it has failed for good: what was done with it last returned [`CudaError::Lost`], and so
    /// does all that follows, until the process is started again.
    pub fn lost(&self) -> Option<&str> {
        self.health.lost()
    }

    /// Returns the facts that the device reports.
    pub fn info(&self) -> &DeviceInfo {
        self.runtime.info()
    }

    /// Returns whether kernels for Hopper alone run on it.
    pub fn is_hopper(&self) -> bool {
        self.info().is_hopper()
    }

    /// Returns the bytes of device memory that can be had: what the driver has, and what is kept for later.
    pub fn free_bytes(&self) -> Result<usize, CudaError> {
        Ok(self.ask(Runtime::free_bytes)? + self.kept_bytes())
    }

    /// Returns the bytes that are kept for later, though nobody has them.
    pub fn kept_bytes(&self) -> usize {
        self.pool.kept_bytes()
    }

    /// Returns the bytes that `buffers` buffers of `bytes` bytes in all take at most: they are rounded up, so that the next
    /// ones of nearly the same size can have their memory.
    pub fn bytes_taken(&self, bytes: usize, buffers: usize) -> usize {
        self.pool.bytes_taken(bytes, buffers)
    }

    /// Returns the bytes that were uploaded until now: who opens a large table looks here for its progress.
    pub fn uploaded_bytes(&self) -> u64 {
        self.uploaded.load(Ordering::Relaxed)
    }

    /// Memory for `len` values, which are any.
    pub fn alloc<T: Word>(&self, len: usize) -> Result<Buffer<T>, CudaError> {
        let take = || self.pool.take(len * size_of::<T>());
        let (address, bytes) = self.health.watch(&self.runtime, take)?;
        Ok(Buffer::new(self.pool.clone(), address, bytes, len))
    }

    /// Memory for `len` zeros.
    pub fn zeroed<T: Word>(&self, len: usize) -> Result<Buffer<T>, CudaError> {
        let buffer = self.alloc(len)?;
        self.clear(&buffer.slice(..))?;
        Ok(buffer)
    }

    /// Returns the address of memory of this device, for a kernel that finds it in a table or a structure.
    pub fn address<T: Word>(&self, slice: &Slice<'_, T>) -> Result<u64, CudaError> {
        self.address_for("a table of addresses", slice)
    }

    /// Returns the address for `call`.
    fn address_for<T: Word>(&self, call: &str, slice: &Slice<'_, T>) -> Result<u64, CudaError> {
        if slice.device() == self.pool.device() {
            return Ok(slice.address());
        }
        Err(CudaError::OtherDevice { call: call.to_owned() })
    }

    /// Sets memory to zeros.
    pub fn clear<T: Word>(&self, slice: &Slice<'_, T>) -> Result<(), CudaError> {
        let address = self.address_for("setting memory to zeros", slice)?;
        if slice.is_empty() {
            return Ok(());
        }
        self.ask(|runtime| runtime.clear(address, slice.bytes()))
    }

    /// Returns a copy of `host` on the device.
    pub fn upload<T: Word>(&self, host: &[T]) -> Result<Buffer<T>, CudaError> {
        let buffer = self.alloc(host.len())?;
        self.upload_into(host, &buffer.slice(..))?;
        Ok(buffer)
    }

    /// Copies `host` to memory of the same length.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn upload_into<T: Word>(&self, host: &[T], to: &Slice<'_, T>) -> Result<(), CudaError> {
        assert_eq!(host.len(), to.len());
        let address = self.address_for("an upload", to)?;
        for (index, part) in host.as_bytes().chunks(UPLOAD_BYTES).enumerate() {
            self.ask(|runtime| runtime.upload(part, address + (index * UPLOAD_BYTES) as u64))?;
            self.uploaded.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns a copy of device memory, as it is after all work until now. Waits for that.
    pub fn download<T: Word + Default>(&self, from: &Slice<'_, T>) -> Result<Vec<T>, CudaError> {
        let mut host = vec![T::default(); from.len()];
        self.download_into(from, &mut host)?;
        Ok(host)
    }

    /// Downloads to memory of the same length.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn download_into<T: Word>(&self, from: &Slice<'_, T>, host: &mut [T]) -> Result<(), CudaError> {
        assert_eq!(from.len(), host.len());
        let address = self.address_for("a download", from)?;
        let bytes = host.as_mut_bytes();
        self.ask(|runtime| {
            let mut next = 0;
            runtime.download(address, bytes.len(), &mut |part| {
                copies::copy(&mut bytes[next..][..part.len()], part);
                next += part.len();
            })
        })
    }

    /// Downloads `rows` rows of one length, each into memory of its own.
    ///
    /// # Panics
    /// If they are not of one length.
    pub fn download_rows(&self, from: &Slice<'_, u8>, rows: usize) -> Result<Vec<Vec<u8>>, CudaError> {
        let row = from.len().checked_div(rows).unwrap_or(0);
        assert_eq!(row * rows, from.len());
        let address = self.address_for("a download", from)?;
        self.ask(|runtime| {
            let mut host: Vec<_> = (0..rows).map(|_| Vec::with_capacity(row)).collect();
            let mut next = 0;
            runtime.download(address, from.len(), &mut |mut part| {
                while !part.is_empty() {
                    let own: &mut Vec<u8> = &mut host[next / row];
                    let now;
                    (now, part) = part.split_at(part.len().min(row - own.len()));
                    own.extend_from_slice(now);
                    next += now.len();
                }
            })?;
            Ok(host)
        })
    }

    /// Copies device memory to device memory of the same length.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn copy<T: Word>(&self, from: &Slice<'_, T>, to: &Slice<'_, T>) -> Result<(), CudaError> {
        assert_eq!(from.len(), to.len());
        let from_address = self.address_for("a copy", from)?;
        let to_address = self.address_for("a copy", to)?;
        if from.is_empty() {
            return Ok(());
        }
        self.ask(|runtime| runtime.copy(from_address, to_address, from.bytes()))
    }

    /// Copies memory of some devices to memory of others, all at once: words as they are after all work of their device until now.
    /// Nobody waits for it on the host: a device that gets words does for the work of those that have them, and these do before
    /// they change them, so that they may be dropped. Between GPUs of which neither reads the memory of the other, the driver
    /// copies by way of the host.
    ///
    /// # Errors
    /// [`CudaError::OtherDevice`], before anything is copied; [`CudaError::Driver`] or [`CudaError::Lost`] of one of the devices.
    ///
    /// # Panics
    /// If the lengths of a copy differ.
    pub fn exchange<T: Word>(copies: &[PeerCopy<'_, T>]) -> Result<(), CudaError> {
        let call = "a copy between devices";
        let is_same = |one: &Self, other: &Self| one.pool.device() == other.pool.device();
        // Who gets words of whom, once.
        let mut pairs: Vec<(&Self, &Self)> = Vec::new();
        let mut queued = Vec::new();
        for PeerCopy { from: (owner, from), to: (reader, to) } in copies {
            assert_eq!(from.len(), to.len());
            let addresses = (owner.address_for(call, from)?, reader.address_for(call, to)?);
            if from.is_empty() {
                continue;
            }
            queued.push((reader, owner, addresses, from.bytes()));
            if !is_same(reader, owner)
                && !pairs
                    .iter()
                    .any(|pair: &(&Self, &Self)| is_same(pair.0, reader) && is_same(pair.1, owner))
            {
                pairs.push((reader, owner));
            }
        }
        pairs.iter().try_for_each(|(reader, owner)| reader.wait_for(owner))?;
        let copied = queued.iter().try_for_each(|&(reader, owner, (from, to), bytes)| {
            reader.with_peer(owner, |runtime| runtime.copy_from(&owner.runtime, from, to, bytes))
        });
        // Whatever was queued reads their memory.
        let held =
            pairs.iter().map(|(reader, owner)| owner.wait_for(reader).or_else(|_| reader.synchronize()));
        let held: Vec<_> = held.collect();
        held.into_iter().fold(copied, Result::and)
    }

    /// Has all later work wait for that of `peer` until now, on the device.
    fn wait_for(&self, peer: &Self) -> Result<(), CudaError> {
        self.with_peer(peer, |runtime| runtime.wait_for(&peer.runtime))
    }

    /// Does what two devices have to do with.
    fn with_peer(
        &self,
        peer: &Self,
        what: impl FnMut(&Runtime) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        self.ask(what).or_else(|error| {
            // It may have been the other one that failed.
            peer.synchronize()?;
            Err(error)
        })
    }

    /// Queues a kernel, for a step. A grid without blocks is no work.
    ///
    /// It is safe for this crate alone, whose steps keep the contract of [`Device::launch_kernel`]: nothing could check it. The
    /// driver knows how many arguments a kernel takes and how long they are, but not what they point to, and how much of that the
    /// kernel reads and writes depends on all of them. That the steps keep it is what tests under sanitizers are for.
    pub(crate) fn launch(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.launch_by(Runtime::launch, kernel, launch, args)
    }

    /// Launches by one of the runtime's ways.
    fn launch_by(
        &self,
        by: impl Fn(&Runtime, &'static str, Launch, &[Arg<'_>]) -> Result<(), CudaError>,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        if launch.grid.contains(&0) {
            return Ok(());
        }
        if args.iter().filter_map(Arg::device).any(|device| device != self.pool.device()) {
            return Err(CudaError::OtherDevice { call: format!("launch of {kernel}") });
        }
        self.ask(|runtime| by(runtime, kernel, launch, args))
    }

    /// Queues a kernel by itself, for tests and benchmarks of single kernels. A grid without blocks is no work.
    ///
    /// # Safety
    /// The arguments must be as many as the kernel takes, each of its type, with the values that the kernel's comment asks for;
    /// what it reads and writes by them must lie in buffers of this device that have not been dropped.
    pub unsafe fn launch_kernel(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.launch(kernel, launch, args)
    }

    /// Waits for all work until now.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.ask(Runtime::synchronize)
    }

    /// Gives memory that is kept for later back to the driver.
    pub fn release_unused(&self) {
        self.pool.release();
    }
}
