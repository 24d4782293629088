//! The step `reinterpret_rlwe` (4): RLWE words become a new byte database.

use super::*;

/// The shape of `reinterpret_rlwe` (4): ciphertexts become a database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReinterpretRlwe {
    /// The RLWE set.
    pub ring: RingParams,
    /// The number of ciphertexts.
    pub count: usize,
    /// The shape of the database that they become.
    pub db: Tiling,
}

impl StepKind for ReinterpretRlwe {
    fn work(&self, batch: usize) -> Work {
        let switched = switches(&self.ring, (2 * batch * self.count) as f64);
        switched + Work { bytes: (batch * self.db.bytes()) as f64, ..Work::default() }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let backend = make.backend;
        let on = make.open(&self.ring)?;
        let planes = self.count / self.db.cols();
        let packed = make.ciphertexts(&on, self.count)?;
        Ok(make.one_by_one(move || backend.reinterpret_rlwe(&on.ring, &packed, planes).map(drop)))
    }
}

/// Checks that `packed` is whole entries, and that the switched halves of a coefficient fill whole words.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    packed: &RlweBatch<W>,
    planes: usize,
) -> Result<ReinterpretRlwe, OpsError> {
    let step = "reinterpret_rlwe";
    OpsError::check_shape(step, "words of a ciphertext", ciphertext_words(ring), packed.ciphertext_words)?;
    OpsError::check_shape(step, "planes", planes.max(1), planes)?;
    let entries = packed.count() / planes;
    let whole = entries * planes * packed.ciphertext_words;
    OpsError::check_shape(step, "words of all entries", whole, packed.words.len())?;
    let bits = ring.params().response_bits();
    let total = (bits.a + bits.b) as usize;
    OpsError::check_shape(step, "bits of a switched coefficient", total.next_multiple_of(32), total)?;
    let db = Tiling::new(planes * ring.params().degree() * (total / 8), entries);
    Ok(ReinterpretRlwe { ring: *ring.params(), count: packed.count(), db })
}

/// Makes a database of entries of `items` words each.
pub(crate) fn reference(ring: &RingContext, packed: &RlweBatch, items: usize) -> TiledDb {
    let bits = ring.params().response_bits();
    let mut words = Vec::new();
    for index in 0..packed.count() {
        let halves = switched(ring, &packed.words, 2 * index, &[bits.a, bits.b]);
        for (a, b) in halves[0].iter().zip(&halves[1]) {
            let bytes = u128::from(*a) | u128::from(*b) << bits.a;
            words.extend((0..(bits.a + bits.b) / u32::BITS).map(|word| (bytes >> (32 * word)) as u32));
        }
    }
    reinterpret_lwe::reference(&words, 1, items, size_of::<u32>(), words.len() / items)
}
