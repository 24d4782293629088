//! Branches: work of a device beside its main order.

use super::{Arg, CudaError, Device, Launch, runtime::Runtime};

/// A branch of a device's work: its kernels run in order among themselves, and beside those of the device if there are free
/// multiprocessors. It begins after all work of the device until [`Device::fork`], and ends with [`Side::join`].
///
/// The pool gives a freed block to the next owner while work on it is queued, in the device's order. So buffers that the branch
/// uses must be allocated before its last fork and dropped after a join. Dropping the branch joins it, also if an error ends a
/// step: create it after the buffers that it uses, so that it is dropped before them. Between a fork and a join, neither order
/// may write memory that the other one reads or writes.
///
/// Branches of several threads share one stream, so a branch may also wait for the work of another.
pub(crate) struct Side<'a> {
    device: &'a Device,
    is_joined: bool,
}

impl Device {
    /// Creates a branch that begins after all work queued so far.
    pub(crate) fn fork(&self) -> Result<Side<'_>, CudaError> {
        let mut side = Side { device: self, is_joined: true };
        side.fork()?;
        Ok(side)
    }
}

impl Side<'_> {
    /// Makes all later work of the branch wait for the work of the device queued so far.
    pub(crate) fn fork(&mut self) -> Result<(), CudaError> {
        self.device.ask(Runtime::fork)
    }

    /// Queues a kernel in the branch, like [`Device::launch`] in the device's order.
    pub(crate) fn launch(
        &mut self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.is_joined = false;
        self.device.launch_by(Runtime::launch_beside, kernel, launch, args)
    }

    /// Makes all later work of the device wait for the work of the branch queued so far.
    pub(crate) fn join(&mut self) -> Result<(), CudaError> {
        if !self.is_joined {
            self.device.ask(Runtime::join)?;
            self.is_joined = true;
        }
        Ok(())
    }
}

impl Drop for Side<'_> {
    fn drop(&mut self) {
        if self.join().is_err() {
            // A device that fails has no queued work left, and the next call on it returns an error.
            let _ = self.device.runtime.finish_side();
        }
    }
}
