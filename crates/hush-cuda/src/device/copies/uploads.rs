//! Copies from the host to the device, over the link while the device does other work.

use cudarc::driver::result;

use crate::device::{
    CudaError, UPLOAD_BYTES,
    calls::{allocate, failed},
    copies,
    memory::pinned::PinnedBuffer,
    stream::{Event, Stream},
};

/// The number of parts of uploads that may wait on the device for their turn: 16 MiB, the queries of a batch. As many parts again
/// are in pinned memory. So a batch is uploaded while the batch before it is computed, and the caller may free its host memory.
const SLOTS: usize = 8;

/// A stream for the link, and slots with memory on both sides of it, used in turn. A part is copied into a slot as soon as the
/// slot is free, whatever the device computes. From there it is copied to its target when its turn comes in the main stream. So
/// only the main stream touches a target, which may be memory of the pool that earlier queued work still uses.
///
/// The context must be current in all calls, and when it is dropped; at that time the main stream must have no work.
pub(in crate::device) struct Uploads {
    /// The stream. It is dropped first, which waits for the copies.
    stream: Stream,
    slots: Vec<Slot>,
    next: usize,
    _staging: Staging,
}

/// A slot for a part of an upload.
struct Slot {
    pinned: PinnedBuffer,
    /// The slot's part of device memory.
    address: u64,
    /// The event after which the part is on the device: the host may fill the pinned buffer again, and the main stream may read the
    /// slot.
    arrived: Event,
    /// The event after which the part is at its target: the link may fill the slot again.
    drained: Event,
}

/// The device memory of the slots.
struct Staging(u64);

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: it was allocated in `Uploads::new`, and no work is queued. A failure has no effect.
        let _ = unsafe { result::free_sync(self.0) };
    }
}

impl Uploads {
    pub(in crate::device) fn new() -> Result<Self, CudaError> {
        let stream = Stream::beside()?;
        let staging = Staging(allocate(SLOTS * UPLOAD_BYTES)?);
        let slots = (0..SLOTS)
            .map(|index: usize| {
                let pinned = PinnedBuffer::new()?;
                let arrived = Event::new()?;
                let drained = Event::new()?;
                Ok(Slot { pinned, address: staging.0 + (index * UPLOAD_BYTES) as u64, arrived, drained })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { stream, slots, next: 0, _staging: staging })
    }

    /// Copies at most [`UPLOAD_BYTES`] bytes to `address`, in the order of `main`. The caller may change `host` afterwards.
    pub(in crate::device) fn upload(
        &mut self,
        host: &[u8],
        address: u64,
        main: &Stream,
    ) -> Result<(), CudaError> {
        let slot = &self.slots[self.next];
        self.next = (self.next + 1) % self.slots.len();
        slot.arrived.synchronize()?;
        // SAFETY: the device has read the buffer, and reads it again only from here on.
        let pinned = unsafe { slot.pinned.bytes(host.len()) };
        copies::copy(pinned, host);
        self.stream.wait_event(&slot.drained)?;
        // SAFETY: the slot is at least as long as a part; the pinned buffer is not written before the event.
        unsafe { result::memcpy_htod_async(slot.address, pinned, self.stream.handle()) }
            .map_err(failed("cuMemcpyHtoDAsync"))?;
        slot.arrived.record(&self.stream)?;
        main.wait_event(&slot.arrived)?;
        // SAFETY: the target lies within an allocation; the slot is not written before the event.
        unsafe { result::memcpy_dtod_async(address, slot.address, host.len(), main.handle()) }
            .map_err(failed("cuMemcpyDtoDAsync"))?;
        slot.drained.record(main)
    }
}
