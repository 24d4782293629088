//! The step `pack_columns` (3c): the digits of the chain are multiplied by the conjugation keys.

use hush_math::poly::{Coeff, Poly};
use hush_ops::{OpsError, steps::poly_bytes};

use super::{CudaChain, pair_kernel::PairKernel};
use crate::{
    Cuda,
    device::{Arg, Buffer, Device},
    lwe::query_bytes,
    ring::{self, CudaRing},
};

/// The kernels: two transforms and an exchange in shared memory.
const PRODUCT: PairKernel =
    PairKernel::of_blocks(["column_product_6", "column_product_8", "column_product_11"], 1, 4);

/// Adds `round(digit z[q] 2^32 / Q)` to `words[q]` for the rows of every plaintext, in two launches.
pub(super) fn add_products(
    device: &Device,
    ring: &CudaRing,
    chain: &CudaChain,
    words: &Buffer<u32>,
    conjugations: &[&Poly<Coeff>],
) -> Result<(), OpsError> {
    let keys = transformed(device, ring, conjugations)?;
    let grid = [chain.shape().plaintexts() as u32, conjugations.len() as u32, 1];
    let args = [
        words.into(),
        (&chain.digits).into(),
        (&keys).into(),
        Arg::of(chain.rows()),
        ring.kept().view(),
        ring.kept().radix(),
    ];
    PRODUCT.launch(device, ring.kept(), grid, &args)
}

/// Uploads polynomials, one after another, and transforms them to evaluation form.
pub(super) fn transformed(
    device: &Device,
    ring: &CudaRing,
    polys: &[&Poly<Coeff>],
) -> Result<Buffer<u32>, OpsError> {
    let words: Vec<&[u32]> = polys.iter().map(|poly| poly.words()).collect();
    let words = device.upload(&words.concat())?;
    ring::forward(device, ring.kept(), &words.slice(..), &words.slice(..))?;
    Ok(words)
}

hush_ops::footprint!(Cuda: PackColumns, |step, batch| {
    query_bytes(batch, step.columns.cols()) + batch * poly_bytes(&step.ring)
});
