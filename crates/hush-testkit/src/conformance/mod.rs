//! Test bodies, one for each step, for every backend: the words of the reference backend, bit for bit.

use hush_math::csprng::Csprng;
use hush_ops::contract::{LweBatch, Memory, RlweBatch};

mod chain;
mod chain_misfit;
mod column;
mod empty;
mod lwe_fold;
mod lwe_hint;
mod pack;
mod reinterpret_lwe;
mod residues;
mod ring;
mod send_words;
mod tfhe;

pub use chain::{ChainCase, HintRows};
pub use chain_misfit::{ChainMisfit, Misfit};
pub use column::{ColumnCase, ColumnCaseShape};
pub use empty::empty_operands;
pub use lwe_fold::{FOLD_BATCHES, FOLD_SHAPES, lwe_fold, lwe_fold_of};
pub use lwe_hint::{HINT_CASES, HintCase, lwe_hint, lwe_hint_of};
pub use pack::{PackCase, PackCaseShape, Words};
pub use reinterpret_lwe::{REINTERPRET_SHAPES, reinterpret_lwe, reinterpret_lwe_of};
pub use residues::Residues;
pub use ring::{RingCase, RingShape};
pub use send_words::send_words;
pub use tfhe::{TfheCase, TfheShape};

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

/// Operands in the memory of a backend.
trait Kept: Memory {
    fn kept(&self, words: &[u32]) -> Self::Words {
        self.keep(words.to_vec()).expect("the backend has room for the words")
    }

    fn kept_lwe(&self, batch: &LweBatch) -> LweBatch<Self::Words> {
        LweBatch { rows: batch.rows, words: self.kept(&batch.words) }
    }

    fn kept_rlwe(&self, batch: &RlweBatch) -> RlweBatch<Self::Words> {
        RlweBatch { ciphertext_words: batch.ciphertext_words, words: self.kept(&batch.words) }
    }

    fn kept_all(&self, batches: &[RlweBatch]) -> Vec<RlweBatch<Self::Words>> {
        batches.iter().map(|batch| self.kept_rlwe(batch)).collect()
    }

    /// Returns a result, on the host.
    fn result(&self, words: &Self::Words) -> Vec<u32> {
        self.read(words).expect("the words can be read").into_owned()
    }
}

impl<M: Memory> Kept for M {}

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
