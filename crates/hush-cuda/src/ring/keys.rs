//! One client's evaluation keys on the device.

use hush_he::entities::{EvaluationKeys, KeySwitchKey};
use hush_ops::{OpsError, reference::ring_shapes};

use super::CudaRing;
use crate::{
    Cuda,
    device::{Buffer, Slice},
};

/// The evaluation keys of one client: rows `[row][poly][limb][slot]` of the levels of the expansion, of the key for s^2, and
/// of the packing of pairs, one after another.
pub struct CudaKeys {
    words: Buffer<u32>,
}

impl CudaKeys {
    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.words.len() * size_of::<u32>()
    }

    pub(super) fn words(&self) -> Slice<'_, u32> {
        self.words.slice(..)
    }
}

/// As [`hush_ops::contract::RingOps::open_evaluation_keys`].
///
/// # Errors
/// As that; [`OpsError::Backend`] if the device has no memory for them.
pub fn open_evaluation_keys(
    cuda: &Cuda,
    ring: &CudaRing,
    keys: &EvaluationKeys,
) -> Result<CudaKeys, OpsError> {
    ring_shapes::check_keys(ring.context(), keys)?;
    let switch = |key: &KeySwitchKey| -> Vec<u32> {
        key.rows.iter().flat_map(|row| [row.a.words(), row.b.words()].concat()).collect()
    };
    let pairs = keys.pack.iter().flatten();
    let pack = pairs.map(|row| [row.a.words(), row.b[0].words(), row.b[1].words()].concat());
    let words: Vec<u32> =
        keys.levels.iter().chain([&keys.square]).map(switch).chain(pack).flatten().collect();
    Ok(CudaKeys { words: cuda.device().upload(&words)? })
}

/// Where the rows of a level are in the words of [`CudaKeys`]; where those of the key for s^2 are, if `level` is the number
/// of levels; and where those of the packing of pairs are, if it is one more.
pub(super) fn key_at(ring: &CudaRing, level: usize) -> u64 {
    let params = ring.context().params();
    let square = params.square_gadget();
    let rows: usize = params.levels().iter().chain([&square]).take(level).map(|gadget| gadget.digits).sum();
    (rows * 2 * ring.full().poly_words()) as u64
}
