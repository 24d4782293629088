//! Copies from the memory of one GPU to that of another.

use std::collections::HashSet;

use cudarc::driver::{
    result::{self, event, stream},
    sys,
};

use super::{
    CudaError,
    driver::{Gpu, failed, lock},
};

/// The GPUs whose memory one of them was asked to read by itself.
#[derive(Default)]
pub(super) struct Peers(HashSet<sys::CUdevice>);

/// When work that is queued on a stream until now is done.
struct Mark(sys::CUevent);

impl Mark {
    /// After all work of `gpu` until now.
    fn after(gpu: &Gpu) -> Result<Self, CudaError> {
        gpu.enter()?;
        let created = event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
        let mark = Self(created.map_err(failed("cuEventCreate"))?);
        // SAFETY: the context of both is current.
        unsafe { event::record(mark.0, gpu.stream) }.map_err(failed("cuEventRecord"))?;
        Ok(mark)
    }

    /// Has all later work of `gpu` wait for it, on the device.
    fn hold_back(&self, gpu: &Gpu) -> Result<(), CudaError> {
        gpu.enter()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the event was recorded, and the context of the stream is current.
        unsafe { stream::wait_event(gpu.stream, self.0, flags) }.map_err(failed("cuStreamWaitEvent"))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: it was created here; streams that wait for it go on doing so. A failure is of no consequence.
        let _ = unsafe { event::destroy(self.0) };
    }
}

impl Gpu {
    /// Has all later work wait for that of `peer` until now.
    pub(super) fn wait_for(&self, peer: &Self) -> Result<(), CudaError> {
        Mark::after(peer)?.hold_back(self)
    }

    /// Copies from the memory of `peer`, in the order of work here.
    pub(super) fn copy_from(&self, peer: &Self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        self.reach(peer)?;
        // SAFETY: slices lie within what was allocated in these contexts, and the stream is one of the current context.
        unsafe { result::memcpy_peer_async(self.context, to, peer.context, from, bytes, self.stream) }
            .map_err(failed("cuMemcpyPeerAsync"))
    }

    /// Has this GPU read the memory of `peer` by itself, if it can. If it cannot, the driver copies by way of the host.
    fn reach(&self, peer: &Self) -> Result<(), CudaError> {
        self.enter()?;
        if self.device == peer.device || !lock(&self.peers).0.insert(peer.device) {
            return Ok(());
        }
        let mut reaches = 0;
        // SAFETY: the handles are the driver's, which writes one number.
        unsafe { sys::cuDeviceCanAccessPeer(&mut reaches, self.device, peer.device) }
            .result()
            .map_err(failed("cuDeviceCanAccessPeer"))?;
        if reaches != 0 {
            // Refused if there are too many, or if someone else in this process has asked for it: copies are right either way.
            // SAFETY: both contexts are retained until drop.
            let _ = unsafe { sys::cuCtxEnablePeerAccess(peer.context, 0) };
        }
        Ok(())
    }
}
