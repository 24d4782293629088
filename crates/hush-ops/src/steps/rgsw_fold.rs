//! The step `rgsw_fold` (7): the entries are folded to one.

use super::*;

/// The shape of `rgsw_fold` (7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RgswFold {
    /// The RLWE set.
    pub ring: RingParams,
    /// The number of entries.
    pub entries: usize,
    /// The planes of an entry.
    pub planes: usize,
    /// The parts of the entries, processed one after another.
    pub parts: usize,
}

impl StepKind for RgswFold {
    fn work(&self, batch: usize) -> Work {
        external_products(&self.ring, (batch * self.planes * self.entries.saturating_sub(1)) as f64)
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let Self { entries, planes, .. } = *self;
        let &Maker { backend, batch, .. } = make;
        let on = make.open(&self.ring)?;
        let bits = make.bits(&on, entries.next_power_of_two().ilog2() as usize)?;
        let ciphertexts = make.of_each(&on, entries * planes)?;
        Ok(Box::new(move || {
            let (entries, bits): (Vec<_>, _) = (ciphertexts.iter().collect(), vec![&bits[..]; batch]);
            backend.rgsw_fold(&on.ring, &entries, planes, EntryOrder::EntryMajor, &bits).map(drop)
        }))
    }
}

/// Checks that all queries have the same number of whole entries, and enough bits to select one. Without queries, there are 0
/// entries.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    batches: &[&RlweBatch<W>],
    planes: usize,
    bits: &[&[RlweBatch<W>]],
) -> Result<RgswFold, OpsError> {
    let step = "rgsw_fold";
    OpsError::check_shape(step, "planes", planes.max(1), planes)?;
    let (ciphertexts, folds) = check_bits(step, ring, batches, bits)?;
    let entries = ciphertexts / planes;
    let most = 1usize.checked_shl(folds as u32).unwrap_or(usize::MAX);
    if !batches.is_empty() {
        OpsError::check_shape(step, "ciphertexts of whole entries", entries * planes, ciphertexts)?;
        OpsError::check_shape(step, "entries", entries.clamp(1, most), entries)?;
    }
    Ok(RgswFold { ring: *ring.params(), entries, planes, parts: 1 })
}

/// Checks that all queries have the same number of whole ciphertexts, and the same number of RGSW ciphertexts of bits. Returns
/// both numbers, 0 without queries.
pub(super) fn check_bits<W: WordStore>(
    step: &'static str,
    ring: &RingContext,
    batches: &[&RlweBatch<W>],
    bits: &[&[RlweBatch<W>]],
) -> Result<(usize, usize), OpsError> {
    let words = ciphertext_words(ring);
    OpsError::check_shape(step, "queries with bits", batches.len(), bits.len())?;
    let count = batches.first().map_or(0, |batch| batch.words.len() / words);
    let folds = bits.first().map_or(0, |bits| bits.len());
    let rows = 2 * ring.params().fold_gadget().digits;
    for (batch, bits) in batches.iter().zip(bits) {
        OpsError::check_shape(step, "words of a ciphertext", words, batch.ciphertext_words)?;
        OpsError::check_shape(step, "words of all ciphertexts", count * words, batch.words.len())?;
        OpsError::check_shape(step, "bits of a query", folds, bits.len())?;
        bits.iter().try_for_each(|bit| {
            OpsError::check_shape(step, "words of an RGSW ciphertext", rows * words, bit.words.len())
        })?;
    }
    Ok((count, folds))
}

/// Folds the entries of one query; `index(entry, plane)` is the position of a ciphertext in `entries`.
pub(crate) fn reference(
    ring: &RingContext,
    entries: &RlweBatch,
    count: usize,
    planes: usize,
    index: impl Fn(usize, usize) -> usize,
    bits: &[RlweBatch],
) -> RlweBatch {
    batch(
        ring.kept(),
        (0..planes).map(|plane: usize| {
            let entry = |entry| ciphertext(ring.kept(), entries.ciphertext(index(entry, plane)));
            fold_plane(ring, (0..count).map(entry).collect(), bits)
        }),
    )
}

/// Folds all rounds for one plane.
fn fold_plane(ring: &RingContext, mut entries: Vec<RlweCiphertext>, bits: &[RlweBatch]) -> RlweCiphertext {
    let kept = ring.kept();
    let gadget = ring.params().fold_gadget();
    for bit in bits {
        let bit = rgsw(kept, bit);
        entries = entries
            .chunks(2)
            .map(|pair: &[RlweCiphertext]| {
                let mut difference = match pair {
                    [_, other] => other.clone(),
                    _ => RlweCiphertext { a: kept.zero(), b: kept.zero() },
                };
                sub(kept, &mut difference, &pair[0]);
                let mut sum = external_product(kept, &bit, &difference, gadget);
                add(kept, &mut sum, &pair[0]);
                sum
            })
            .collect();
    }
    entries.remove(0)
}

/// Returns the RGSW ciphertext whose rows are in `batch`.
fn rgsw(ring: &Ring, batch: &RlweBatch) -> RgswCiphertext {
    let rows: Vec<_> = (0..batch.count()).map(|row| ciphertext(ring, batch.ciphertext(row))).collect();
    let (bottom, top) = rows.split_at(rows.len() / 2);
    RgswCiphertext { bottom: bottom.to_vec(), top: top.to_vec() }
}
