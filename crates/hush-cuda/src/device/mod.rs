//! A device: its memory, copies and kernel launches, all executed in the order of the calls.

#[cfg(feature = "emulator")]
use std::collections::{BTreeMap, BTreeSet};
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
mod resident;
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

/// The largest number of bytes uploaded at once: the size of a pinned buffer, and the step of the progress count. The queries of a
/// batch are a few such parts, so that the host fills one buffer while another is uploaded. Copying a part takes much longer than
/// queueing the copy.
const UPLOAD_BYTES: usize = 2 << 20;

/// A copy of words from the memory of a device to that of another device, or of the same one.
pub struct PeerCopy<'a, T: Word> {
    /// The source: a device and words in its memory.
    pub from: (&'a Device, Slice<'a, T>),
    /// The target: a device and memory of the same length.
    pub to: (&'a Device, Slice<'a, T>),
}

/// A GPU, or the emulator. Clones are the same device.
///
/// After a permanent failure, every call fails with [`CudaError::Lost`]. If memory is short, all memory that was kept for later is
/// given back to the driver before a call fails.
#[derive(Clone)]
pub struct Device {
    runtime: Arc<Runtime>,
    pool: Arc<Pool>,
    uploaded: Arc<AtomicU64>,
    health: Arc<Health>,
}

impl Device {
    /// Opens GPU number `ordinal`.
    ///
    /// # Errors
    /// [`CudaError`] with the reason: no driver, no such GPU, a GPU that is too old, or a program without GPU support.
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
    /// The error of the first GPU, if none can be used.
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

    /// Returns the properties of all GPUs of this machine, in the driver's order, including GPUs that cannot be used.
    ///
    /// # Errors
    /// [`CudaError`] if there is no driver, or the program has no GPU support.
    pub fn list() -> Result<Vec<DeviceInfo>, CudaError> {
        #[cfg(feature = "driver")]
        return driver::list();
        #[cfg(not(feature = "driver"))]
        Err(CudaError::NotBuilt)
    }

    /// Returns the CUDA version of the driver: major and minor.
    ///
    /// # Errors
    /// [`CudaError`] if there is no driver, or the program has no GPU support.
    pub fn driver_version() -> Result<(u32, u32), CudaError> {
        #[cfg(feature = "driver")]
        return driver::version();
        #[cfg(not(feature = "driver"))]
        Err(CudaError::NotBuilt)
    }

    /// Creates an emulator: the same kernels on the CPU.
    #[cfg(feature = "emulator")]
    pub fn emulated(emulation: Emulation) -> Self {
        Self::emulated_with_memory(emulation, emulated::MEMORY_BYTES)
    }

    /// Creates an emulator with `bytes` bytes of memory. Allocations beyond that fail with [`CudaError::OutOfMemory`].
    #[cfg(feature = "emulator")]
    pub fn emulated_with_memory(emulation: Emulation, bytes: usize) -> Self {
        Self::of(Runtime::Emulator(emulated::Emulator::new(emulation, bytes)))
    }

    /// Returns the names of the kernels launched so far, to test tests. Empty for a GPU, which does not record them.
    #[cfg(feature = "emulator")]
    pub fn launched_kernels(&self) -> BTreeSet<&'static str> {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => BTreeSet::new(),
            Runtime::Emulator(ref emulator) => emulator.launched(),
        }
    }

    /// Returns the peak of an emulated device's memory since the last call, minus the bytes allocated now, for tests.
    #[cfg(feature = "emulator")]
    pub fn take_emulated_peak(&self) -> usize {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => 0,
            Runtime::Emulator(ref emulator) => emulator.take_peak(),
        }
    }

    /// Returns how often the host has waited for an emulated device, for tests: at a download, or for all its work.
    #[cfg(feature = "emulator")]
    pub fn emulated_waits(&self) -> usize {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => 0,
            Runtime::Emulator(ref emulator) => emulator.waits(),
        }
    }

    /// Returns how many threads of each kernel an emulated device has run, for tests.
    #[cfg(feature = "emulator")]
    pub fn emulated_threads(&self) -> BTreeMap<&'static str, usize> {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => BTreeMap::new(),
            Runtime::Emulator(ref emulator) => emulator.threads(),
        }
    }

    /// Returns how many bytes an emulated device has received from others, for tests.
    #[cfg(feature = "emulator")]
    pub fn emulated_peer_bytes(&self) -> usize {
        match *self.runtime {
            #[cfg(feature = "driver")]
            Runtime::Gpu(_) => 0,
            Runtime::Emulator(ref emulator) => emulator.peer_bytes(),
        }
    }

    /// Makes all later calls on an emulated device fail. Does nothing to a GPU.
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

    /// Runs a call on the runtime. If memory is short, frees the pool's unused memory and runs it once more.
    fn ask<T>(&self, mut what: impl FnMut(&Runtime) -> Result<T, CudaError>) -> Result<T, CudaError> {
        self.health.watch(&self.runtime, || self.pool.with_room(|| what(&self.runtime)))
    }

    /// Returns the reason of a permanent failure, once there is one. All later calls return [`CudaError::Lost`], until the process
    /// is started again.
    pub fn lost(&self) -> Option<&str> {
        self.health.lost()
    }

    /// Returns the properties of the device.
    pub fn info(&self) -> &DeviceInfo {
        self.runtime.info()
    }

    /// Returns whether kernels for Hopper run on the device.
    pub fn is_hopper(&self) -> bool {
        self.info().is_hopper()
    }

    /// Returns the bytes of device memory that can be allocated: those free in the driver, and those kept for later. Fails with
    /// [`CudaError`] if the device fails.
    pub fn free_bytes(&self) -> Result<usize, CudaError> {
        Ok(self.ask(Runtime::free_bytes)? + self.kept_bytes())
    }

    /// Returns the bytes of freed buffers that are kept for later.
    pub fn kept_bytes(&self) -> usize {
        self.pool.kept_bytes()
    }

    /// Returns an upper bound on the bytes that `buffers` buffers of `bytes` bytes in total occupy. Sizes are rounded up, so
    /// that later buffers of nearly the same size can reuse the memory.
    pub fn bytes_taken(&self, bytes: usize, buffers: usize) -> usize {
        self.pool.bytes_taken(bytes, buffers)
    }

    /// Returns the bytes uploaded so far, from which a caller that opens a large table reads its progress.
    pub fn uploaded_bytes(&self) -> u64 {
        self.uploaded.load(Ordering::Relaxed)
    }

    /// Allocates memory for `len` values, with arbitrary contents. Fails with [`CudaError::OutOfMemory`] if too little memory is
    /// free, even after unused memory is released, and with another [`CudaError`] if the device fails.
    pub fn alloc<T: Word>(&self, len: usize) -> Result<Buffer<T>, CudaError> {
        let (address, bytes) = self.health.watch(&self.runtime, || self.pool.take(len * size_of::<T>()))?;
        Ok(Buffer::new(self.pool.clone(), address, bytes, len))
    }

    /// Allocates memory for `len` zeros. Fails like [`Device::alloc`].
    pub fn zeroed<T: Word>(&self, len: usize) -> Result<Buffer<T>, CudaError> {
        let buffer = self.alloc(len)?;
        self.clear(&buffer.slice(..))?;
        Ok(buffer)
    }

    /// Returns the address of memory of this device, for a kernel that reads it from a table or a structure. Fails with
    /// [`CudaError::OtherDevice`] if the memory is on another device.
    pub fn address<T: Word>(&self, slice: &Slice<'_, T>) -> Result<u64, CudaError> {
        self.address_for("a table of addresses", slice)
    }

    /// Returns the address for `call`, which the error names if the memory is on another device.
    fn address_for<T: Word>(&self, call: &str, slice: &Slice<'_, T>) -> Result<u64, CudaError> {
        if slice.device() == self.pool.device() {
            return Ok(slice.address());
        }
        Err(CudaError::OtherDevice { call: call.to_owned() })
    }

    /// Sets memory to zeros. Fails with [`CudaError::OtherDevice`] if the memory is on another device, and with another
    /// [`CudaError`] if the device fails.
    pub fn clear<T: Word>(&self, slice: &Slice<'_, T>) -> Result<(), CudaError> {
        let address = self.address_for("setting memory to zeros", slice)?;
        if slice.is_empty() {
            return Ok(());
        }
        self.ask(|runtime| runtime.clear(address, slice.bytes()))
    }

    /// Copies `host` to new memory on the device. Fails like [`Device::alloc`].
    pub fn upload<T: Word>(&self, host: &[T]) -> Result<Buffer<T>, CudaError> {
        let buffer = self.alloc(host.len())?;
        self.upload_into(host, &buffer.slice(..))?;
        Ok(buffer)
    }

    /// Copies `host` to device memory of the same length. Fails with [`CudaError::OtherDevice`] if the memory is on another device,
    /// and with another [`CudaError`] if the device fails.
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

    /// Copies device memory to the host, as it is after all work queued so far. Waits for that work. Fails with
    /// [`CudaError::OtherDevice`] if the memory is on another device, and with another [`CudaError`] if the device or the work
    /// fails.
    pub fn download<T: Word + Default>(&self, from: &Slice<'_, T>) -> Result<Vec<T>, CudaError> {
        let mut host = vec![T::default(); from.len()];
        self.download_into(from, &mut host)?;
        Ok(host)
    }

    /// Copies device memory to host memory of the same length, like [`Device::download`] and with its errors.
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

    /// Copies `rows` rows of the same length to the host, each into its own vector, like [`Device::download`] and with its errors.
    ///
    /// # Panics
    /// If the length of `from` is not a multiple of `rows`.
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

    /// Copies device memory to device memory of the same length. Fails with [`CudaError::OtherDevice`] if either is on another
    /// device, and with another [`CudaError`] if the device fails.
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

    /// Copies memory between devices, all copies at once. Words are read as they are after all work of their device queued so far.
    ///
    /// The host does not wait. On the devices, a reader waits for the owners' work, and an owner waits for its readers before
    /// later work. So the caller may drop the source at once. If neither of two GPUs can read the memory of the other, the driver
    /// copies by way of the host.
    ///
    /// # Errors
    /// [`CudaError::OtherDevice`] before any copy; [`CudaError::Driver`] or [`CudaError::Lost`] of one of the devices.
    ///
    /// # Panics
    /// If the lengths of a copy differ.
    pub fn exchange<T: Word>(copies: &[PeerCopy<'_, T>]) -> Result<(), CudaError> {
        let call = "a copy between devices";
        let is_same = |one: &Self, other: &Self| one.pool.device() == other.pool.device();
        // The distinct pairs of a reader and an owner.
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
        // Owners wait for the queued copies, which read their memory.
        let held =
            pairs.iter().map(|(reader, owner)| owner.wait_for(reader).or_else(|_| reader.synchronize()));
        let held: Vec<_> = held.collect();
        held.into_iter().fold(copied, Result::and)
    }

    /// Returns whether every two of some devices have a link that is much faster than the bus of the host: NVLink. Devices that do
    /// not answer have none.
    pub fn are_linked(devices: &[&Self]) -> bool {
        let others = |device: &&Self| {
            let own = device.pool.device();
            devices.iter().filter(move |other| other.pool.device() != own)
        };
        devices.iter().all(|device| others(device).all(|other| device.runtime.is_linked(&other.runtime)))
    }

    /// Makes all later work wait for the work that `peer` has queued so far, on the device.
    fn wait_for(&self, peer: &Self) -> Result<(), CudaError> {
        self.with_peer(peer, |runtime| runtime.wait_for(&peer.runtime))
    }

    /// Runs a call that involves this device and `peer`.
    fn with_peer(
        &self,
        peer: &Self,
        what: impl FnMut(&Runtime) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        self.ask(what).or_else(|error| {
            // The failure may be the peer's.
            peer.synchronize()?;
            Err(error)
        })
    }

    /// Queues a kernel, for a step. A grid without blocks does nothing.
    ///
    /// The caller must keep the contract of [`Device::launch_kernel`], which nothing can check: the driver knows the number and the
    /// lengths of a kernel's arguments, but not the memory to which they point. So the function is private to this crate. Tests
    /// under sanitizers check that the crate's steps keep the contract.
    pub(crate) fn launch(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.launch_by(Runtime::launch, kernel, launch, args)
    }

    /// Launches by one of the runtime's launch methods.
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

    /// Queues a single kernel, for tests and benchmarks. A grid without blocks does nothing.
    ///
    /// # Safety
    /// The arguments must match the kernel's parameters in number and type, and have the values that the kernel's comment requires.
    /// All memory that it reads and writes through them must lie in buffers of this device that have not been dropped.
    pub unsafe fn launch_kernel(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.launch(kernel, launch, args)
    }

    /// Waits for all work queued so far. Fails with [`CudaError`] if that work or the device fails.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.ask(Runtime::synchronize)
    }

    /// Gives memory that is kept for later back to the driver.
    pub fn release_unused(&self) {
        self.pool.release();
    }
}
