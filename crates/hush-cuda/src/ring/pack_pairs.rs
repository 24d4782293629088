//! The step `pack_pairs`: two ciphertexts become one mask and two bodies.

use hush_ops::{
    OpsError,
    contract::{RlweBatch, SentPoly},
    steps::poly_bytes,
};

use super::{
    CudaRing,
    keys::{CudaKeys, key_at},
    tables::addresses::addresses,
};
use crate::{
    Cuda,
    device::{Buffer, MAX_GRID},
};

/// Runs [`hush_ops::contract::RingOps::pack_pairs`] for all pairs of all queries together.
///
/// # Errors
/// [`OpsError::Shape`] if there are more pairs or queries than a grid has rows; [`OpsError::Backend`] if the device fails.
pub(super) fn pack_pairs(
    cuda: &Cuda,
    ring: &CudaRing,
    keys: &[&CudaKeys],
    batches: &[&RlweBatch<Buffer<u32>>],
    pairs: usize,
) -> Result<Vec<Buffer<u32>>, OpsError> {
    for (what, count) in [("pairs", pairs), ("queries", batches.len())] {
        OpsError::check_shape("pack_pairs", what, count.min(MAX_GRID[1]), count)?;
    }
    let device = cuda.device();
    let kept = ring.kept();
    let expansion = ring.expansion();
    let packed = batches.iter().map(|_| device.alloc(pairs * 3 * kept.poly_words()));
    let packed = packed.collect::<Result<Vec<_>, _>>()?;
    let Some(gadget) = &expansion.pack else {
        return Ok(packed);
    };
    let queries = batches.len();
    let digits = device.alloc::<u32>(queries * pairs * 2 * gadget.digits() * kept.degree().words())?;
    let from = addresses(device, batches.iter().map(|batch| batch.words.slice(..)))?;
    let launch = kept.degree().launch([2 * pairs as u32, queries as u32, 1], kept.limbs());
    let args = [(&digits).into(), (&from).into(), kept.view(), gadget.view()];
    device.launch(kept.pick(["pack_pairs_decompose"; 4], "pack_pairs_decompose_wide"), launch, &args)?;

    let to = addresses(device, packed.iter().map(|words| words.slice(..)))?;
    let keys_at = addresses(device, keys.iter().map(|keys| keys.words()))?;
    let key_at = key_at(ring, expansion.levels.len() + 1);
    let launch = kept.degree().launch([kept.limbs() as u32, pairs as u32, queries as u32], 1);
    let args = [
        (&to).into(),
        (&from).into(),
        (&digits).into(),
        (&keys_at).into(),
        key_at.into(),
        kept.view(),
        gadget.view(),
    ];
    device.launch(kept.pick(["pack_pairs_product"; 4], "pack_pairs_product_wide"), launch, &args)?;
    Ok(packed)
}

hush_ops::footprint!(Cuda: Respond, |step, batch| {
    // The packed pairs with their digits, and the bytes that are sent.
    let ring = &step.ring;
    let pack = 3 * poly_bytes(ring) + 2 * ring.pack_gadget().digits * size_of::<u32>() * ring.degree();
    batch * step.plaintexts * (pack + SentPoly::answer_bytes(ring))
});
