//! Structures that kernels take by value.

use hush_math::{ring::Ring, rns::Rns};
use hush_ops::contract::BALANCED_HALVES;
use zerocopy::{Immutable, IntoBytes};

use crate::ring::{MAX_LIMBS, montgomery_form};

/// The struct `FractionLift` of `kernels/lift_fraction.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
pub(super) struct FractionLift {
    product: u32,
    factor: [u32; MAX_LIMBS],
    half: [u32; MAX_LIMBS],
}

const _: () = assert!(size_of::<FractionLift>() == 36);

impl FractionLift {
    /// Creates the lift of words b to `round(b Q / 2^32) / divisor`. The divisor must not be a multiple of a prime of Q.
    pub(super) fn new(rns: &Rns, divisor: usize) -> Self {
        let mut lift = Self { product: rns.product() as u32, factor: [0; MAX_LIMBS], half: [0; MAX_LIMBS] };
        for (limb, p) in rns.moduli().iter().enumerate() {
            let factor = p.inverse(p.reduce(divisor as u64));
            // 2^31 / 2^32
            let half = p.inverse(2);
            (lift.factor[limb], lift.half[limb]) = (factor, p.mul(half, factor));
        }
        lift
    }
}

/// The struct `EntryJoin` of `kernels/chain_matrix.cu`.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
pub(super) struct EntryJoin {
    factor: u32,
    halves: u32,
    next: u32,
    minus: u32,
    constant: u32,
}

const _: () = assert!(size_of::<EntryJoin>() == 20);

impl EntryJoin {
    /// Creates the conversion for residues of entries divided by N, the degree of `ring`, which has two primes.
    pub(super) fn new(ring: &Ring) -> Self {
        let p0 = ring.moduli()[0];
        let p1 = ring.moduli()[1];
        let factor = ring.degree() as u64;
        let halves = u64::from(BALANCED_HALVES);
        let inverse = p1.inverse(p1.reduce(u64::from(p0.value())));
        let second = |value: u32| montgomery_form(p1, p1.mul(value, inverse));
        Self {
            factor: montgomery_form(p0, p0.reduce(factor)),
            halves: p0.reduce(halves),
            next: second(p1.reduce(factor)),
            minus: second(p1.neg(1)),
            constant: second(p1.reduce(halves)),
        }
    }
}
