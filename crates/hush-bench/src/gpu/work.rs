//! The least work of steps, computed: counts of bytes and operations.

use std::ops::Add;

use hush_he::params::RingParams;
use hush_ops::{path::Step, steps::StepShape};

/// The bytes of a word.
pub(super) const WORD: f64 = 4.0;
/// The byte operations of the product of an entry of s8 and a word: a word has 4 bytes, and a multiply-add is 2 operations.
const FOLD_OPS: f64 = 8.0;

/// The byte operations of a product of words modulo a prime: four classes of four by one bytes each.
pub(super) const WORD_OPS: f64 = 2.0 * 16.0;

/// The work of a row, from which its floor follows. The sum of two works is the sum of each part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// The bytes of device memory that are read or written, each once.
    pub(super) bytes: f64,
    /// The operations on bytes (2 a multiply-add).
    pub(super) byte_ops: f64,
    /// The products modulo a prime on the cores: the low half, the high half and all of a product of 32 by 32 bits each.
    pub(super) modular_products: f64,
    /// The other multiply-adds on the cores, of 32 by 32 bits onto 64.
    pub(super) multiply_adds: f64,
    /// The bytes from the host to the device.
    pub(super) up: f64,
    /// The bytes from the device to the host.
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

/// Returns the work of a fold of `entries` bytes by a batch.
pub(super) fn fold(entries: f64, batch: usize) -> Work {
    Work { bytes: entries, byte_ops: FOLD_OPS * batch as f64 * entries, ..Work::default() }
}

/// Returns the work of `count` transforms of N words: N / 2 butterflies in each of log2 N levels, a product modulo a prime each.
pub(super) fn transforms(count: f64, degree: usize) -> Work {
    let modular_products = count * degree as f64 / 2.0 * f64::from(degree.ilog2());
    Work { modular_products, ..Work::default() }
}

/// Returns the work of the steps of a path for `batch` queries. Each query has `up` words that are copied to the device, and
/// `down` bytes that are copied back.
pub(super) fn answers(path: &[Step], batch: usize, up: usize, down: usize) -> Work {
    let queries = batch as f64;
    let copies = Work { up: queries * WORD * up as f64, down: queries * down as f64, ..Work::default() };
    path.iter().map(|step| of_step(&step.shape, batch)).fold(copies, Add::add)
}

/// Returns the work of a step on a GPU: products with a database on the tensor cores, others on the cores, where a
/// sum of several is reduced as a product is.
pub(super) fn of_step(step: &StepShape, batch: usize) -> Work {
    let counted = step.work(batch);
    let own = Work {
        bytes: counted.bytes + counted.operand_bytes,
        byte_ops: FOLD_OPS * counted.multiply_adds + WORD_OPS * counted.database_products,
        modular_products: counted.sums,
        multiply_adds: (counted.products - counted.database_products - counted.sums).max(0.0),
        ..Work::default()
    };
    own + transforms(counted.transforms, step.ring().map_or(1, RingParams::degree))
}

#[cfg(test)]
mod tests {
    use hush_he::params::ONION_M31;
    use hush_ops::steps::RgswFold;
    use hush_protocol::{Protocol, table::TableShape};

    use super::*;

    #[test]
    fn counts_are_those_of_the_definitions() {
        assert_eq!(transforms(1.0, 8).modular_products, 12.0);
        let folded = fold(10.0, 3);
        assert_eq!((folded.bytes, folded.byte_ops), (10.0, 240.0));
        // Three folds of a plane: two halves by the limbs, a transform back and l of digits each; a slot is a sum of 2 l products.
        let ring = ONION_M31;
        let work = of_step(&RgswFold { ring, entries: 4, planes: 1, parts: 1 }.into(), 1);
        let limbs = ring.kept_limbs();
        let digits = ring.fold_gadget().digits;
        let degree = ring.degree();
        let slots = (3 * 2 * limbs * degree) as f64;
        let transformed = transforms((3 * 2 * limbs * (1 + digits)) as f64, degree);
        assert_eq!(work.modular_products, slots + transformed.modular_products);
        assert_eq!(work.multiply_adds, slots * (2 * digits - 1) as f64);
        assert_eq!(work.bytes, 3.0 * slots * WORD);
    }

    /// Checks works on a table of 64 GiB.
    #[test]
    fn answers_are_what_their_steps_are() {
        let shape = TableShape { columns: 1 << 16, blocks: 256, slot_bytes: 4096 };
        let rows = 256.0 * 4096.0;
        let columns = 65536.0;
        let table = |protocol: Protocol, preset: &str| protocol.page().table(preset, shape).unwrap();
        let of = |protocol, preset| answers(&table(protocol, preset).path(), 8, 10, 3);
        let set = "LWE_N1280_STD3_2_RING256";
        let simple = of(Protocol::Simple, set);
        // The fold writes the words of a row, and the step that makes the answer reads them.
        let answer = table(Protocol::Simple, set).facts().answer_bytes as f64;
        let words = 8.0 * (WORD * (2.0 * rows + columns) + answer);
        assert_eq!((simple.bytes, simple.byte_ops), (rows * columns + words, 64.0 * rows * columns));
        assert_eq!((simple.up, simple.down), (8.0 * 40.0, 24.0));
        // The pack columns are 4 N bytes beside every row.
        let colpack = of(Protocol::Colpack, "COLPACK_N2048_Q52");
        let scanned = rows * (columns + 4.0 * 2048.0);
        assert_eq!(colpack.byte_ops, 64.0 * scanned);
        // Queries and answers are short beside the table.
        assert!((1.0..1.02).contains(&(colpack.bytes / scanned)));
        assert!(colpack.modular_products > 0.0);
        // The lifted hint has two limbs of 4096 words for each of 1280 secrets and 256 plaintexts.
        let exppack = of(Protocol::ExppackS, "PACK_M31");
        let hint = 4.0 * 2.0 * 4096.0 * 1280.0 * 256.0;
        assert!((1.0..1.04).contains(&(exppack.bytes / (rows * columns + hint))));
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
