//! Portable lanes.

use super::{LOAD_COLS, Lanes, MAX_WIDTH};

/// Eight lanes in an array, which a compiler may or may not vectorise.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

const WIDTH: usize = 8;

#[inline(always)]
fn zip(a: [u32; WIDTH], b: [u32; WIDTH], f: impl Fn(u32, u32) -> u32) -> [u32; WIDTH] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Lanes for Scalar {
    const WIDTH: usize = WIDTH;
    type Words = [u32; WIDTH];
    type Sums = [u64; WIDTH];

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self::Words {
        [word; WIDTH]
    }

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self::Words {
        // SAFETY: valid for `WIDTH` words, says the caller.
        unsafe { from.cast::<Self::Words>().read() }
    }

    #[inline(always)]
    unsafe fn gather(from: *const u32, index: &[i32; MAX_WIDTH]) -> Self::Words {
        // SAFETY: the caller may read the words at these indexes.
        std::array::from_fn(|lane| unsafe { *from.offset(index[lane] as isize) })
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, words: Self::Words) {
        // SAFETY: valid for `WIDTH` words, says the caller.
        unsafe { to.cast::<Self::Words>().write(words) };
    }

    #[inline(always)]
    unsafe fn add(a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, u32::wrapping_add)
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, u32::wrapping_sub)
    }

    #[inline(always)]
    unsafe fn min(a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, u32::min)
    }

    #[inline(always)]
    unsafe fn mul_low(a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, u32::wrapping_mul)
    }

    #[inline(always)]
    unsafe fn mul_high(a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32)
    }

    #[inline(always)]
    unsafe fn load_sums(from: *const u32) -> Self::Sums {
        // SAFETY: valid for `2 * WIDTH` words, says the caller.
        unsafe { from.cast::<Self::Sums>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store_sums(to: *mut u32, sums: Self::Sums) {
        // SAFETY: valid for `2 * WIDTH` words, says the caller.
        unsafe { to.cast::<Self::Sums>().write_unaligned(sums) };
    }

    #[inline(always)]
    unsafe fn mul_add(sums: Self::Sums, a: Self::Words, b: u32) -> Self::Sums {
        std::array::from_fn(|i| sums[i].wrapping_add(u64::from(a[i]) * u64::from(b)))
    }

    #[inline(always)]
    unsafe fn mul_add_words(sums: Self::Sums, a: Self::Words, b: Self::Words) -> Self::Sums {
        std::array::from_fn(|i| sums[i].wrapping_add(u64::from(a[i]) * u64::from(b[i])))
    }

    #[inline(always)]
    unsafe fn low(sums: Self::Sums) -> Self::Words {
        sums.map(|sum| sum as u32)
    }

    #[inline(always)]
    unsafe fn high(sums: Self::Sums) -> Self::Words {
        sums.map(|sum| (sum >> 32) as u32)
    }

    #[inline(always)]
    unsafe fn load_columns(from: *const i8, stride: usize) -> [Self::Words; LOAD_COLS] {
        std::array::from_fn(|col| {
            std::array::from_fn(|row| {
                // SAFETY: row `row` has 16 bytes, says the caller.
                i32::from(unsafe { *from.add(row * stride + col) }) as u32
            })
        })
    }
}
