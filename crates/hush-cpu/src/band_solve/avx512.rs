//! The kernel for bytes with AVX-512 VNNI: 64 multiply-adds an instruction.
//!
//! ```text
//! for distance k = 1, 2, ..:  sums[row] += quads[k][row] . solved group at distance k      (4 coefficients a product)
//! for row in the order:       x[row] = values[row] - sums[row] - quads[0][row] . x      mod 256
//! ```
//!
//! A group is four lines of 64 bytes with interleaved slots: the 32-bit element `i` of line `l` is byte `16 l + i` of the four
//! slots. `vpdpbusd` multiplies the four bytes of an element by four coefficients and adds the products to a 32-bit sum. The
//! instruction reads the coefficients as signed: that is the same modulo 256, and only the low byte of the sum is used.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use super::{
    panels::{BLOCK, Quad},
    substitute::{Group, Kernel},
};

/// The kernel for AVX-512 F, BW, VL and VNNI.
pub(super) const AVX512: Kernel<u8> = Kernel { load, store, solve };

/// Value bytes of one line.
const LINE: usize = 16;
const LINES: usize = 4;

type Lines = [__m512i; LINES];

#[inline]
#[target_feature(enable = "avx512f")]
fn read(group: &Group<u8>) -> Lines {
    // SAFETY: a group is 256 bytes, aligned to 64.
    std::array::from_fn(|line| unsafe { _mm512_load_si512(group.0.as_ptr().cast::<__m512i>().add(line)) })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn write(group: &mut Group<u8>, line: usize, bytes: __m512i) {
    // SAFETY: as in `read`; the slice checks the line.
    unsafe {
        _mm512_store_si512(group.0.as_flattened_mut()[64 * line..64 * (line + 1)].as_mut_ptr().cast(), bytes)
    };
}

/// Returns a mask of the first `bytes` elements.
fn first(bytes: usize) -> __mmask16 {
    ((1u32 << bytes) - 1) as __mmask16
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(group: &mut Group<u8>, place: usize, bytes: &[u8], scale: u8) {
    let scale = _mm512_set1_epi16(scale as i16);
    let shift = _mm_cvtsi32_si128(8 * place as i32);
    for (line, (old, bytes)) in read(group).into_iter().zip(bytes.chunks(LINE)).enumerate() {
        // SAFETY: the mask keeps the load within `bytes`.
        let bytes = unsafe { _mm_maskz_loadu_epi8(first(bytes.len()), bytes.as_ptr().cast()) };
        let scaled = _mm512_mullo_epi16(_mm512_cvtepu8_epi32(bytes), scale);
        let scaled = _mm512_and_si512(scaled, _mm512_set1_epi32(0xff));
        write(group, line, _mm512_or_si512(old, _mm512_sll_epi32(scaled, shift)));
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn store(group: &Group<u8>, place: usize, bytes: &mut [u8]) {
    let shift = _mm_cvtsi32_si128(8 * place as i32);
    for (line, bytes) in read(group).into_iter().zip(bytes.chunks_mut(LINE)) {
        let low = _mm512_srl_epi32(line, shift);
        // SAFETY: the mask keeps the store within `bytes`.
        unsafe { _mm512_mask_cvtepi32_storeu_epi8(bytes.as_mut_ptr().cast(), first(bytes.len()), low) };
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn solve(quads: &[Quad<u8>], lower: bool, solved: &[Group<u8>], group: &mut Group<u8>) {
    let (near, far) = quads.split_first().expect("a block has its diagonal group");
    let mut sums = [[_mm512_setzero_si512(); LINES]; BLOCK];
    for (quad, solved) in far.iter().zip(solved.iter().rev()) {
        let solved = read(solved);
        for row in 0..BLOCK {
            let coeffs = _mm512_set1_epi32(i32::from_le_bytes(quad[row]));
            for line in 0..LINES {
                sums[row][line] = _mm512_dpbusd_epi32(sums[row][line], solved[line], coeffs);
            }
        }
    }
    let order: [usize; BLOCK] = if lower { [0, 1, 2, 3] } else { [3, 2, 1, 0] };
    let values = read(group);
    for line in 0..LINES {
        let mut solved = _mm512_setzero_si512();
        for row in order {
            let shift = _mm_cvtsi32_si128(8 * row as i32);
            let coeffs = _mm512_set1_epi32(i32::from_le_bytes(near[row]));
            let sum = _mm512_dpbusd_epi32(sums[row][line], solved, coeffs);
            let value = _mm512_sub_epi32(_mm512_srl_epi32(values[line], shift), sum);
            let value = _mm512_and_si512(value, _mm512_set1_epi32(0xff));
            solved = _mm512_or_si512(solved, _mm512_sll_epi32(value, shift));
        }
        write(group, line, solved);
    }
}
