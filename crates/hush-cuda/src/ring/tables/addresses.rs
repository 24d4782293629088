//! Tables of addresses on the device, for kernels whose queries have their operands in different places.

use crate::device::{Buffer, CudaError, Device, Slice};

/// Returns the addresses of `slices`, which are to be kept until the kernels that read them are queued.
///
/// # Errors
/// [`CudaError::OtherDevice`] if one is not of `device`; [`CudaError`] of the upload.
pub fn addresses<'a>(
    device: &Device,
    slices: impl Iterator<Item = Slice<'a, u32>>,
) -> Result<Buffer<u64>, CudaError> {
    let addresses = slices.map(|slice| device.address(&slice)).collect::<Result<Vec<_>, _>>()?;
    device.upload(&addresses)
}
