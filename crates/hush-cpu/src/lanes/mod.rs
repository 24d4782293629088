//! Lanes: a few 32-bit words side by side, so that an algorithm is written once for all vector widths.
//!
//! The lanes of a vector are independent problems (database rows, coefficients). No operation moves a value between lanes, except
//! the load that transposes a corner of the database, and the transposition of a square.

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod neon;
mod portable;
mod vector;
pub(crate) mod vector_loop;

pub(crate) use portable::Portable;
pub(crate) use vector_loop::VectorLoop;

/// The number of columns that [`Lanes::load_columns`] loads at once.
pub(crate) const LOAD_COLS: usize = 16;

/// The largest number of lanes of a vector.
pub(crate) const MAX_WIDTH: usize = 16;

/// A vector of `WIDTH` words modulo 2^32, with their products of 64 bits.
///
/// Methods must be inlined into a function that enables the instruction set, hence `#[inline(always)]` here and in
/// all generic code above.
///
/// # Safety
/// Every method needs the instruction set of the implementation. Pointers must be valid for `WIDTH` words unless a method
/// states otherwise.
pub(crate) trait Lanes: Copy {
    /// The number of lanes; divides [`MAX_WIDTH`].
    const WIDTH: usize;
    /// A word a lane.
    type Words: Copy;
    /// A word of 64 bits a lane.
    type Wide: Copy;
    /// Vectors of no more lanes, for arrays that are too short for these.
    type Narrow: Lanes;

    /// Runs `work` in a function that enables the instruction set.
    unsafe fn enter(work: impl VectorLoop);

    unsafe fn splat(word: u32) -> Self::Words;
    unsafe fn load(from: *const u32) -> Self::Words;
    /// Loads into lane `l` the word `index[l]` words behind `from`. The first `WIDTH` of these words must be readable.
    unsafe fn gather(from: *const u32, index: &[i32; MAX_WIDTH]) -> Self::Words;
    unsafe fn store(to: *mut u32, words: Self::Words);
    /// Stores words, past the caches if `to` is aligned to a vector. Before another thread reads them, this one must
    /// call [`crate::kernels::end_stream`].
    unsafe fn stream(to: *mut u32, words: Self::Words);
    unsafe fn add(a: Self::Words, b: Self::Words) -> Self::Words;
    unsafe fn sub(a: Self::Words, b: Self::Words) -> Self::Words;
    /// Computes `a - b`, plus `p` where the difference is negative.
    unsafe fn sub_mod(a: Self::Words, b: Self::Words, p: Self::Words) -> Self::Words;
    /// Returns the smaller of two unsigned words.
    unsafe fn min(a: Self::Words, b: Self::Words) -> Self::Words;
    /// Returns the low half of the product.
    unsafe fn mul_low(a: Self::Words, b: Self::Words) -> Self::Words;
    /// Computes `(low >> shift | high << (32 - shift)) & mask`, for a shift below 32.
    unsafe fn bits(low: Self::Words, high: Self::Words, shift: u32, mask: u32) -> Self::Words;

    /// Puts `word` into all lanes.
    unsafe fn splat_wide(word: u64) -> Self::Wide;
    /// Loads `2 * WIDTH` words that [`Lanes::store_wide`] stored.
    unsafe fn load_wide(from: *const u32) -> Self::Wide;
    unsafe fn store_wide(to: *mut u32, wide: Self::Wide);
    /// Zero-extends the words.
    unsafe fn widen(a: Self::Words) -> Self::Wide;
    /// Computes `a b`.
    unsafe fn mul_wide(a: Self::Words, b: Self::Words) -> Self::Wide;
    /// Computes `a b`, where `b` is the same in all lanes.
    unsafe fn mul_splat(a: Self::Words, b: Self::Words) -> Self::Wide;
    /// Computes `low b`, where low is the low half of a lane of `a`, and `b` is the same in all lanes.
    unsafe fn mul_low_half(a: Self::Wide, b: Self::Words) -> Self::Wide;
    /// Computes `a + b`.
    unsafe fn add_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Computes `a + b mod bound`, for `a` and `b` below `bound`.
    unsafe fn add_wide_mod(a: Self::Wide, b: Self::Wide, bound: u64) -> Self::Wide;
    /// Returns the low halves.
    unsafe fn low(a: Self::Wide) -> Self::Words;
    /// Returns the high halves.
    unsafe fn high(a: Self::Wide) -> Self::Words;
    /// Returns the high halves, zero-extended.
    unsafe fn shift_down(a: Self::Wide) -> Self::Wide;

    /// Computes `sums + a * b`.
    #[inline(always)]
    unsafe fn mul_add(sums: Self::Wide, a: Self::Words, b: u32) -> Self::Wide {
        // SAFETY: the caller has the instruction set.
        unsafe { Self::add_wide(sums, Self::mul_splat(a, Self::splat(b))) }
    }

    /// Computes `sums + a * b`, lane by lane.
    #[inline(always)]
    unsafe fn mul_add_words(sums: Self::Wide, a: Self::Words, b: Self::Words) -> Self::Wide {
        // SAFETY: the caller has the instruction set.
        unsafe { Self::add_wide(sums, Self::mul_wide(a, b)) }
    }

    /// Moves lane `i` of vector `j` to lane `j` of vector `i`, for `WIDTH` vectors.
    unsafe fn transpose(rows: &mut [Self::Words]);
    /// Loads `WIDTH` rows x 16 columns of bytes, the rows `stride` bytes apart, and sign-extends them. Element `c` of the result
    /// holds column `c`, a row a lane.
    unsafe fn load_columns(from: *const i8, stride: usize) -> [Self::Words; LOAD_COLS];
}

/// Defines methods that are inlined into a function with the instruction set.
macro_rules! methods {
    ($(fn $name:ident($($arg:ident: $kind:ty),*) -> $result:ty { $($body:tt)* })*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: $kind),*) -> $result {
                unsafe { $($body)* }
            }
        )*
    };
}
use methods;
