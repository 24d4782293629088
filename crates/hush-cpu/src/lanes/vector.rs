//! Methods that the vectors of AVX2 and of AVX-512 share, each by its own instructions.
#![cfg(target_arch = "x86_64")]

/// A vector of 64-bit values: those of the even lanes and those of the odd lanes.
#[derive(Clone, Copy)]
pub(crate) struct EvenOdd<V> {
    pub(super) even: V,
    pub(super) odd: V,
}

/// Implements [`super::Lanes`] for registers of one width: methods of `own` as given, all others by the listed instructions.
macro_rules! vector {
    (
        $lanes:ident, $vector:ident, $width:literal,
        words: $splat:ident $load:ident $store:ident $stream:ident $add:ident $sub:ident $min:ident $mul_low:ident,
        bits: $shift_right:ident $shift_left:ident $or:ident $and:ident,
        wide: $splat_wide:ident $mul:ident $add_wide:ident $shift_down:ident,
        narrow: $narrow:ty, features: $features:literal,
        own: { $($own:tt)* }
    ) => {
        // SAFETY of all blocks: the caller has the instruction set, and pointers valid for the width.
        #[allow(clippy::undocumented_unsafe_blocks)]
        impl Lanes for $lanes {
            const WIDTH: usize = $width;
            type Words = $vector;
            type Wide = EvenOdd<$vector>;
            type Narrow = $narrow;

            #[target_feature(enable = $features)]
            unsafe fn enter(work: impl VectorLoop) {
                unsafe { work.run::<Self>() };
            }

            $crate::lanes::methods! {
                fn splat(word: u32) -> $vector { $splat(word as i32) }
                fn load(from: *const u32) -> $vector { $load(from.cast()) }
                fn store(to: *mut u32, words: $vector) -> () { $store(to.cast(), words) }
                fn stream(to: *mut u32, words: $vector) -> () {
                    if to.addr().is_multiple_of(size_of::<$vector>()) {
                        $stream(to.cast(), words);
                    } else {
                        Self::store(to, words);
                    }
                }
                fn add(a: $vector, b: $vector) -> $vector { $add(a, b) }
                fn sub(a: $vector, b: $vector) -> $vector { $sub(a, b) }
                fn min(a: $vector, b: $vector) -> $vector { $min(a, b) }
                fn mul_low(a: $vector, b: $vector) -> $vector { $mul_low(a, b) }
                fn bits(low: $vector, high: $vector, shift: u32, mask: u32) -> $vector {
                    let right = _mm_cvtsi32_si128(shift as i32);
                    let left = _mm_cvtsi32_si128(32 - shift as i32);
                    $and($or($shift_right(low, right), $shift_left(high, left)), $splat(mask as i32))
                }
                fn splat_wide(word: u64) -> Self::Wide {
                    EvenOdd { even: $splat_wide(word as i64), odd: $splat_wide(word as i64) }
                }
                fn load_wide(from: *const u32) -> Self::Wide {
                    EvenOdd { even: $load(from.cast()), odd: $load(from.add($width).cast()) }
                }
                fn store_wide(to: *mut u32, wide: Self::Wide) -> () {
                    $store(to.cast(), wide.even);
                    $store(to.add($width).cast(), wide.odd);
                }
                fn mul_wide(a: $vector, b: $vector) -> Self::Wide {
                    EvenOdd { even: $mul(a, b), odd: $mul($shift_down::<32>(a), $shift_down::<32>(b)) }
                }
                fn mul_splat(a: $vector, b: $vector) -> Self::Wide {
                    EvenOdd { even: $mul(a, b), odd: $mul($shift_down::<32>(a), b) }
                }
                fn mul_low_half(a: Self::Wide, b: $vector) -> Self::Wide {
                    EvenOdd { even: mul_kept(a.even, b), odd: mul_kept(a.odd, b) }
                }
                fn add_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide {
                    EvenOdd { even: $add_wide(a.even, b.even), odd: $add_wide(a.odd, b.odd) }
                }
                fn add_wide_mod(a: Self::Wide, b: Self::Wide, bound: u64) -> Self::Wide {
                    let bound = $splat_wide(bound as i64);
                    EvenOdd { even: add_mod(a.even, b.even, bound), odd: add_mod(a.odd, b.odd, bound) }
                }
                fn shift_down(a: Self::Wide) -> Self::Wide {
                    EvenOdd { even: $shift_down::<32>(a.even), odd: $shift_down::<32>(a.odd) }
                }
                $($own)*
            }
        }
    };
}
pub(super) use vector;
