//! Automorphisms with AVX-512: a group of slots is a vector, and an order of it one instruction.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use super::{Automorphism, GROUP};

/// Writes the image of `from` to `to`.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn apply(automorphism: &Automorphism, from: &[[u32; GROUP]], to: &mut [[u32; GROUP]]) {
    for (to, &(group, order)) in to.iter_mut().zip(&automorphism.groups) {
        // SAFETY: the arrays have 16 words.
        unsafe {
            let words = _mm512_loadu_si512(from[group as usize].as_ptr().cast());
            let order = _mm512_loadu_si512(automorphism.orders[order as usize].as_ptr().cast());
            _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_permutexvar_epi32(order, words));
        }
    }
}
