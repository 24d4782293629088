//! The health of a device: whether it has failed permanently.

use std::sync::OnceLock;

use super::{CudaError, runtime::Runtime};

/// A record of the first failure after which a device no longer works.
///
/// Some errors of the driver are permanent: an invalid address, memory that cannot be corrected, a GPU that fell off its bus. Every
/// later call in the process fails too, until it ends. No list says which errors these are. So after a failure the device is
/// asked to finish the queued work; if that fails as well, the device is lost.
#[derive(Default)]
pub(super) struct Health {
    lost: OnceLock<String>,
}

impl Health {
    /// Returns why the device is lost, if it is.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Runs `work`, unless the device is lost. If `work` fails, checks whether the device is lost.
    pub(super) fn watch<T>(
        &self,
        runtime: &Runtime,
        work: impl FnOnce() -> Result<T, CudaError>,
    ) -> Result<T, CudaError> {
        let lost = |reason: &str| CudaError::Lost { reason: reason.to_owned() };
        if let Some(reason) = self.lost() {
            return Err(lost(reason));
        }
        work().map_err(|error| {
            let stays = matches!(error, CudaError::Driver { .. })
                && matches!(runtime.synchronize(), Err(CudaError::Driver { .. }));
            if stays { lost(self.lost.get_or_init(|| error.to_string())) } else { error }
        })
    }
}
