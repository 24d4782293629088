//! The tables of a ring on the device, and the structures in which kernels take them.
//!
//! * [`arithmetic`]: how kernels compute modulo the primes of a ring. [`factors`]: the multipliers of transforms.
//! * [`degree`]: the degrees for which there are kernels. [`gadget`]: gadgets as kernels take them.
//! * [`expand_tables`]: the tables of a set for evaluation keys. [`addresses`]: the addresses of each query's operands.

pub(super) mod addresses;
pub(super) mod arithmetic;
pub(super) mod degree;
pub(super) mod expand_tables;
pub(super) mod factors;
pub(super) mod gadget;

use std::{mem::offset_of, sync::Arc};

use hush_math::{modulus::Modulus, ring::Ring};
use hush_ops::OpsError;
use zerocopy::{Immutable, IntoBytes};

use self::{
    arithmetic::{Arithmetic, inverse_of_odd},
    degree::Degree,
    factors::{forward_table, inverse_table, table_words},
};
use crate::device::{Arg, Buffer, Device};

/// The largest number of primes in a base.
pub const MAX_LIMBS: usize = 4;

/// The struct `Prime` of `kernels/modular.cuh`, and `WidePrime` of `kernels/wide_modular.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Immutable, IntoBytes)]
pub struct Prime {
    /// The prime.
    pub p: u32,
    /// The inverse: `p^-1 mod 2^32`.
    pub inv: u32,
    /// The residue `2^32 mod p`.
    pub r1: u32,
    /// The residue `2^64 mod p`.
    pub r2: u32,
}

/// The structs `RingView` and `WideRingView` of `kernels/ring.cuh`: a kernel argument by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Immutable, IntoBytes)]
pub struct RingView {
    degree: u32,
    log_degree: u32,
    limbs: u32,
    reserved: u32,
    primes: [Prime; MAX_LIMBS],
    /// The addresses of the tables on the device.
    forward: [u64; MAX_LIMBS],
    inverse: [u64; MAX_LIMBS],
    inverse_degree: [[u32; 2]; MAX_LIMBS],
}

const _: () = assert!(size_of::<RingView>() == 176 && offset_of!(RingView, primes) == 16);
const _: () = assert!(offset_of!(RingView, forward) == 80 && offset_of!(RingView, inverse) == 112);
const _: () = assert!(offset_of!(RingView, inverse_degree) == 144);

/// The struct `MixedRadix` of `kernels/switch.cuh`: a kernel argument by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Immutable, IntoBytes)]
pub struct MixedRadix {
    factors: [[u32; MAX_LIMBS]; MAX_LIMBS],
    inverse: [u64; MAX_LIMBS],
}

const _: () = assert!(size_of::<MixedRadix>() == 96 && offset_of!(MixedRadix, inverse) == 64);

/// R modulo a product of primes, with its tables on the device.
#[derive(Clone)]
pub struct RingTables {
    degree: Degree,
    arithmetic: Arithmetic,
    view: RingView,
    radix: MixedRadix,
    /// The buffer to which the view points.
    factors: Arc<Buffer<u32>>,
}

impl RingTables {
    /// Makes and uploads the tables of `ring`.
    ///
    /// # Errors
    /// [`OpsError::Backend`] if the kernels do not support the degree or a prime, or the device has no memory for the tables.
    pub fn new(device: &Device, ring: &Ring) -> Result<Self, OpsError> {
        let degree = Degree::new(ring.degree())?;
        let arithmetic = Arithmetic::of(ring.moduli());
        arithmetic.check_ring(degree, ring.limbs())?;
        let tables = ring.plans().iter();
        let tables =
            tables.flat_map(|plan| [forward_table(arithmetic, plan), inverse_table(arithmetic, plan)]);
        let factors = device.upload(&tables.flatten().collect::<Vec<_>>())?;
        let words = table_words(ring.degree());
        let address = |index: usize| factors.slice(index * words..(index + 1) * words).address();
        let mut view = RingView {
            degree: degree.words() as u32,
            log_degree: degree.log2(),
            limbs: ring.limbs() as u32,
            reserved: 0,
            primes: [Prime::default(); MAX_LIMBS],
            forward: [0; MAX_LIMBS],
            inverse: [0; MAX_LIMBS],
            inverse_degree: [[0; 2]; MAX_LIMBS],
        };
        for (limb, plan) in ring.plans().iter().enumerate() {
            view.primes[limb] = prime(plan.modulus());
            view.forward[limb] = address(2 * limb);
            view.inverse[limb] = address(2 * limb + 1);
            view.inverse_degree[limb] = arithmetic.factor(plan.modulus(), plan.inverse_scale().0);
        }
        Ok(Self { degree, arithmetic, view, radix: mixed_radix(ring.moduli()), factors: Arc::new(factors) })
    }

    /// Returns the ring modulo the first primes of this ring, which shares its tables.
    pub(super) fn first_limbs(&self, ring: &Ring) -> Self {
        let view = RingView { limbs: ring.limbs() as u32, ..self.view };
        Self { view, radix: mixed_radix(ring.moduli()), ..self.clone() }
    }

    /// Returns the degree N.
    pub fn degree(&self) -> Degree {
        self.degree
    }

    /// Returns the kernel for this ring: from `narrow`, which has one for each degree from the smallest to the largest, if all
    /// primes are below 2^31, and `wide` otherwise.
    pub(super) fn pick(&self, narrow: [&'static str; 4], wide: &'static str) -> &'static str {
        self.arithmetic.pick([self.degree.pick(narrow), wide])
    }

    /// Checks that all primes are below 2^31, for steps whose kernels need it.
    pub(crate) fn check_narrow(&self) -> Result<(), OpsError> {
        self.arithmetic.check_narrow()
    }

    /// Returns the number of primes.
    pub fn limbs(&self) -> usize {
        self.view.limbs as usize
    }

    /// Returns the words of a polynomial: `limbs * N`.
    pub fn poly_words(&self) -> usize {
        self.limbs() * self.degree.words()
    }

    /// Returns the ring as a kernel argument (`RingView`).
    pub fn view(&self) -> Arg<'_> {
        Arg::of(&self.view).pointing_into(&self.factors.slice(..))
    }

    /// Returns the constants of the mixed radix as a kernel argument (`MixedRadix`).
    pub fn radix(&self) -> Arg<'_> {
        Arg::of(&self.radix)
    }

    /// Returns the bytes of the tables on the device. Rings made by `first_limbs` share them.
    pub fn bytes(&self) -> usize {
        self.factors.len() * size_of::<u32>()
    }
}

/// Returns `x 2^32 mod p`.
pub(crate) fn montgomery_form(modulus: Modulus, x: u32) -> u32 {
    modulus.mul(x, modulus.reduce(1 << 32))
}

/// Returns a prime as kernels take it.
pub(super) fn prime(modulus: Modulus) -> Prime {
    let r1 = modulus.reduce(1 << 32);
    let inv = inverse_of_odd(u64::from(modulus.value())) as u32;
    Prime { p: modulus.value(), inv, r1, r2: modulus.mul(r1, r1) }
}

/// Computes the factors of mixed radix: digit v_j is `(x_j - sum_(i < j) v_i p_0 .. p_(i-1)) / (p_0 .. p_(j-1))` modulo p_j.
fn mixed_radix(moduli: &[Modulus]) -> MixedRadix {
    let mut radix = MixedRadix::default();
    for (j, &modulus) in moduli.iter().enumerate() {
        let mut weight = 1;
        let mut weights = Vec::with_capacity(j);
        for p in &moduli[..j] {
            weights.push(weight);
            weight = modulus.mul(weight, modulus.reduce(u64::from(p.value())));
        }
        let inverse = modulus.inverse(weight);
        for (factor, weight) in radix.factors[j].iter_mut().zip(weights) {
            *factor = montgomery_form(modulus, modulus.neg(modulus.mul(weight, inverse)));
        }
        radix.factors[j][j] = montgomery_form(modulus, inverse);
        radix.inverse[j] = inverse_of_odd(u64::from(modulus.value()));
    }
    radix
}
