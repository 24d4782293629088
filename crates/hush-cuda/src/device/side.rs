//! Work of a device beside its main order.

use super::{Arg, CudaError, Device, Launch, runtime::Runtime};

/// A branch of a device's work: kernels that are done in order among themselves, and beside those of the device where it has room
/// for both. It begins after all work of the device until [`Device::fork`], and ends with [`Side::join`].
///
/// Memory comes from a pool whose blocks have the next owner while work on them is queued, in the device's order. So what kernels
/// here read or write is allocated before a fork, at the latest the last one, and dropped after a join. Dropping the branch joins
/// it, also where an error ends a step: it is made after the buffers that it uses, and goes before them. Between a fork and a
/// join, neither order may write what the other one reads or writes.
///
/// Branches of several threads share one stream, and may wait for each other's work as well as for their own.
pub(crate) struct Side<'a> {
    device: &'a Device,
    is_joined: bool,
}

impl Device {
    /// Returns a branch after all work until now.
    pub(crate) fn fork(&self) -> Result<Side<'_>, CudaError> {
        let mut side = Side { device: self, is_joined: true };
        side.fork()?;
        Ok(side)
    }
}

impl Side<'_> {
    /// Has all later work here wait for that of the device until now.
    pub(crate) fn fork(&mut self) -> Result<(), CudaError> {
        self.device.ask(Runtime::fork)
    }

    /// Queues a kernel here, as [`Device::launch`] does in the device's order.
    pub(crate) fn launch(
        &mut self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.is_joined = false;
        self.device.launch_by(Runtime::launch_beside, kernel, launch, args)
    }

    /// Has all later work of the device wait for that here until now.
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
            // A device that fails has nothing queued any more, and whoever uses it next is told.
            let _ = self.device.runtime.finish_side();
        }
    }
}
