//! The emulator: kernels run on the CPU, in memory of the host. A launch returns when the kernel has ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, CString, c_char, c_int, c_void},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use self::memory::EmulatedMemory;
use super::{Arg, CudaError, DeviceInfo, LEAST_SHARED, Launch};

mod memory;

/// The default bytes of device memory of the emulator.
pub(super) const MEMORY_BYTES: usize = 4 << 30;

/// The properties of the emulated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emulation {
    /// The compute capability: `(9, 0)` for Hopper, which enables its kernels, or an earlier one.
    pub capability: (u32, u32),
    /// The number of multiprocessors that the device reports.
    pub multiprocessors: u32,
    /// The seed for disorder; 0 for an orderly device. With a seed, threads run in an order drawn from it, copies finish as late as
    /// possible, and memory is poisoned until they do.
    pub seed: u64,
    /// Whether sizes of memory are rounded up, and freed memory is kept for later, as on a GPU. If not, blocks have exactly the
    /// requested size, so that checkers detect accesses beyond them.
    pub pooled: bool,
    /// Whether words go to other emulators as fast as over NVLink.
    pub is_linked: bool,
}

impl Default for Emulation {
    fn default() -> Self {
        Self { capability: (9, 0), multiprocessors: 3, seed: 0, pooled: false, is_linked: true }
    }
}

/// The struct `HushEmulation` of the C++ side.
#[repr(C)]
struct HushEmulation {
    capability_major: u32,
    capability_minor: u32,
    seed: u64,
    threads: u32,
}

unsafe extern "C" {
    fn hush_emulate_launch(
        kernel: *const c_char,
        grid: *const u32,
        block: u32,
        shared_bytes: u32,
        params: *mut *mut c_void,
        options: *const HushEmulation,
    ) -> c_int;
    fn hush_emulate_kernel_count() -> usize;
    fn hush_emulate_kernel_name(at: usize) -> *const c_char;
    fn hush_emulate_sanitizer() -> *const c_char;
}

/// Returns the sanitizer with which the emulator is compiled: `address`, `thread`, or an empty string.
pub fn emulated_sanitizer() -> &'static str {
    // SAFETY: it is a constant that ends with a zero.
    unsafe { CStr::from_ptr(hush_emulate_sanitizer()) }.to_str().expect("a word")
}

/// Returns the names of all kernels of the emulator, sorted.
pub fn emulated_kernels() -> Vec<&'static str> {
    // SAFETY: the function only reads the list of kernels, which does not change after the start of main.
    let count = unsafe { hush_emulate_kernel_count() };
    let mut names = Vec::with_capacity(count);
    for at in 0..count {
        // SAFETY: there is a kernel `at`. Kernels are never removed, and their names are identifiers that end with a zero.
        let name = unsafe { CStr::from_ptr(hush_emulate_kernel_name(at)) };
        names.push(name.to_str().expect("an identifier"));
    }
    names
}

/// An emulated device.
pub(super) struct Emulator {
    info: DeviceInfo,
    emulation: Emulation,
    threads: u32,
    memory: EmulatedMemory,
    /// The threads of each kernel that was launched.
    launched: Mutex<BTreeMap<&'static str, usize>>,
    peer_bytes: AtomicUsize,
    waits: AtomicUsize,
    lost: AtomicBool,
}

impl Emulator {
    pub(super) fn new(emulation: Emulation, memory_bytes: usize) -> Self {
        let shared_per_block = match emulation.capability {
            (8, 0) => 163 << 10,
            (8 | 12, _) => LEAST_SHARED,
            _ => 227 << 10,
        };
        let info = DeviceInfo {
            name: "emulator".into(),
            capability: emulation.capability,
            multiprocessors: emulation.multiprocessors,
            memory_bytes,
            l2_bytes: 1 << 20,
            shared_per_block,
            shared_per_multiprocessor: shared_per_block + (1 << 10),
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        let (launched, peer_bytes, waits, lost) = Default::default();
        let memory = EmulatedMemory::new(memory_bytes);
        Self { info, emulation, threads, memory, launched, peer_bytes, waits, lost }
    }

    pub(super) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Returns the names of the kernels launched so far.
    pub(super) fn launched(&self) -> BTreeSet<&'static str> {
        self.threads().into_keys().collect()
    }

    /// Returns the threads of each kernel that was launched.
    pub(super) fn threads(&self) -> BTreeMap<&'static str, usize> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how many bytes were received from other devices.
    pub(super) fn peer_bytes(&self) -> usize {
        self.peer_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn is_linked(&self) -> bool {
        self.emulation.is_linked
    }

    /// Returns how often the host has waited for the device.
    pub(super) fn waits(&self) -> usize {
        self.waits.load(Ordering::Relaxed)
    }

    /// Returns the peak of memory since the last call minus the bytes allocated now.
    pub(super) fn take_peak(&self) -> usize {
        self.memory.take_peak()
    }

    pub(super) fn is_pooled(&self) -> bool {
        self.emulation.pooled
    }

    /// Makes all later calls fail, as on a GPU after a permanent error.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// Returns an error if the device is lost.
    fn check(&self) -> Result<(), CudaError> {
        if !self.lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        let reason = "it was told to fail from now on".into();
        Err(CudaError::Driver { call: "a call of the emulator".into(), reason })
    }

    pub(super) fn free_bytes(&self) -> Result<usize, CudaError> {
        self.check()?;
        Ok(self.memory.free_bytes())
    }

    /// Counts a wait. There is nothing to wait for, because kernels have ended when their launch returns.
    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.check()
    }

    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, CudaError> {
        self.check()?;
        self.memory.allocate(bytes)
    }

    pub(super) fn free(&self, address: u64) {
        self.memory.free(address);
    }

    pub(super) fn clear(&self, address: u64, bytes: usize) -> Result<(), CudaError> {
        self.check()?;
        self.memory.check("setting memory", address, bytes)?;
        // SAFETY: it is memory of this device.
        unsafe { (address as *mut u8).write_bytes(0, bytes) };
        Ok(())
    }

    pub(super) fn upload(&self, host: &[u8], address: u64) -> Result<(), CudaError> {
        self.check()?;
        self.memory.check("an upload", address, host.len())?;
        // SAFETY: it is memory of this device.
        unsafe { (address as *mut u8).copy_from_nonoverlapping(host.as_ptr(), host.len()) };
        Ok(())
    }

    pub(super) fn download(
        &self,
        address: u64,
        bytes: usize,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), CudaError> {
        self.check()?;
        self.memory.check("a download", address, bytes)?;
        self.waits.fetch_add(1, Ordering::Relaxed);
        if bytes > 0 {
            // SAFETY: it is memory of this device.
            take(unsafe { std::slice::from_raw_parts(address as *const u8, bytes) });
        }
        Ok(())
    }

    pub(super) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        self.copy_from(self, from, to, bytes)
    }

    /// Copies from the memory of another device, or of this one.
    pub(super) fn copy_from(&self, peer: &Self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        peer.check()?;
        self.check()?;
        peer.memory.check("a copy", from, bytes)?;
        self.memory.check("a copy", to, bytes)?;
        // SAFETY: it is memory of these devices.
        unsafe { (from as *const u8).copy_to(to as *mut u8, bytes) };
        if !std::ptr::eq(self, peer) {
            self.peer_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) fn launch(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.check()?;
        self.memory.check_launch(kernel, args)?;
        let mut params: Vec<*mut c_void> = args.iter().map(|arg| arg.as_ptr() as *mut c_void).collect();
        let options = HushEmulation {
            capability_major: self.emulation.capability.0,
            capability_minor: self.emulation.capability.1,
            seed: self.emulation.seed,
            threads: self.threads,
        };
        *self.launched.lock().unwrap_or_else(PoisonError::into_inner).entry(kernel).or_default() +=
            launch.grid.iter().map(|&blocks| blocks as usize).product::<usize>() * launch.block as usize;
        let name = CString::new(kernel).map_err(|_| CudaError::NoKernel(kernel))?;
        // SAFETY: the pointers are valid for the call; the step passes the arguments that the kernel takes.
        let code = unsafe {
            hush_emulate_launch(
                name.as_ptr(),
                launch.grid.as_ptr(),
                launch.block,
                launch.shared,
                params.as_mut_ptr(),
                &options,
            )
        };
        // The codes are those of `HushEmulateOutcome`.
        let reason = match code {
            0 => return Ok(()),
            1 => return Err(CudaError::NoKernel(kernel)),
            2 => "threads wait for each other for ever",
            3 => "it uses what the device has not",
            4 => "the launch or the kernel breaks a rule of CUDA, which is on standard error",
            _ => "the emulator has an outcome that is not known here",
        };
        Err(CudaError::Driver { call: format!("launch of {kernel} ({launch:?})"), reason: reason.into() })
    }
}
