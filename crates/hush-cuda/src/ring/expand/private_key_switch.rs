//! Private key switching: from TLWE words to RLWE ciphertexts.
//!
//! One launch switches all words of all queries to selectors and top rows, and another the words of RGSW ciphertexts to bottom
//! rows. From there on they are the leaves of an expansion.

use std::ops::Range;

use hush_he::{
    entities::TlweWords,
    params::{RingParams, Tlwe},
};
use hush_ops::{
    OpsError,
    contract::Expanded,
    steps::{PrivateKeySwitch, poly_bytes},
};
use zerocopy::{Immutable, IntoBytes};

use super::{Expansion, Leaves, queries_at_once};
use crate::{
    Cuda,
    device::{Arg, Buffer, Launch},
    ring::{
        CudaRing,
        keys::{CudaKeys, full_limbs, private_key_at},
        tables::addresses::addresses,
    },
};

/// The most threads of a block.
const THREADS: usize = 128;
/// The slots of a thread.
const VECTOR: usize = 4;
/// The words that a block switches.
const WORDS: usize = 8;
/// The rows of a key whose digits a block has in shared memory.
const KEY_ROWS: usize = 64;

/// `Digits` of `kernels/private_key_switch.cu`.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
struct Digits {
    n: u32,
    digits: u32,
    width: u32,
    offset: u32,
}

/// Runs [`hush_ops::contract::TfheOps::private_key_switch`] for the queries of a batch together, as many at once as `expand` takes.
pub(in crate::ring) fn private_key_switch(
    cuda: &Cuda,
    ring: &CudaRing,
    keys: &[&CudaKeys],
    queries: &[TlweWords],
    rows: usize,
) -> Result<Vec<Expanded<Buffer<u32>>>, OpsError> {
    ring.full().check_narrow()?;
    let device = cuda.device();
    let words = queries.first().map_or(rows, |query| query.bodies.len());
    let folds = (words - rows) / ring.fold_gadget().digits();
    let at_once = queries_at_once(words, ciphertext_bytes(ring.context().params()), folds);
    let mut switched = Vec::with_capacity(queries.len());
    for (keys, queries) in keys.chunks(at_once).zip(queries.chunks(at_once)) {
        let keys = addresses(device, keys.iter().map(|keys| keys.words()))?;
        let (stages, queries_now) = (cuda.stages(), queries.len());
        let expansion = Expansion { device, stages, ring, keys, queries: queries_now, rows, folds };
        let given = TlweOnDevice::upload(&expansion, queries)?;
        let leaves =
            Leaves { words: given.switch(0..words, false)?, first: 0, results: expansion.results()? };
        expansion.finish(&leaves, &given.switch(rows..words, true)?)?;
        switched.extend(leaves.results);
    }
    Ok(switched)
}

/// The words of some queries on the device.
struct TlweOnDevice<'a> {
    expansion: &'a Expansion<'a>,
    /// The masks: `[query][word][n]`.
    masks: Buffer<u32>,
    /// The constant of each body modulo each prime: `[query][word][limb]`.
    constants: Buffer<u32>,
}

impl<'a> TlweOnDevice<'a> {
    fn upload(expansion: &'a Expansion<'_>, queries: &[TlweWords]) -> Result<Self, OpsError> {
        let masks: Vec<_> = queries.iter().map(|query| &query.masks[..]).collect();
        let full = expansion.ring.context().full();
        let tlwe = tlwe(expansion.ring);
        let bodies = queries.iter().flat_map(|query| &query.bodies);
        let constants: Vec<u32> = bodies
            .flat_map(|&body| (0..full.limbs()).map(move |limb| tlwe.constant(full, body, limb)))
            .collect();
        let device = expansion.device;
        Ok(Self { expansion, masks: device.upload(&masks.concat())?, constants: device.upload(&constants)? })
    }

    /// Switches `words` of every query by the keys for bottom rows, or for top rows: `[query][word][a, b][limb][slot]` modulo Q_e.
    fn switch(&self, words: Range<usize>, is_bottom: bool) -> Result<Buffer<u32>, OpsError> {
        let &Expansion { device, ring, ref keys, queries, .. } = self.expansion;
        let node_words = 2 * ring.full().poly_words();
        let switched = device.alloc(queries * words.len() * node_words)?;
        if words.is_empty() {
            return Ok(switched);
        }
        let tlwe = tlwe(ring);
        let gadget = tlwe.gadget();
        let digits = Digits {
            n: tlwe.n() as u32,
            digits: gadget.digits as u32,
            width: gadget.width,
            offset: gadget.offset() as u32,
        };
        let threads = THREADS.min(ring.full().degree().words() / VECTOR);
        let blocks = [node_words / VECTOR / threads, words.len().div_ceil(WORDS), queries];
        let launch = Launch::grid(blocks.map(|blocks| blocks as u32), threads as u32)
            .shared(WORDS * KEY_ROWS * size_of::<u32>());
        let args = [
            (&switched).into(),
            keys.into(),
            private_key_at(ring, is_bottom).into(),
            (&self.masks).into(),
            (&self.constants).into(),
            (words.start as u32).into(),
            (words.len() as u32).into(),
            u32::from(!is_bottom).into(),
            Arg::of(&digits),
            ring.full().view(),
        ];
        device.launch("private_key_switch", launch, &args)?;
        Ok(switched)
    }
}

/// Returns the TLWE parameters of a set.
///
/// # Panics
/// If the set does not have any.
fn tlwe(ring: &CudaRing) -> &Tlwe {
    ring.context().params().tlwe().expect("a set of TLWE words")
}

/// Returns the bytes of a ciphertext modulo Q_e.
fn ciphertext_bytes(ring: &RingParams) -> usize {
    2 * full_limbs(ring) * ring.degree() * size_of::<u32>()
}

hush_ops::footprint!(Cuda: PrivateKeySwitch, |step, batch| {
    let &PrivateKeySwitch { ring, rows, folds } = step;
    let words = ring.leaves(rows, folds);
    let at_once = queries_at_once(words, ciphertext_bytes(&ring), folds).min(batch);
    // The masks, and a leaf and at most one bottom row of each word. Selectors are counted by the step that multiplies them.
    let word = size_of::<u32>() * ring.tlwe().map_or(0, Tlwe::n) + 2 * ciphertext_bytes(&ring);
    at_once * words * word + batch * 4 * folds * ring.fold_gadget().digits * poly_bytes(&ring)
});
