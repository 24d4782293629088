//! The step `ntt_db` (5): plaintexts to evaluation form.

use hush_ops::OpsError;
use zerocopy::{Immutable, IntoBytes};

use super::{CudaRing, RingTables};
use crate::{
    Cuda,
    device::{Arg, CudaError, Device, Slice},
};

/// The largest number of symbols on the device at once, with their residues.
const CHUNK_SYMBOLS: usize = 1 << 24;

/// The lift of words to symbols modulo `t = 2^bits`, centred to `-t/2..t/2`. It mirrors `Lift` in `kernels/lift.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Immutable, IntoBytes)]
pub struct Lift {
    bits: u32,
    dropped: u32,
    addend: u32,
}

const _: () = assert!(size_of::<Lift>() == 12);

impl Lift {
    /// Creates a lift in which a symbol of `bits` bits, 1 to 32, is the low bits of a word; higher bits are ignored.
    pub fn symbols(bits: u32) -> Self {
        Self { bits, dropped: 0, addend: 1 << (bits - 1) }
    }

    /// Creates a lift in which a symbol of `bits` bits, 1 to 31, is the top bits of a word, rounded half up as by
    /// [`hush_ops::contract::round_word_up`].
    pub fn words(bits: u32) -> Self {
        Self { bits, dropped: 32 - bits, addend: (1 << 31) + (1 << (31 - bits)) }
    }
}

/// Lifts and transforms plaintexts on the device: `symbols` is `[plaintext][N]`, `to` is `[plaintext][limb][N]`. Fails with
/// [`CudaError::OtherDevice`] if the ring or a slice is on another device, and with another [`CudaError`] if the device fails.
///
/// # Panics
/// If `symbols` are not whole plaintexts, or `to` is not as long as their residues.
pub fn lift_plaintexts(
    device: &Device,
    ring: &RingTables,
    lift: Lift,
    symbols: &Slice<'_, u32>,
    to: &Slice<'_, u32>,
) -> Result<(), CudaError> {
    let degree = ring.degree();
    assert!(symbols.len().is_multiple_of(degree.words()) && to.len() == symbols.len() * ring.limbs());
    let kernel = ring.pick(["ntt_db_6", "ntt_db_8", "ntt_db_11", "ntt_db_12"], "ntt_db_11_wide");
    let plaintexts = symbols.len() / degree.words();
    let launch = degree.launch([plaintexts as u32, ring.limbs() as u32, 1], 1);
    device.launch(kernel, launch, &[to.into(), symbols.into(), Arg::of(&lift), ring.view()])
}

/// Runs [`hush_ops::contract::RingOps::ntt_db`].
pub(super) fn ntt_db(cuda: &Cuda, ring: &CudaRing, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
    let device = cuda.device();
    let kept = ring.kept();
    let lift = Lift::symbols(ring.context().params().plaintext_bits());
    let mut words = Vec::with_capacity(symbols.len() * kept.limbs());
    for symbols in symbols.chunks(CHUNK_SYMBOLS) {
        let residues = device.alloc(symbols.len() * kept.limbs())?;
        let symbols = device.upload(symbols)?;
        lift_plaintexts(device, kept, lift, &symbols.slice(..), &residues.slice(..))?;
        words.append(&mut device.download(&residues.slice(..))?);
    }
    Ok(words)
}
