//! The step `rgsw_fold` (7): the entries of each query are folded to one.

use hush_ops::{
    OpsError,
    contract::{EntryOrder, RlweBatch},
    steps::{RgswFold, poly_bytes},
};

use super::{
    CudaRing,
    external_product::{Ciphertexts, DIGIT_BYTES, ExternalProducts, external_products},
    tables::addresses::addresses,
};
use crate::{
    Cuda,
    device::{Buffer, Slice},
};

/// Runs [`hush_ops::contract::RingOps::rgsw_fold`]. A round folds all planes of all queries together.
///
/// # Errors
/// [`OpsError::Shape`] if there are more planes than a grid has rows, [`OpsError::Backend`] if the device fails.
pub(super) fn rgsw_fold(
    cuda: &Cuda,
    ring: &CudaRing,
    entries: &[&RlweBatch<Buffer<u32>>],
    mut count: usize,
    planes: usize,
    order: EntryOrder,
    bits: &[&[RlweBatch<Buffer<u32>>]],
) -> Result<Vec<RlweBatch<Buffer<u32>>>, OpsError> {
    let device = cuda.device();
    let queries = entries.len();
    let ciphertext_words = 2 * ring.kept().poly_words();
    let folds = bits.first().map_or(0, |bits| bits.len());
    let out = (0..queries).map(|_| device.alloc(planes * ciphertext_words)).collect::<Result<Vec<_>, _>>()?;
    if folds == 0 {
        entries
            .iter()
            .zip(&out)
            .try_for_each(|(from, to)| device.copy(&from.words.slice(..), &to.slice(..)))?;
    }
    let mut at = addresses(device, entries.iter().map(|entries| entries.words.slice(..)))?;
    // The results of rounds alternate between two buffers.
    let query_words = |items: usize| items * planes * ciphertext_words;
    let room = |round: u32| device.alloc::<u32>(queries * query_words(count.div_ceil(1 << round)));
    let rooms = [room(1)?, room(2)?];
    for round in 0..folds {
        let layout = |entries| Layout { order, entries, planes, ciphertext_words };
        let items = count.div_ceil(2);
        let to = if round + 1 == folds {
            addresses(device, out.iter().map(|words| words.slice(..)))?
        } else {
            let words = query_words(items);
            addresses(device, (0..queries).map(|query| rooms[round % 2].slice(query * words..)))?
        };
        let rgsw = addresses(device, bits.iter().map(|bits| bits[round].words.slice(..)))?;
        let even = layout(count).every_second(at.slice(..), 0);
        let products = ExternalProducts {
            round,
            queries,
            planes,
            items,
            out: layout(items).all(to.slice(..)),
            rgsw: rgsw.slice(..),
            y: layout(count).every_second(at.slice(..), 1),
            x: Some(even),
            z: even,
        };
        external_products(cuda, ring, &products)?;
        (at, count) = (to, items);
    }
    Ok(out.into_iter().map(|words| RlweBatch { ciphertext_words, words }).collect())
}

/// The order of the entries of a query in memory.
#[derive(Clone, Copy)]
struct Layout {
    order: EntryOrder,
    entries: usize,
    planes: usize,
    ciphertext_words: usize,
}

impl Layout {
    fn all(self, bases: Slice<'_, u64>) -> Ciphertexts<'_> {
        let index = |entry, plane| self.order.index(entry, plane, self.entries, self.planes);
        Ciphertexts {
            bases,
            first: 0,
            step: index(1, 0) * self.ciphertext_words,
            plane: index(0, 1) * self.ciphertext_words,
            count: self.entries,
        }
    }

    /// Returns the entries `first`, `first + 2`, and so on.
    fn every_second(self, bases: Slice<'_, u64>, first: usize) -> Ciphertexts<'_> {
        let all = self.all(bases);
        Ciphertexts {
            first: first * all.step,
            step: 2 * all.step,
            count: (self.entries - first).div_ceil(2),
            ..all
        }
    }
}

hush_ops::footprint!(Cuda: RgswFold, |step, batch| {
    let &RgswFold { ring, entries, planes, parts } = step;
    let entries = entries.div_ceil(parts);
    let ciphertext = 2 * poly_bytes(&ring);
    let items = |rounds: u32| batch * planes * entries.div_ceil(1 << rounds);
    let rooms = (items(1) + items(2) + items(0).min(batch * planes)) * ciphertext;
    // The digits of both halves of the ciphertexts of a round.
    let query = items(1) / batch * 2 * ring.fold_gadget().digits * size_of::<u32>() * ring.degree();
    let digits = (batch * query).min(DIGIT_BYTES.max(query));
    rooms + digits + batch * parts * planes * ciphertext
});
