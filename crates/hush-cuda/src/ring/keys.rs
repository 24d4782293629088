//! A client's evaluation keys on the device.

use hush_he::{
    entities::{EvaluationKeys, KeySwitchKey, RingSwitchKey},
    params::{RingParams, Tlwe},
};

use super::CudaRing;
use crate::device::{Buffer, CudaError, Device, Slice};

/// The evaluation keys of one client: the rows `[row][poly][limb][slot]` of the levels of the expansion, then the rows of the key
/// for s^2, then the rows of the packing of pairs; or, in sets of TLWE words, the rows for bottom rows, then those for top rows.
pub struct CudaKeys {
    words: Buffer<u32>,
    /// The key of the ring switch, which the host uses.
    switch: Option<RingSwitchKey>,
}

impl CudaKeys {
    /// Returns the bytes on the device.
    pub fn bytes(&self) -> usize {
        self.words.len() * size_of::<u32>()
    }

    /// Returns the bytes of a client's keys for a set.
    pub(crate) fn bytes_for(ring: &RingParams) -> usize {
        let levels = ring.levels().iter().map(|gadget| gadget.digits).sum::<usize>();
        let rows = levels + ring.square_gadget().digits + 2 * ring.tlwe().map_or(0, Tlwe::key_rows);
        let switched = 2 * rows * full_limbs(ring);
        let polys = switched + 6 * ring.pack_gadget().digits * ring.kept_limbs();
        size_of::<u32>() * ring.degree() * polys
    }

    /// Uploads keys from the host.
    pub(super) fn upload(device: &Device, keys: EvaluationKeys) -> Result<Self, CudaError> {
        let switch = |key: &KeySwitchKey| -> Vec<u32> {
            key.rows.iter().flat_map(|row| [row.a.words(), row.b.words()].concat()).collect()
        };
        let pairs = keys.pack.iter().flatten();
        let pack = pairs.map(|row| [row.a.words(), row.b[0].words(), row.b[1].words()].concat());
        let rows = keys.private.iter().flatten().flatten();
        let private = rows.map(|row| [row.a.words(), row.b.words()].concat());
        let switched = keys.levels.iter().chain([&keys.square]).map(switch);
        let words: Vec<u32> = switched.chain(pack).chain(private).flatten().collect();
        Ok(Self { words: device.upload(&words)?, switch: keys.switch })
    }

    pub(super) fn switch(&self) -> Option<&RingSwitchKey> {
        self.switch.as_ref()
    }

    pub(super) fn words(&self) -> Slice<'_, u32> {
        self.words.slice(..)
    }
}

/// Returns the position of the rows of a level in the words of [`CudaKeys`]. The number of levels stands for the key for s^2, and
/// one more for the packing of pairs.
pub(super) fn key_at(ring: &CudaRing, level: usize) -> u64 {
    let params = ring.context().params();
    let square = params.square_gadget();
    let rows: usize = params.levels().iter().chain([&square]).take(level).map(|gadget| gadget.digits).sum();
    (rows * 2 * ring.full().poly_words()) as u64
}

/// Returns the position of the keys for bottom rows, or for top rows, of a set of TLWE words, which has no others.
pub(super) fn private_key_at(ring: &CudaRing, is_bottom: bool) -> u64 {
    let rows = ring.context().params().tlwe().map_or(0, Tlwe::key_rows);
    if is_bottom { 0 } else { (rows * 2 * ring.full().poly_words()) as u64 }
}

/// Returns the number of primes of Q_e.
pub(super) fn full_limbs(ring: &RingParams) -> usize {
    ring.kept_limbs() + usize::from(ring.dropped_factor() > 1)
}
