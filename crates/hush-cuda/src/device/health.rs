//! Whether a device still does what it is asked for.

use std::sync::OnceLock;

use super::{CudaError, runtime::Runtime};

/// Remembers the first failure after which a device does nothing any more.
///
/// The driver has errors that stay: an address that is nobody's, memory that cannot be corrected, a GPU that fell off its bus.
/// From then on every call in the process fails, until it ends. Which errors these are is not for a list to say: after a failure
/// the device is asked to finish what is queued, and if that fails as well, it is lost.
#[derive(Default)]
pub(super) struct Health {
    lost: OnceLock<String>,
}

impl Health {
    /// Why the device is lost, if it is.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Does `work`, unless the device is lost, and looks at the device if that fails.
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
            let fails = |outcome: Result<(), CudaError>| matches!(outcome, Err(CudaError::Driver { .. }));
            let stays = matches!(error, CudaError::Driver { .. }) && fails(runtime.synchronize());
            if stays { lost(self.lost.get_or_init(|| error.to_string())) } else { error }
        })
    }
}
