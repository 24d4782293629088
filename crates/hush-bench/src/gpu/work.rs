//! What has to be done at least: counts of bytes and operations, worked out.

use std::ops::Add;

use hush_cuda::ring::CudaRing;
use hush_he::params::RingParams;
use hush_math::gadget::Gadget;
use hush_ops::path::{Step, StepShape};

/// Bytes of a word.
pub(super) const WORD: f64 = 4.0;
/// Operations on bytes of an entry of s8 and a word: a word has 4 bytes, and a multiply-add is 2.
const FOLD_OPS: f64 = 8.0;

/// Operations on bytes of a product of words modulo a prime: four classes of four by one bytes each.
const WORD_OPS: f64 = 2.0 * 16.0;

/// What the work of a row is, of which its floor follows. Two of them are added up part by part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Bytes of device memory that are read or written, each once.
    pub(super) bytes: f64,
    /// Operations on bytes (2 a multiply-add).
    pub(super) byte_ops: f64,
    /// Products modulo a prime on the cores: the low half, the high half and all of a product of 32 by 32 bits each.
    pub(super) modular_products: f64,
    /// Other multiply-adds on the cores, of 32 by 32 bits onto 64.
    pub(super) multiply_adds: f64,
    /// Bytes from the host to the device.
    pub(super) up: f64,
    /// Bytes from the device to the host.
    pub(super) down: f64,
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            byte_ops: self.byte_ops + other.byte_ops,
            modular_products: self.modular_products + other.modular_products,
            multiply_adds: self.multiply_adds + other.multiply_adds,
            up: self.up + other.up,
            down: self.down + other.down,
        }
    }
}

/// A fold of `entries` bytes by a batch.
pub(super) fn fold(entries: f64, batch: usize) -> Work {
    Work { bytes: entries, byte_ops: FOLD_OPS * batch as f64 * entries, ..Work::default() }
}

/// `count` products modulo a prime.
pub(super) fn products(count: f64) -> Work {
    Work { modular_products: count, ..Work::default() }
}

/// `count` transforms of N words: N / 2 butterflies in each of log2 N levels, a product modulo a prime each.
pub(super) fn transforms(count: f64, degree: usize) -> Work {
    products(count * degree as f64 / 2.0 * f64::from(degree.ilog2()))
}

/// `count` sums of `terms` products: a multiply-add a term, and the sum is reduced as a product is.
pub(super) fn sums(count: f64, terms: usize) -> Work {
    Work { modular_products: count, multiply_adds: count * (terms - 1) as f64, ..Work::default() }
}

/// The steps of a path for `batch` queries, of which each has `up` words that come up and `down` bytes that go back.
pub(super) fn answers(path: &[Step], batch: usize, up: usize, down: usize) -> Work {
    let queries = batch as f64;
    let copies = Work { up: queries * WORD * up as f64, down: queries * down as f64, ..Work::default() };
    path.iter().map(|step| of_step(&step.shape, batch)).fold(copies, Add::add)
}

/// What a step does, as a GPU does it: products with a database on the tensor cores, others on the cores.
fn of_step(step: &StepShape, batch: usize) -> Work {
    let counted = step.work(batch);
    let with_database =
        matches!(step, StepShape::Pack { .. } | StepShape::PackOnline { .. } | StepShape::RlweFold { .. });
    let (tensor, cores) = if with_database { (counted.products, 0.0) } else { (0.0, counted.products) };
    let own = Work {
        bytes: counted.bytes,
        byte_ops: FOLD_OPS * counted.multiply_adds + WORD_OPS * tensor,
        modular_products: cores,
        ..Work::default()
    };
    own + transforms(counted.transforms, step.ring().map_or(1, RingParams::degree))
}

/// The ring modulo Q_1, counted.
pub(super) struct Counts {
    pub(super) degree: usize,
    pub(super) limbs: usize,
}

impl Counts {
    pub(super) fn new(ring: &CudaRing) -> Self {
        let kept = ring.context().kept();
        Self { degree: kept.degree(), limbs: kept.limbs() }
    }

    /// Words of a polynomial.
    pub(super) fn poly_words(&self) -> usize {
        self.limbs * self.degree
    }

    /// Bytes of `count` polynomials.
    pub(super) fn polys(&self, count: f64) -> f64 {
        count * WORD * self.poly_words() as f64
    }

    /// `count` polynomials that are decomposed by a gadget of l digits: a transform back of each of L limbs, and a transform of l
    /// digits modulo each; L (1 + l) in all.
    pub(super) fn decompositions(&self, count: f64, gadget: &Gadget) -> Work {
        transforms(count * (self.limbs * (1 + gadget.digits)) as f64, self.degree)
    }

    /// `count` external products: both halves are decomposed, and both halves of the result are sums of 2 l products in every
    /// slot.
    pub(super) fn external_products(&self, count: f64, gadget: &Gadget) -> Work {
        let slots = count * 2.0 * self.poly_words() as f64;
        self.decompositions(2.0 * count, gadget) + sums(slots, 2 * gadget.digits)
    }

    /// `count` polynomials that are switched to at most 32 bits: a transform back of each limb, and L - 1 products modulo a prime a
    /// coefficient to put the limbs together. Residues are read; words are written, and go to the host.
    pub(super) fn switches(&self, count: f64) -> Work {
        let (words, limbs) = (count * self.degree as f64, self.limbs as f64);
        let copies = Work { bytes: self.polys(count) + WORD * words, down: WORD * words, ..Work::default() };
        copies + transforms(count * limbs, self.degree) + products((limbs - 1.0) * words)
    }
}

#[cfg(test)]
mod tests {
    use hush_protocol::{Protocol, table::TableShape};

    use super::*;

    #[test]
    fn counts_are_those_of_the_definitions() {
        assert_eq!(transforms(1.0, 8), products(12.0));
        let (counts, gadget) = (Counts { degree: 8, limbs: 2 }, Gadget::new(18, 2, 27));
        // Two halves by two limbs: 1 transform back, 2 of digits; 32 sums of 4 products.
        let work = counts.external_products(1.0, &gadget);
        assert_eq!(work, products(12.0 * 12.0) + sums(32.0, 4));
        assert_eq!((work.modular_products, work.multiply_adds), (144.0 + 32.0, 32.0 * 3.0));
        let work = fold(10.0, 3);
        assert_eq!((work.bytes, work.byte_ops), (10.0, 240.0));
        let switches = counts.switches(3.0);
        assert_eq!((switches.bytes, switches.down), (4.0 * (48.0 + 24.0), 4.0 * 24.0));
        // 12 butterflies for each of six limbs, then a product for each of 24 coefficients.
        assert_eq!(switches.modular_products, 6.0 * 12.0 + 24.0);
    }

    /// A table of 64 GiB.
    #[test]
    fn answers_are_what_their_steps_are() {
        let shape = TableShape { columns: 1 << 16, blocks: 256, slot_bytes: 4096 };
        let (rows, columns) = (256.0 * 4096.0, 65536.0);
        let of = |protocol: Protocol, preset: &str| {
            let path = protocol.page().table(preset, shape).unwrap().path();
            answers(&path, 8, 10, 3)
        };
        let simple = of(Protocol::Simple, "LWE_N1280_STD3_2_RING256");
        assert_eq!((simple.bytes, simple.byte_ops), (rows * columns, 64.0 * rows * columns));
        assert_eq!((simple.up, simple.down), (8.0 * 40.0, 24.0));
        // The pack columns are 4 N bytes beside every row.
        let colpack = of(Protocol::Colpack, "COLPACK_N2048_Q52");
        assert_eq!(colpack.bytes, rows * (columns + 4.0 * 2048.0));
        assert_eq!(colpack.byte_ops, 64.0 * colpack.bytes);
        assert!(colpack.modular_products > 0.0);
        // The lifted hint has two limbs of 4096 words for each of 1280 secrets and 256 plaintexts.
        let exppack = of(Protocol::ExppackS, "PACK_M31");
        let hint = 4.0 * 2.0 * 4096.0 * 1280.0 * 256.0;
        assert_eq!(exppack.bytes, rows * columns + hint);
        assert_eq!(exppack.byte_ops, 64.0 * rows * columns + 8.0 * 2.0 * 32.0 * hint / 4.0);
    }

    #[test]
    fn work_is_added_part_by_part() {
        let work =
            Work { bytes: 1.0, byte_ops: 2.0, modular_products: 3.0, multiply_adds: 4.0, up: 5.0, down: 6.0 };
        let twice = Work {
            bytes: 2.0,
            byte_ops: 4.0,
            modular_products: 6.0,
            multiply_adds: 8.0,
            up: 10.0,
            down: 12.0,
        };
        assert_eq!(work + work, twice);
        assert_eq!(work + Work::default(), work);
    }
}
