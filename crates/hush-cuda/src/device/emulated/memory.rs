//! Memory of emulated devices: memory of the host, of which each block belongs to one device.

use std::{
    alloc::{Layout, alloc, dealloc},
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use super::super::{Arg, CudaError};

/// The alignment of allocated memory, as on a GPU.
const ALIGNMENT: usize = 256;
/// The byte that fills memory before its first use.
const POISON: u8 = 0xcd;
const ADDRESS: usize = size_of::<u64>();

/// The blocks of all devices, by address.
static BLOCKS: Mutex<BTreeMap<u64, Block>> = Mutex::new(BTreeMap::new());

struct Block {
    bytes: usize,
    device: u64,
}

/// The memory of a device. An access to memory of another device, or beyond a block, is an error. A GPU may be able to read the
/// memory of another one, but not in the order of its own work.
pub(super) struct EmulatedMemory {
    device: u64,
    capacity: usize,
    taken: AtomicUsize,
    /// The most bytes allocated at once since [`EmulatedMemory::take_peak`].
    peak: AtomicUsize,
}

impl EmulatedMemory {
    pub(super) fn new(capacity: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (taken, peak) = Default::default();
        Self { device: NEXT.fetch_add(1, Ordering::Relaxed), capacity, taken, peak }
    }

    pub(super) fn free_bytes(&self) -> usize {
        self.capacity.saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// Returns the peak since the last call minus the bytes allocated now.
    pub(super) fn take_peak(&self) -> usize {
        let taken = self.taken.load(Ordering::Relaxed);
        self.peak.swap(taken, Ordering::Relaxed).saturating_sub(taken)
    }

    /// Allocates `bytes` bytes, filled with [`POISON`].
    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, CudaError> {
        let mut blocks = blocks();
        let free = self.free_bytes();
        if bytes > free {
            return Err(CudaError::OutOfMemory { wanted: bytes, free });
        }
        // SAFETY: the layout has a size.
        let address = unsafe { alloc(layout(bytes)) };
        if address.is_null() {
            return Err(CudaError::OutOfMemory { wanted: bytes, free });
        }
        blocks.insert(address as u64, Block { bytes, device: self.device });
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        self.peak.fetch_max(before + bytes, Ordering::Relaxed);
        drop(blocks);
        // SAFETY: `bytes` bytes were allocated.
        unsafe { address.write_bytes(POISON, bytes) };
        Ok(address as u64)
    }

    pub(super) fn free(&self, address: u64) {
        let mut blocks = blocks();
        if blocks.get(&address).is_none_or(|block| block.device != self.device) {
            return;
        }
        if let Some(block) = blocks.remove(&address) {
            self.taken.fetch_sub(block.bytes, Ordering::Relaxed);
            // SAFETY: it was allocated with this layout, and nothing refers to it.
            unsafe { dealloc(address as *mut u8, layout(block.bytes)) };
        }
    }

    /// Returns an error unless all these bytes are in one block of this device.
    pub(super) fn check(&self, call: &str, address: u64, bytes: usize) -> Result<(), CudaError> {
        if holder(&blocks(), address).is_some_and(|(device, left)| device == self.device && bytes <= left) {
            Ok(())
        } else {
            Err(not_its_own(call))
        }
    }

    /// Returns an error if a pointer does not point into this device's memory, or a structure has an address in another device's
    /// memory.
    pub(super) fn check_launch(&self, kernel: &str, args: &[Arg<'_>]) -> Result<(), CudaError> {
        let blocks = blocks();
        let is_others = |word: &[u8; ADDRESS]| {
            let held = holder(&blocks, u64::from_ne_bytes(*word));
            held.is_some_and(|(device, _)| device != self.device)
        };
        if args.iter().any(|arg: &Arg<'_>| match *arg {
            Arg::Pointer(address, _) => {
                holder(&blocks, address).is_none_or(|(device, _)| device != self.device)
            }
            Arg::Bytes(bytes) | Arg::View(bytes, _) => bytes.as_chunks().0.iter().any(is_others),
            Arg::Word(_) | Arg::Long(_) => false,
        }) {
            Err(not_its_own(&format!("launch of {kernel}")))
        } else {
            Ok(())
        }
    }
}

/// Returns the device whose memory is at `address`, and the number of bytes from there to the end of the block.
fn holder(blocks: &BTreeMap<u64, Block>, address: u64) -> Option<(u64, usize)> {
    let (start, block) = blocks.range(..=address).next_back()?;
    let left = block.bytes.checked_sub((address - start) as usize)?;
    Some((block.device, left))
}

fn not_its_own(call: &str) -> CudaError {
    let reason = "it was given an address that is none of the device's memory".into();
    CudaError::Driver { call: call.to_owned(), reason }
}

fn blocks() -> MutexGuard<'static, BTreeMap<u64, Block>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).expect("far below the largest size")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, Emulation, Launch, emulated::Emulator};

    #[test]
    fn memory_is_that_of_one_device() {
        let [one, other] = [(); 2].map(|()| Emulator::new(Emulation::default(), 1 << 20));
        let [here, there] = [&one, &other].map(|device| device.allocate(1000).unwrap());
        let host = [0; 8];
        let wrong = |outcome: Result<(), CudaError>| {
            let Err(CudaError::Driver { reason, .. }) = outcome else { panic!("{outcome:?}") };
            assert!(reason.contains("none of the device's memory"), "{reason}");
        };
        for address in [there, here + 1001, 0] {
            wrong(one.clear(address, 8));
            wrong(one.upload(&host, address));
            wrong(one.download(address, 8, &mut |_| panic!("it is not there")));
            wrong(one.copy(here, address, 8));
            wrong(one.copy(address, here, 8));
            wrong(one.copy_from(&other, here, here, 8));
            wrong(one.copy_from(&other, there, address, 8));
        }
        wrong(one.clear(here + 993, 8));
        one.clear(here + 992, 8).unwrap();
        other.upload(&[7; 8], there).unwrap();
        one.copy_from(&other, there, here, 8).unwrap();
        let mut host = Vec::new();
        one.download(here, 8, &mut |part| host.extend_from_slice(part)).unwrap();
        assert_eq!(host, [7; 8]);
        // A device can free only its own memory.
        one.free(there);
        assert_eq!([&one, &other].map(|device| device.free_bytes().unwrap()), [(1 << 20) - 1000; 2]);
        one.free(here);
        other.free(there);
    }

    #[test]
    fn kernels_reach_the_memory_of_one_device() {
        let [one, other] = [(); 2].map(|()| Emulator::new(Emulation::default(), 1 << 20));
        let device = Device::emulated(Emulation::default());
        let buffer = device.alloc::<u32>(4).unwrap();
        let Arg::Pointer(_, memory) = Arg::from(&buffer) else { panic!("a pointer") };
        let [here, there] = [&one, &other].map(|device| device.allocate(1000).unwrap());
        let view =
            [[1, here].map(u64::to_ne_bytes), [2, there].map(u64::to_ne_bytes)].map(|view| view.concat());
        let launch = |arg| one.launch("fill_random", Launch::new(1, 32), &[arg]);
        for wrong in [Arg::Pointer(there, memory), Arg::Pointer(8, memory), Arg::Bytes(&view[1])] {
            let Err(CudaError::Driver { call, reason }) = launch(wrong) else { panic!("{wrong:?}") };
            assert!(call == "launch of fill_random" && reason.contains("none of the device's"), "{reason}");
        }
        one.memory.check_launch("fill_random", &[Arg::Pointer(here, memory), Arg::Bytes(&view[0])]).unwrap();
        one.free(here);
        other.free(there);
    }
}
