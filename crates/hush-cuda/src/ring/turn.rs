//! Products of ciphertexts and powers of X, for rotations.

use hush_ops::{
    OpsError,
    contract::RlweBatch,
    steps::{RgswFold, Rotate, poly_bytes},
};

use super::{CudaRing, tables::montgomery_form};
use crate::{
    Cuda,
    device::{Buffer, Device, Launch},
};

/// The threads of a block.
const THREADS: usize = 256;
/// The slots that a thread processes.
const VECTOR: usize = 4;

/// Runs [`hush_ops::contract::TfheOps::run_turn`].
pub(super) fn turn(
    device: &Device,
    ring: &CudaRing,
    batches: &[RlweBatch<Buffer<u32>>],
    power: usize,
) -> Result<Vec<RlweBatch<Buffer<u32>>>, OpsError> {
    ring.kept().check_narrow()?;
    let context = ring.context().kept();
    let mut factors = context.inverse_monomial(power);
    for (limb, &modulus) in context.moduli().iter().enumerate() {
        factors.limb_mut(limb).iter_mut().for_each(|word| *word = montgomery_form(modulus, *word));
    }
    let factors = device.upload(factors.words())?;
    batches
        .iter()
        .map(|batch: &RlweBatch<Buffer<u32>>| {
            let words = device.alloc(2 * batch.words.len())?;
            let vectors = batch.words.len() / VECTOR;
            let launch = Launch::new(vectors.div_ceil(THREADS) as u32, THREADS as u32);
            let args = [(&words).into(), (&batch.words).into(), (&factors).into(), (vectors as u64).into()];
            let args = args.into_iter().chain([ring.kept().view()]).collect::<Vec<_>>();
            device.launch("turn", launch, &args)?;
            Ok(RlweBatch { ciphertext_words: batch.ciphertext_words, words })
        })
        .collect()
}

hush_ops::footprint!(Cuda: Rotate, |step, batch| {
    let &Rotate { ring, count, .. } = step;
    let fold = RgswFold { ring, entries: 2, planes: count, parts: 1 };
    // The ciphertexts before, turned and joined, and a fold of two entries.
    6 * batch * count * poly_bytes(&ring) + Self::footprint(&fold, batch)
});
