//! Calls of the driver: the conversion of their errors, and the calls that several modules share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::{
    result::{self, DriverError},
    sys,
};

use super::CudaError;

/// Returns the bytes of device memory that are free. The context must be current.
pub(super) fn free_bytes() -> Result<usize, CudaError> {
    Ok(result::mem_get_info().map_err(failed("cuMemGetInfo"))?.0)
}

/// Allocates `bytes` bytes of device memory, with arbitrary contents. The context must be current.
pub(super) fn allocate(bytes: usize) -> Result<u64, CudaError> {
    // SAFETY: the context is current.
    match unsafe { result::malloc_sync(bytes) } {
        Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
            Err(CudaError::OutOfMemory { wanted: bytes, free: free_bytes()? })
        }
        address => address.map_err(failed(format!("cuMemAlloc of {bytes} bytes"))),
    }
}

/// Locks a mutex, also after a panic: the data that it guards stays valid.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a function that turns a driver's error into the error of the call `call`.
pub(super) fn failed(call: impl Into<String>) -> impl FnOnce(DriverError) -> CudaError {
    move |error| {
        if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return CudaError::NoMemoryFor { call: call.into() };
        }
        let text = |text: Result<&std::ffi::CStr, DriverError>| {
            text.map_or_else(|_| "?".to_string(), |text| text.to_string_lossy().into_owned())
        };
        let reason = format!("{}: {}", text(error.error_name()), text(error.error_string()));
        CudaError::Driver { call: call.into(), reason }
    }
}
