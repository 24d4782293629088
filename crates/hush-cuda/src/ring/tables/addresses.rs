//! Tables of addresses on the device, for kernels whose queries have their operands in separate buffers.

use crate::device::{Buffer, CudaError, Device, Slice};

/// Uploads the addresses of `slices`. The caller keeps the slices until the kernels that read them are queued.
///
/// # Errors
/// [`CudaError::OtherDevice`] if a slice is not on `device`; [`CudaError`] of the upload.
pub fn addresses<'a>(
    device: &Device,
    slices: impl Iterator<Item = Slice<'a, u32>>,
) -> Result<Buffer<u64>, CudaError> {
    let addresses = slices.map(|slice| device.address(&slice)).collect::<Result<Vec<_>, _>>()?;
    device.upload(&addresses)
}
