//! Copies from the memory of one GPU to that of another.

use std::collections::HashSet;

use cudarc::driver::{result, sys};

use crate::device::{
    CudaError,
    driver::{Gpu, failed, lock},
    stream::Event,
};

/// The GPUs whose memory one of them was asked to read by itself.
#[derive(Default)]
pub(in crate::device) struct Peers(HashSet<sys::CUdevice>);

impl Gpu {
    /// Has all later work wait for that of `peer` until now.
    pub(in crate::device) fn wait_for(&self, peer: &Self) -> Result<(), CudaError> {
        peer.enter()?;
        let done = Event::after(&peer.main)?;
        self.enter()?;
        self.main.wait_event(&done)
    }

    /// Copies from the memory of `peer`, in the order of work here.
    pub(in crate::device) fn copy_from(
        &self,
        peer: &Self,
        from: u64,
        to: u64,
        bytes: usize,
    ) -> Result<(), CudaError> {
        self.reach(peer)?;
        // SAFETY: slices lie within what was allocated in these contexts, and the stream is one of the current context.
        unsafe {
            result::memcpy_peer_async(
                self.context.handle,
                to,
                peer.context.handle,
                from,
                bytes,
                self.main.handle(),
            )
        }
        .map_err(failed("cuMemcpyPeerAsync"))
    }

    /// Has this GPU read the memory of `peer` by itself, if it can. If it cannot, the driver copies by way of the host.
    fn reach(&self, peer: &Self) -> Result<(), CudaError> {
        self.enter()?;
        let (own, other) = (self.context.device, peer.context.device);
        if own == other || !lock(&self.peers).0.insert(other) {
            return Ok(());
        }
        let mut reaches = 0;
        // SAFETY: the handles are the driver's, which writes one number.
        unsafe { sys::cuDeviceCanAccessPeer(&mut reaches, own, other) }
            .result()
            .map_err(failed("cuDeviceCanAccessPeer"))?;
        if reaches != 0 {
            // Refused if there are too many, or if someone else in this process has asked for it: copies are right either way.
            // SAFETY: both contexts are retained until drop.
            let _ = unsafe { sys::cuCtxEnablePeerAccess(peer.context.handle, 0) };
        }
        Ok(())
    }
}
