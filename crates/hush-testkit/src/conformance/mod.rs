//! One test body a step, for every backend: the words of the reference backend, bit for bit.

use hush_math::csprng::Csprng;

mod chain_misfit;
mod column;
mod lwe_fold;
mod lwe_hint;
mod pack;
mod reinterpret_lwe;
mod ring;

pub use chain_misfit::{ChainMisfit, Misfit};
pub use column::{ChainCase, ColumnCase, ColumnCaseShape, HintRows};
pub use lwe_fold::lwe_fold;
pub use lwe_hint::lwe_hint;
pub use pack::{PackCase, PackCaseShape, Words};
pub use reinterpret_lwe::reinterpret_lwe;
pub use ring::{Residues, RingCase, RingShape};

/// Bytes of a database, `rows * cols` of them.
#[derive(Clone, Copy, Debug)]
enum Fill {
    Random,
    All(i8),
}

impl Fill {
    /// Random bytes, and those at which products and sums are largest.
    const ALL: [Self; 4] = [Self::Random, Self::All(-128), Self::All(127), Self::All(0)];

    fn matrix(self, rows: usize, cols: usize) -> Vec<u8> {
        let mut matrix = vec![0; rows * cols];
        match self {
            Self::Random => Csprng::insecure_from_seed((rows * 31 + cols) as u64).fill_bytes(&mut matrix),
            Self::All(byte) => matrix.fill(byte as u8),
        }
        matrix
    }
}

/// Panics with the first coordinate at which two arrays of lines of `width` words differ.
#[track_caller]
fn assert_same_words(what: &dyn std::fmt::Display, width: usize, expected: &[u32], actual: &[u32]) {
    assert_eq!(expected.len(), actual.len(), "{what}: number of words");
    if let Some(index) = (0..expected.len()).find(|&index| expected[index] != actual[index]) {
        panic!(
            "{what}: line {}, word {} is {:#010x}, expected {:#010x}",
            index / width,
            index % width,
            actual[index],
            expected[index]
        );
    }
}
