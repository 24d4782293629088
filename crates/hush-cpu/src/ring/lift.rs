//! The centred lift of plaintext symbols to residues.

use super::{
    arithmetic::{
        residues::Residues,
        vector_loop::{self, VectorLoop},
    },
    mod_ring::Limb,
};
use crate::Level;
use crate::lanes::Lanes;

/// The lift of words to symbols modulo `t = 2^bits`, centred to `-t/2..t/2`.
///
/// Half of t is added to a symbol, whose higher bits are then cut off, and subtracted again modulo a prime.
#[derive(Clone, Copy)]
pub(crate) struct Lift {
    bits: u32,
    /// The number of bits of a word below the symbol.
    dropped: u32,
    /// Half of t, plus half a symbol if bits are dropped.
    addend: u32,
}

impl Lift {
    /// Creates the lift of symbols of `bits` bits in the low bits of words. Higher bits do not count.
    pub(crate) fn symbols(bits: u32) -> Self {
        Self { bits, dropped: 0, addend: 1 << (bits - 1) }
    }

    /// Creates the lift of symbols of `bits` bits, at most 31, in the top bits of words, rounded half up:
    /// [`hush_ops::contract::round_word_up`].
    pub(crate) fn words(bits: u32) -> Self {
        Self { bits, dropped: 32 - bits, addend: (1 << 31) + (1 << (31 - bits)) }
    }

    /// Computes the residues, modulo the prime of `limb`, of whole multiples of 16 words.
    pub(crate) fn apply(self, level: Level, limb: &Limb, words: &[u32], residues: &mut [u32]) {
        vector_loop::run(level, LiftLoop { lift: self, limb, words, residues });
    }
}

struct LiftLoop<'a> {
    lift: Lift,
    limb: &'a Limb,
    words: &'a [u32],
    residues: &'a mut [u32],
}

impl VectorLoop for LiftLoop<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Lift { bits, dropped, addend } = self.lift;
        let modulus = self.limb.ntt.plan().modulus();
        let montgomery = self.limb.montgomery;
        let half = modulus.reduce(1 << (bits - 1));
        let is_residue = 1 << bits <= u64::from(modulus.value());
        let words = self.words.chunks_exact(L::WIDTH);
        for (to, words) in self.residues.chunks_exact_mut(L::WIDTH).zip(words) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(montgomery);
                let positive = L::add(L::load(words.as_ptr()), L::splat(addend));
                let mut symbols = L::bits(positive, L::splat(0), dropped, u32::MAX >> (32 - bits));
                if !is_residue {
                    symbols = residues.mul(symbols, L::splat(montgomery.form(1)));
                }
                L::store(to.as_mut_ptr(), residues.sub(symbols, L::splat(half)));
            }
        }
    }
}
