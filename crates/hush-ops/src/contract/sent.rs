//! The polynomials and words of an answer that travel: their selection, their widths and their rounding.
//!
//! Values are packed as in [`hush_he::codec`]: value i takes the bits `i * bits ..`, the least significant first, and zeros fill
//! the last byte.

use std::ops::Range;

use hush_he::{
    codec::{pack_wide, packed_bytes, round_word},
    params::RingParams,
};

/// The part of a polynomial that travels: the coefficients `0, stride, 2 stride, ..`, packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPoly {
    /// The width of a coefficient, 1 to 48.
    pub bits: u32,
    /// The distance from one sent coefficient to the next.
    pub stride: usize,
    /// The number of coefficients sent.
    pub count: usize,
}

impl SentPoly {
    /// Returns all coefficients of a polynomial of degree `degree`.
    pub fn whole(degree: usize, bits: u32) -> Self {
        Self { bits, stride: 1, count: degree }
    }

    /// Returns the whole halves a and b of a ciphertext, at the widths of an answer.
    pub fn halves(ring: &RingParams) -> [Self; 2] {
        let bits = ring.response_bits();
        [bits.a, bits.b].map(|bits| Self::whole(ring.degree(), bits))
    }

    /// Returns the bytes of both halves of a ciphertext at the widths of an answer.
    pub fn answer_bytes(ring: &RingParams) -> usize {
        Self::halves(ring).iter().map(Self::bytes).sum()
    }

    /// Returns the bytes on the wire.
    pub fn bytes(&self) -> usize {
        packed_bytes(self.count, self.bits)
    }

    /// Appends the sent coefficients of `poly`, whose coefficients are below `2^bits`.
    pub fn pack(&self, poly: &[u64], out: &mut Vec<u8>) {
        let sent = poly.iter().step_by(self.stride).take(self.count);
        pack_wide(sent.map(|&word| word.into()), self.bits, out);
    }
}

/// Packs the polynomials of one query, one after another.
pub fn pack_polys(polys: &[Vec<u64>], sent: &[SentPoly]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sent.iter().map(SentPoly::bytes).sum());
    polys.iter().zip(sent).for_each(|(poly, sent)| sent.pack(poly, &mut out));
    out
}

/// The part of a query's words that travels: the words of some rows, rounded, and packed separately from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentRows {
    /// The rows.
    pub rows: Range<usize>,
    /// The width of a word, 1 to 32.
    pub bits: u32,
}

impl SentRows {
    /// Returns the bytes on the wire.
    pub fn bytes(&self) -> usize {
        packed_bytes(self.rows.len(), self.bits)
    }
}

/// The rounding of a word modulo 2^32 to its top bits, modulo a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Half to even ([`round_word`]): for LWE ciphertexts, whose rounding errors add up over the columns of a row.
    HalfEven,
    /// Half up ([`round_word_up`]): for coefficients of RLWE ciphertexts.
    HalfUp,
}

impl Rounding {
    /// Returns `word` rounded to its top `bits` bits, 1 to 32.
    pub fn round(self, word: u32, bits: u32) -> u32 {
        match self {
            _ if bits == u32::BITS => word,
            Self::HalfEven => round_word(word, bits),
            Self::HalfUp => round_word_up(word, bits),
        }
    }

    /// Rounds and packs the words of one query, one piece after another.
    pub fn pack(self, words: &[u32], sent: &[SentRows]) -> Vec<u8> {
        let mut out = Vec::with_capacity(sent.iter().map(SentRows::bytes).sum());
        for SentRows { rows, bits } in sent {
            let rounded = words[rows.clone()].iter().map(|&word| self.round(word, *bits).into());
            pack_wide(rounded, *bits, &mut out);
        }
        out
    }
}

/// Returns `word` rounded to its top `bits` bits, 1 to 31, half up, modulo `2^bits`.
pub fn round_word_up(word: u32, bits: u32) -> u32 {
    word.wrapping_add(1 << (31 - bits)) >> (32 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_even_or_up() {
        let half = 1 << 29;
        for (word, even, up) in [(half, 0, 1), (3 * half, 2, 2), (5 * half, 2, 3), (7 * half, 0, 0)] {
            assert_eq!([Rounding::HalfEven, Rounding::HalfUp].map(|by| by.round(word, 2)), [even, up]);
        }
        assert_eq!([Rounding::HalfEven, Rounding::HalfUp].map(|by| by.round(u32::MAX, 32)), [u32::MAX; 2]);
    }

    #[test]
    fn pieces_end_at_whole_bytes() {
        let poly = vec![vec![1, 9, 2, 9, 3, 9]; 2];
        let sent = [SentPoly { bits: 4, stride: 2, count: 3 }, SentPoly { bits: 12, stride: 4, count: 1 }];
        assert_eq!(pack_polys(&poly, &sent), [0x21, 0x03, 0x01, 0x00]);
        let words = [0x1fff_ffff, 0x2fff_ffff, 0x3000_0000];
        let sent = [SentRows { rows: 0..3, bits: 4 }, SentRows { rows: 1..1, bits: 7 }];
        assert_eq!(Rounding::HalfUp.pack(&words, &sent), [0x32, 0x03]);
    }

    #[test]
    fn words_are_rounded_half_up() {
        assert_eq!([0, 0x1fff, 0x2000, 0x5fff, 0x6000].map(|word| round_word_up(word, 18)), [0, 0, 1, 1, 2]);
        assert_eq!(round_word_up(u32::MAX, 18), 0);
        assert_eq!(round_word_up(0xffff_dfff, 18), (1 << 18) - 1);
    }
}
