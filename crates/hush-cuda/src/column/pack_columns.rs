//! (3c) Pack: the digits of the chain meet the conjugation keys.

use hush_math::poly::{Eval, Poly};
use hush_ops::OpsError;

use super::{CudaChain, pair_kernel::PairKernel};
use crate::{
    device::{Buffer, Device},
    ring::CudaRing,
};

/// Two transforms and an exchange in shared memory.
const PRODUCT: PairKernel =
    PairKernel { names: ["column_product_6", "column_product_8", "column_product_11"], polys: 1, shared: 4 };

/// `words[q] += round(digit z[q] 2^32 / Q)` for the rows of every plaintext: one launch.
///
/// # Errors
/// [`OpsError::Backend`] if the device fails.
pub(super) fn add_products(
    device: &Device,
    ring: &CudaRing,
    chain: &CudaChain,
    words: &Buffer<u32>,
    conjugations: &[&Poly<Eval>],
) -> Result<(), OpsError> {
    let keys: Vec<u32> = conjugations.iter().flat_map(|z| z.words()).copied().collect();
    let keys = device.upload(&keys)?;
    let grid = [chain.shape().plaintexts() as u32, conjugations.len() as u32, 1];
    let args = [
        words.into(),
        (&chain.digits).into(),
        (&keys).into(),
        chain.rows().arg(),
        ring.kept().view(),
        ring.kept().radix(),
    ];
    PRODUCT.launch(device, ring.kept(), grid, &args)
}
