//! Butterflies on residues in 32-bit lanes, in two ways: lazily for small moduli, canonically for all.

use hush_math::modulus::Modulus;

use crate::lanes::Lanes;

/// Multipliers with their companions from [`Multipliers::pair`], a lane each.
#[derive(Clone, Copy)]
pub(super) struct Twiddle<L: Lanes> {
    pub(super) w: L::Words,
    pub(super) companion: L::Words,
}

impl<L: Lanes> Twiddle<L> {
    /// Puts one multiplier into all lanes.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`.
    #[inline(always)]
    pub(super) unsafe fn splat([w, companion]: [u32; 2]) -> Self {
        // SAFETY: the caller promises so.
        unsafe { Self { w: L::splat(w), companion: L::splat(companion) } }
    }

    /// Loads a vector of multipliers and then their companions.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`; two vectors are readable.
    #[inline(always)]
    pub(super) unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller promises so.
        unsafe { Self { w: L::load(from), companion: L::load(from.add(L::WIDTH)) } }
    }
}

/// The modulus p in all lanes.
#[derive(Clone, Copy)]
pub(super) struct Field<L: Lanes> {
    p: L::Words,
    /// The value 2 p modulo 2^32; for [`Lazy`] only.
    twice: L::Words,
}

impl<L: Lanes> Field<L> {
    /// # Safety
    /// The CPU must have the instruction set of `L`.
    #[inline(always)]
    pub(super) unsafe fn new(p: u32) -> Self {
        // SAFETY: the caller promises so.
        unsafe { Self { p: L::splat(p), twice: L::splat(p.wrapping_mul(2)) } }
    }
}

/// The form of multipliers that a kernel uses.
pub(super) trait Multipliers {
    /// Returns the form of a canonical multiplier, and its companion.
    fn pair(modulus: Modulus, w: u32) -> [u32; 2];
}

/// A range of residues and the operations that keep to it.
///
/// # Safety
/// All methods need the instruction set of `L`.
pub(super) trait Arithmetic: Multipliers {
    /// Computes `(x + w y, x - w y)`.
    unsafe fn forward<L: Lanes>(field: Field<L>, x: L::Words, y: L::Words, by: Twiddle<L>) -> [L::Words; 2];

    /// Computes `(x + y, w (x - y))`.
    unsafe fn inverse<L: Lanes>(field: Field<L>, x: L::Words, y: L::Words, by: Twiddle<L>) -> [L::Words; 2];

    /// Makes a result of forward stages canonical.
    unsafe fn finish<L: Lanes>(field: Field<L>, x: L::Words) -> L::Words;

    /// Computes `(w (x + y), root (x - y))`, canonical: the last inverse stage.
    unsafe fn finish_inverse<L: Lanes>(
        field: Field<L>,
        x: L::Words,
        y: L::Words,
        by: Twiddle<L>,
        root: Twiddle<L>,
    ) -> [L::Words; 2];
}

/// Lazy arithmetic for p < 2^30: forward stages keep values below 4 p, inverse ones below 2 p.
///
/// Source: Harvey, "Faster arithmetic for number-theoretic transforms", section 3.
pub(super) struct Lazy;

/// Returns `x` or `x - bound`, the one in `0..bound`, for `x < 2 bound`.
///
/// # Safety
/// The CPU must have the instruction set of `L`.
#[inline(always)]
unsafe fn reduce_once<L: Lanes>(x: L::Words, bound: L::Words) -> L::Words {
    // SAFETY: the caller promises so.
    unsafe { L::min(x, L::sub(x, bound)) }
}

impl Lazy {
    /// Computes `w y` in `0..2p`, for any `y`.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`.
    #[inline(always)]
    unsafe fn mul_lazy<L: Lanes>(field: Field<L>, y: L::Words, by: Twiddle<L>) -> L::Words {
        // SAFETY: the caller promises so.
        unsafe {
            let quotient = L::high(L::mul_wide(y, by.companion));
            L::sub(L::mul_low(y, by.w), L::mul_low(quotient, field.p))
        }
    }
}

impl Multipliers for Lazy {
    fn pair(modulus: Modulus, w: u32) -> [u32; 2] {
        [w, modulus.shoup(w)]
    }
}

// SAFETY of all blocks: the caller has the instruction set.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Arithmetic for Lazy {
    #[inline(always)]
    unsafe fn forward<L: Lanes>(field: Field<L>, x: L::Words, y: L::Words, by: Twiddle<L>) -> [L::Words; 2] {
        unsafe {
            let x = reduce_once::<L>(x, field.twice);
            let product = Self::mul_lazy(field, y, by);
            [L::add(x, product), L::sub(L::add(x, field.twice), product)]
        }
    }

    #[inline(always)]
    unsafe fn inverse<L: Lanes>(field: Field<L>, x: L::Words, y: L::Words, by: Twiddle<L>) -> [L::Words; 2] {
        unsafe {
            let difference = L::sub(L::add(x, field.twice), y);
            [reduce_once::<L>(L::add(x, y), field.twice), Self::mul_lazy(field, difference, by)]
        }
    }

    #[inline(always)]
    unsafe fn finish<L: Lanes>(field: Field<L>, x: L::Words) -> L::Words {
        unsafe { reduce_once::<L>(reduce_once::<L>(x, field.twice), field.p) }
    }

    #[inline(always)]
    unsafe fn finish_inverse<L: Lanes>(
        field: Field<L>,
        x: L::Words,
        y: L::Words,
        by: Twiddle<L>,
        root: Twiddle<L>,
    ) -> [L::Words; 2] {
        unsafe {
            let sum = Self::mul_lazy(field, L::add(x, y), by);
            let difference = Self::mul_lazy(field, L::sub(L::add(x, field.twice), y), root);
            [reduce_once::<L>(sum, field.p), reduce_once::<L>(difference, field.p)]
        }
    }
}

/// Canonical arithmetic for every p < 2^32. Multipliers are in Montgomery form, so that a product needs high
/// halves only, and one correction.
///
/// Source: Montgomery, "Modular multiplication without trial division"; the companion as in Seiler, "Faster AVX2
/// optimized NTT multiplication for Ring-LWE lattice cryptography", section 3.
pub(super) struct Canonical;

// SAFETY of all blocks: the caller has the instruction set.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Canonical {
    /// Computes `w y`, for any `y`. The quotient makes the low halves equal, so that their difference has no borrow.
    #[inline(always)]
    unsafe fn mul<L: Lanes>(field: Field<L>, y: L::Words, by: Twiddle<L>) -> L::Words {
        unsafe {
            let quotient = L::mul_low(y, by.companion);
            L::sub_mod(L::high(L::mul_wide(y, by.w)), L::high(L::mul_wide(quotient, field.p)), field.p)
        }
    }

    #[inline(always)]
    unsafe fn add<L: Lanes>(field: Field<L>, x: L::Words, y: L::Words) -> L::Words {
        unsafe { L::sub_mod(x, L::sub(field.p, y), field.p) }
    }
}

impl Multipliers for Canonical {
    fn pair(modulus: Modulus, w: u32) -> [u32; 2] {
        let p = modulus.value();
        // Newton's iteration doubles the correct bits, of which p itself has 3.
        let inverse = (0..4).fold(p, |x, _| x.wrapping_mul(2u32.wrapping_sub(p.wrapping_mul(x))));
        let montgomery = modulus.reduce(u64::from(w) << 32);
        [montgomery, montgomery.wrapping_mul(inverse)]
    }
}

// SAFETY of all blocks: the caller has the instruction set.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Arithmetic for Canonical {
    #[inline(always)]
    unsafe fn forward<L: Lanes>(field: Field<L>, x: L::Words, y: L::Words, by: Twiddle<L>) -> [L::Words; 2] {
        unsafe {
            let product = Self::mul(field, y, by);
            [Self::add(field, x, product), L::sub_mod(x, product, field.p)]
        }
    }

    #[inline(always)]
    unsafe fn inverse<L: Lanes>(field: Field<L>, x: L::Words, y: L::Words, by: Twiddle<L>) -> [L::Words; 2] {
        unsafe { [Self::add(field, x, y), Self::mul(field, L::sub_mod(x, y, field.p), by)] }
    }

    #[inline(always)]
    unsafe fn finish<L: Lanes>(_field: Field<L>, x: L::Words) -> L::Words {
        x
    }

    #[inline(always)]
    unsafe fn finish_inverse<L: Lanes>(
        field: Field<L>,
        x: L::Words,
        y: L::Words,
        by: Twiddle<L>,
        root: Twiddle<L>,
    ) -> [L::Words; 2] {
        unsafe {
            let [sum, difference] = Self::inverse(field, x, y, root);
            [Self::mul(field, sum, by), difference]
        }
    }
}
