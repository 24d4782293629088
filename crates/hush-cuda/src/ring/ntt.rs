//! Transforms of batches of polynomials on the device.

use super::RingTables;
use crate::device::{CudaError, Device, Slice};

/// Transforms coefficients to slots: whole polynomials `[poly][limb][N]`, canonical. `from` and `to` may be the same memory. Fails
/// with [`CudaError::OtherDevice`] if the ring or a slice is on another device, and with another [`CudaError`] if the device fails.
///
/// # Panics
/// If the slices differ in length, or are not whole polynomials.
pub fn forward(
    device: &Device,
    ring: &RingTables,
    from: &Slice<'_, u32>,
    to: &Slice<'_, u32>,
) -> Result<(), CudaError> {
    let kernels = ["ntt_forward_6", "ntt_forward_8", "ntt_forward_11", "ntt_forward_12"];
    transform(device, ring, ring.pick(kernels, "ntt_forward_11_wide"), from, to)
}

/// Transforms slots to coefficients: the inverse of [`forward`], with its errors.
///
/// # Panics
/// If the slices differ in length, or are not whole polynomials.
pub fn inverse(
    device: &Device,
    ring: &RingTables,
    from: &Slice<'_, u32>,
    to: &Slice<'_, u32>,
) -> Result<(), CudaError> {
    let kernels = ["ntt_inverse_6", "ntt_inverse_8", "ntt_inverse_11", "ntt_inverse_12"];
    transform(device, ring, ring.pick(kernels, "ntt_inverse_11_wide"), from, to)
}

fn transform(
    device: &Device,
    ring: &RingTables,
    kernel: &'static str,
    from: &Slice<'_, u32>,
    to: &Slice<'_, u32>,
) -> Result<(), CudaError> {
    assert!(from.len() == to.len() && from.len().is_multiple_of(ring.poly_words()));
    let polys = from.len() / ring.poly_words();
    let launch = ring.degree().launch([polys as u32, ring.limbs() as u32, 1], 1);
    device.launch(kernel, launch, &[to.into(), from.into(), ring.view()])
}
