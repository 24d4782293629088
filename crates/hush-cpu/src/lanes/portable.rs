//! Portable lanes.

use super::{LOAD_COLS, Lanes, MAX_WIDTH, VectorLoop, methods};

/// Eight lanes in an array, which a compiler may or may not vectorise.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const WIDTH: usize = 8;

#[inline(always)]
fn zip(a: [u32; WIDTH], b: [u32; WIDTH], f: impl Fn(u32, u32) -> u32) -> [u32; WIDTH] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

// SAFETY of all blocks: the caller promises pointers that are valid for the width; some blocks need nothing.
#[allow(unused_unsafe, clippy::undocumented_unsafe_blocks)]
impl Lanes for Portable {
    const WIDTH: usize = WIDTH;
    type Words = [u32; WIDTH];
    type Wide = [u64; WIDTH];
    type Narrow = Self;

    #[inline(always)]
    unsafe fn enter(work: impl VectorLoop) {
        unsafe { work.run::<Self>() };
    }

    methods! {
        fn splat(word: u32) -> Self::Words { [word; WIDTH] }
        fn load(from: *const u32) -> Self::Words { from.cast::<Self::Words>().read() }
        fn gather(from: *const u32, index: &[i32; MAX_WIDTH]) -> Self::Words {
            std::array::from_fn(|lane| *from.offset(index[lane] as isize))
        }
        fn store(to: *mut u32, words: Self::Words) -> () { to.cast::<Self::Words>().write(words); }
        fn add(a: Self::Words, b: Self::Words) -> Self::Words { zip(a, b, u32::wrapping_add) }
        fn sub(a: Self::Words, b: Self::Words) -> Self::Words { zip(a, b, u32::wrapping_sub) }
        fn min(a: Self::Words, b: Self::Words) -> Self::Words { zip(a, b, u32::min) }
        fn mul_low(a: Self::Words, b: Self::Words) -> Self::Words { zip(a, b, u32::wrapping_mul) }
        fn load_wide(from: *const u32) -> Self::Wide { from.cast::<Self::Wide>().read_unaligned() }
        fn store_wide(to: *mut u32, wide: Self::Wide) -> () { to.cast::<Self::Wide>().write_unaligned(wide); }
        fn low(wide: Self::Wide) -> Self::Words { wide.map(|sum| sum as u32) }
        fn high(wide: Self::Wide) -> Self::Words { wide.map(|sum| (sum >> 32) as u32) }
        fn mul_wide(a: Self::Words, b: Self::Words) -> Self::Wide {
            std::array::from_fn(|i| u64::from(a[i]) * u64::from(b[i]))
        }
        fn stream(to: *mut u32, words: Self::Words) -> () { Self::store(to, words); }
        fn mul_splat(a: Self::Words, b: Self::Words) -> Self::Wide { Self::mul_wide(a, b) }
        fn mul_low_half(a: Self::Wide, b: Self::Words) -> Self::Wide {
            std::array::from_fn(|i| u64::from(a[i] as u32) * u64::from(b[i]))
        }
        fn add_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide { std::array::from_fn(|i| a[i].wrapping_add(b[i])) }
        fn add_wide_mod(a: Self::Wide, b: Self::Wide, bound: u64) -> Self::Wide {
            std::array::from_fn(|i| {
                let (difference, negative) = a[i].overflowing_sub(bound - b[i]);
                if negative { difference.wrapping_add(bound) } else { difference }
            })
        }
        fn splat_wide(word: u64) -> Self::Wide { [word; 8] }
        fn widen(a: Self::Words) -> Self::Wide { a.map(u64::from) }
        fn shift_down(a: Self::Wide) -> Self::Wide { a.map(|a| a >> 32) }
        fn bits(low: Self::Words, high: Self::Words, shift: u32, mask: u32) -> Self::Words {
            std::array::from_fn(|i| {
                let both = u64::from(high[i]) << 32 | u64::from(low[i]);
                (both >> shift) as u32 & mask
            })
        }
        fn sub_mod(a: Self::Words, b: Self::Words, p: Self::Words) -> Self::Words {
            std::array::from_fn(|i| {
                let (difference, negative) = a[i].overflowing_sub(b[i]);
                if negative { difference.wrapping_add(p[i]) } else { difference }
            })
        }
        fn transpose(rows: &mut [Self::Words]) -> () {
            for i in 0..WIDTH {
                for j in 0..i {
                    (rows[i][j], rows[j][i]) = (rows[j][i], rows[i][j]);
                }
            }
        }
        fn load_columns(from: *const i8, stride: usize) -> [Self::Words; LOAD_COLS] {
            std::array::from_fn(|col| {
                std::array::from_fn(|row| {
                    i32::from(*from.add(row * stride + col)) as u32
                })
            })
        }
    }
}
