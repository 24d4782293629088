//! The tables of one parameter set at one level.

use std::sync::Arc;

use hush_he::params::RingContext;
use hush_math::{gadget::Gadget, ring::Ring};

use super::{
    automorphism::Automorphism, drop_prime::DropPrime, gadget::digits::Decomposer, mod_ring::ModRing,
    monomial::Monomial,
};
use crate::{Level, kernels::end_stream};

/// A parameter set with its tables: the ring of the CPU backend.
pub struct CpuRing {
    context: Arc<RingContext>,
    /// The ring R modulo Q_e.
    pub(crate) full: ModRing,
    /// The ring R modulo Q_1.
    pub(crate) kept: ModRing,
    /// The levels of the expansion, the first one first.
    pub(super) levels: Vec<ExpandLevel>,
    pub(super) square: GadgetTables,
    pub(crate) fold: GadgetTables,
    /// The gadget that packs pairs; `None` if pairs are not packed.
    pub(super) pack: Option<GadgetTables>,
    /// The constants for dropping P; `None` if no prime is dropped.
    pub(super) drop: Option<DropPrime>,
}

/// The tables of one gadget for one ring.
pub(crate) struct GadgetTables {
    pub(super) digits: usize,
    pub(crate) decomposer: Decomposer,
    /// The value 2^(w-1), by which digits of w bits are too large.
    pub(crate) half: u32,
}

impl GadgetTables {
    /// # Panics
    /// If digits are not residues modulo every prime.
    fn new(base: &Ring, gadget: Gadget) -> Self {
        assert!(base.moduli().iter().all(|p| 1 << gadget.width <= p.value()));
        Self {
            digits: gadget.digits,
            decomposer: Decomposer::new(base.rns(), gadget),
            half: (1 << gadget.width) / 2,
        }
    }
}

/// A level of the expansion tree.
pub(super) struct ExpandLevel {
    pub(super) gadget: GadgetTables,
    pub(super) automorphism: Automorphism,
    /// The monomial X^(-2^level) modulo Q_e.
    pub(super) monomial: Monomial,
}

impl ExpandLevel {
    fn new(ring: &ModRing, context: &RingContext, level: usize) -> Self {
        let params = context.params();
        Self {
            gadget: GadgetTables::new(context.full(), params.levels()[level]),
            automorphism: Automorphism::new(ring.level(), ring.degree(), params.level_exponent(level)),
            monomial: Monomial::new(ring, level),
        }
    }
}

impl CpuRing {
    pub(super) fn new(level: Level, context: Arc<RingContext>) -> Self {
        let params = context.params();
        let full = ModRing::new(level, context.full());
        let kept = full.first_limbs(context.kept().limbs());
        let kept_gadget = |gadget| GadgetTables::new(context.kept(), gadget);
        Self {
            levels: (0..params.levels().len()).map(|j| ExpandLevel::new(&full, &context, j)).collect(),
            square: GadgetTables::new(context.full(), params.square_gadget()),
            fold: kept_gadget(params.fold_gadget()),
            pack: params.packs_pairs().then(|| kept_gadget(params.pack_gadget())),
            drop: (params.dropped_factor() > 1).then(|| DropPrime::new(&full, &kept)),
            kept,
            full,
            context,
        }
    }

    /// Takes a polynomial modulo Q_e to modulo Q_1: drops the prime P, if there is one. `scratch` has 2 N words.
    pub(crate) fn drop_to_kept(
        &self,
        from: &[u32],
        to: &mut [u32],
        scratch: &mut [u32],
        transform: &mut [u64],
    ) {
        match &self.drop {
            None => to.copy_from_slice(from),
            Some(drop) => {
                let (rest, centred) = scratch.split_at_mut(self.full.degree());
                drop.apply(&self.full, from, to, [rest, centred], transform);
                // Dropping a prime stores past the caches.
                end_stream();
            }
        }
    }

    pub(crate) fn context(&self) -> &Arc<RingContext> {
        &self.context
    }
}
