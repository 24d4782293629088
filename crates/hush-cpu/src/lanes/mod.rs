//! A few 32-bit words side by side, so that an algorithm is written once for all vector widths.
//!
//! The lanes of a vector are independent problems (database rows): no operation moves a value between lanes, but for
//! the load that transposes a corner of the database.

mod avx2;
mod avx512;
mod scalar;

pub(crate) use avx2::Avx2;
pub(crate) use avx512::Avx512;
pub(crate) use scalar::Scalar;

/// Columns that [`Lanes::load_columns`] loads at once.
pub(crate) const LOAD_COLS: usize = 16;

/// Most lanes of a vector.
pub(crate) const MAX_WIDTH: usize = 16;

/// `WIDTH` words modulo 2^32.
///
/// Methods are to be inlined into a function that enables the instruction set, hence `#[inline(always)]` here and in
/// all generic code above.
///
/// # Safety
/// Every method needs the instruction set of the implementation; beyond that, pointers must be valid for `WIDTH`
/// words.
pub(crate) trait Lanes {
    /// Number of lanes; divides [`MAX_WIDTH`].
    const WIDTH: usize;
    /// A word a lane.
    type Words: Copy;
    /// A 64-bit sum a lane.
    type Sums: Copy;

    unsafe fn splat(word: u32) -> Self::Words;
    unsafe fn load(from: *const u32) -> Self::Words;
    /// Lane `l` is the word `index[l]` words behind `from`; the first `WIDTH` of these words are readable.
    unsafe fn gather(from: *const u32, index: &[i32; MAX_WIDTH]) -> Self::Words;
    unsafe fn store(to: *mut u32, words: Self::Words);
    unsafe fn add(a: Self::Words, b: Self::Words) -> Self::Words;
    unsafe fn sub(a: Self::Words, b: Self::Words) -> Self::Words;
    /// The smaller of two unsigned words.
    unsafe fn min(a: Self::Words, b: Self::Words) -> Self::Words;
    /// The low half of the product.
    unsafe fn mul_low(a: Self::Words, b: Self::Words) -> Self::Words;
    /// The high half of the product; `b` is the same in all lanes.
    unsafe fn mul_high(a: Self::Words, b: Self::Words) -> Self::Words;

    /// Loads sums that [`Lanes::store_sums`] stored, `2 * WIDTH` words.
    unsafe fn load_sums(from: *const u32) -> Self::Sums;
    unsafe fn store_sums(to: *mut u32, sums: Self::Sums);
    /// `sums + a * b`.
    unsafe fn mul_add(sums: Self::Sums, a: Self::Words, b: u32) -> Self::Sums;
    /// `sums + a * b`, lane by lane.
    unsafe fn mul_add_words(sums: Self::Sums, a: Self::Words, b: Self::Words) -> Self::Sums;
    /// The low words of sums.
    unsafe fn low(sums: Self::Sums) -> Self::Words;
    /// The high words of sums.
    unsafe fn high(sums: Self::Sums) -> Self::Words;

    /// Sign-extends `WIDTH` rows x 16 columns of bytes, the rows `stride` bytes apart; element `c` of the result holds
    /// column `c`, a row a lane.
    unsafe fn load_columns(from: *const i8, stride: usize) -> [Self::Words; LOAD_COLS];
}
