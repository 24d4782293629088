//! Eight lanes in two NEON registers.
#![cfg(target_arch = "aarch64")]

use std::{arch::aarch64::*, array::from_fn};

use super::{LOAD_COLS, Lanes, MAX_WIDTH, VectorLoop, methods};

/// Eight lanes of NEON. Two registers are worked on at once, so that one waits for no other.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

const WIDTH: usize = 8;

/// Eight words in the order of memory.
type Words = [uint32x4_t; 2];
/// Eight words of 64 bits in the order of memory.
type WideWords = [uint64x2_t; 4];

// SAFETY of all blocks: every ARMv8 has NEON, and the caller has pointers valid for the width.
#[allow(unused_unsafe, clippy::undocumented_unsafe_blocks)]
impl Lanes for Neon {
    const WIDTH: usize = WIDTH;
    type Words = Words;
    type Wide = WideWords;
    type Narrow = Self;

    #[target_feature(enable = "neon")]
    unsafe fn enter(work: impl VectorLoop) {
        unsafe { work.run::<Self>() };
    }

    methods! {
        fn splat(word: u32) -> Words { [vdupq_n_u32(word); 2] }
        fn load(from: *const u32) -> Words { [vld1q_u32(from), vld1q_u32(from.add(4))] }
        fn gather(from: *const u32, index: &[i32; MAX_WIDTH]) -> Words {
            let words: [u32; WIDTH] = from_fn(|lane| *from.offset(index[lane] as isize));
            Self::load(words.as_ptr())
        }
        fn store(to: *mut u32, words: Words) -> () {
            vst1q_u32(to, words[0]);
            vst1q_u32(to.add(4), words[1]);
        }
        fn stream(to: *mut u32, words: Words) -> () { Self::store(to, words) }
        fn add(a: Words, b: Words) -> Words { from_fn(|i| vaddq_u32(a[i], b[i])) }
        fn sub(a: Words, b: Words) -> Words { from_fn(|i| vsubq_u32(a[i], b[i])) }
        fn sub_mod(a: Words, b: Words, p: Words) -> Words {
            from_fn(|i| {
                let negative = vcltq_u32(a[i], b[i]);
                vaddq_u32(vsubq_u32(a[i], b[i]), vandq_u32(negative, p[i]))
            })
        }
        fn min(a: Words, b: Words) -> Words { from_fn(|i| vminq_u32(a[i], b[i])) }
        fn mul_low(a: Words, b: Words) -> Words { from_fn(|i| vmulq_u32(a[i], b[i])) }
        fn bits(low: Words, high: Words, shift: u32, mask: u32) -> Words {
            // A negative count shifts to the right, and a count of 32 leaves nothing.
            let right = vdupq_n_s32(-(shift as i32));
            let left = vdupq_n_s32(32 - shift as i32);
            from_fn(|i| {
                let joined = vorrq_u32(vshlq_u32(low[i], right), vshlq_u32(high[i], left));
                vandq_u32(joined, vdupq_n_u32(mask))
            })
        }
        fn splat_wide(word: u64) -> WideWords { [vdupq_n_u64(word); 4] }
        fn load_wide(from: *const u32) -> WideWords { from_fn(|i| vreinterpretq_u64_u32(vld1q_u32(from.add(4 * i)))) }
        fn store_wide(to: *mut u32, wide: WideWords) -> () {
            for (i, part) in wide.into_iter().enumerate() {
                vst1q_u32(to.add(4 * i), vreinterpretq_u32_u64(part));
            }
        }
        fn widen(a: Words) -> WideWords {
            let [[first, second], [third, fourth]] =
                a.map(|words| [vmovl_u32(vget_low_u32(words)), vmovl_high_u32(words)]);
            [first, second, third, fourth]
        }
        fn mul_wide(a: Words, b: Words) -> WideWords {
            [
                vmull_u32(vget_low_u32(a[0]), vget_low_u32(b[0])),
                vmull_high_u32(a[0], b[0]),
                vmull_u32(vget_low_u32(a[1]), vget_low_u32(b[1])),
                vmull_high_u32(a[1], b[1]),
            ]
        }
        fn mul_splat(a: Words, b: Words) -> WideWords { Self::mul_wide(a, b) }
        fn mul_low_half(a: WideWords, b: Words) -> WideWords { Self::mul_wide(Self::low(a), b) }
        fn add_wide(a: WideWords, b: WideWords) -> WideWords { from_fn(|i| vaddq_u64(a[i], b[i])) }
        fn add_wide_mod(a: WideWords, b: WideWords, bound: u64) -> WideWords {
            let bound = vdupq_n_u64(bound);
            from_fn(|i| {
                let rest = vsubq_u64(bound, b[i]);
                let negative = vcltq_u64(a[i], rest);
                vaddq_u64(vsubq_u64(a[i], rest), vandq_u64(negative, bound))
            })
        }
        fn low(a: WideWords) -> Words {
            let words = a.map(|part| vreinterpretq_u32_u64(part));
            [vuzp1q_u32(words[0], words[1]), vuzp1q_u32(words[2], words[3])]
        }
        fn high(a: WideWords) -> Words {
            let words = a.map(|part| vreinterpretq_u32_u64(part));
            [vuzp2q_u32(words[0], words[1]), vuzp2q_u32(words[2], words[3])]
        }
        fn shift_down(a: WideWords) -> WideWords { a.map(|part| vshrq_n_u64::<32>(part)) }
        fn transpose(rows: &mut [Words]) -> () {
            let square = |first: usize, half: usize| quarter(from_fn(|i| rows[first + i][half]));
            let [upper_left, upper_right, lower_left, lower_right] = [square(0, 0), square(0, 1), square(4, 0), square(4, 1)];
            for i in 0..4 {
                rows[i] = [upper_left[i], lower_left[i]];
                rows[4 + i] = [upper_right[i], lower_right[i]];
            }
        }
        fn load_columns(from: *const i8, stride: usize) -> [Words; LOAD_COLS] {
            let rows: [int8x16_t; 8] = from_fn(|row| vld1q_s8(from.add(row * stride)));
            // Each vector has eight columns of two rows, then four columns of four, then two of eight.
            let pairs: [int16x8_t; 8] = from_fn(|i| {
                let [a, b] = [rows[i / 2 * 2], rows[i / 2 * 2 + 1]];
                vreinterpretq_s16_s8(if i % 2 == 0 { vzip1q_s8(a, b) } else { vzip2q_s8(a, b) })
            });
            let quads: [int32x4_t; 8] = from_fn(|i| {
                let a = pairs[4 * (i / 4) + i % 4 / 2];
                let b = pairs[4 * (i / 4) + 2 + i % 4 / 2];
                vreinterpretq_s32_s16(if i % 2 == 0 { vzip1q_s16(a, b) } else { vzip2q_s16(a, b) })
            });
            let columns: [int8x16_t; 8] = from_fn(|i| {
                let [a, b] = [quads[i / 2], quads[4 + i / 2]];
                vreinterpretq_s8_s32(if i % 2 == 0 { vzip1q_s32(a, b) } else { vzip2q_s32(a, b) })
            });
            from_fn(|column| {
                let pair = columns[column / 2];
                let bytes = if column % 2 == 0 { vget_low_s8(pair) } else { vget_high_s8(pair) };
                let halves = vmovl_s8(bytes);
                [vmovl_s16(vget_low_s16(halves)), vmovl_high_s16(halves)].map(|words| vreinterpretq_u32_s32(words))
            })
        }
    }
}

/// Transposes 4 x 4 lanes.
#[inline]
#[target_feature(enable = "neon")]
fn quarter([a, b, c, d]: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
    let pair = |x, y| [vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y)];
    let [even, next_even] = pair(vtrn1q_u32(a, b), vtrn1q_u32(c, d));
    let [odd, next_odd] = pair(vtrn2q_u32(a, b), vtrn2q_u32(c, d));
    [
        vtrn1q_u64(even, next_even),
        vtrn1q_u64(odd, next_odd),
        vtrn2q_u64(even, next_even),
        vtrn2q_u64(odd, next_odd),
    ]
    .map(|row| vreinterpretq_u32_u64(row))
}
