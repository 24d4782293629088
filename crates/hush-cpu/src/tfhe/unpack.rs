//! The way from packed symbols to residues.

use hush_ops::symbol_tiling::SymbolTiling;

use crate::{
    Level,
    lanes::Lanes,
    ring::{Lift, Limb, Residues, VectorLoop, run},
};

/// The number of lanes of the widest vector. Plaintexts of fewer words are unpacked by their definition.
const MAX_WIDTH: usize = 16;

/// Unpacks the symbols of a plaintext and lifts them, centred, modulo the prime of `limb`. `words` must hold the plaintext.
pub(super) fn unpack(
    level: Level,
    limb: &Limb,
    tiling: SymbolTiling,
    plaintext: &[u8],
    words: &mut [u32],
    residues: &mut [u32],
) {
    if !words.len().is_multiple_of(MAX_WIDTH) {
        let symbols = tiling.unpack(plaintext);
        return Lift::symbols(tiling.bits()).apply(level, limb, &symbols, residues);
    }
    for (word, &bytes) in words.iter_mut().zip(plaintext.as_chunks().0) {
        *word = u32::from_le_bytes(bytes);
    }
    run(level, Unpack { limb, bits: tiling.bits(), words, residues });
}

struct Unpack<'a> {
    limb: &'a Limb,
    bits: u32,
    words: &'a [u32],
    residues: &'a mut [u32],
}

impl VectorLoop for Unpack<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Self { limb, bits, words, residues } = self;
        let half = 1u32 << (bits - 1);
        let mask = u32::MAX >> (u32::BITS - bits);
        let shifts = (0..u32::BITS).step_by(bits as usize);
        for (shift, residues) in shifts.zip(residues.chunks_exact_mut(words.len())) {
            for (words, to) in words.chunks_exact(L::WIDTH).zip(residues.chunks_exact_mut(L::WIDTH)) {
                // SAFETY: the caller has the instruction set; chunks are a vector.
                unsafe {
                    let modulo = Residues::<L>::new(limb.montgomery);
                    let zero = L::splat(0);
                    let half = L::splat(half);
                    let symbols = L::bits(L::load(words.as_ptr()), zero, shift, mask);
                    // Half of t is added, higher bits are cut off, and half of t is subtracted again.
                    let positive = L::bits(L::add(symbols, half), zero, 0, mask);
                    L::store(to.as_mut_ptr(), modulo.sub(positive, half));
                }
            }
        }
    }
}
