//! The tables of one parameter set at one level.

use std::sync::Arc;

use hush_he::params::RingContext;
use hush_math::{gadget::Gadget, ring::Ring};

use super::{
    automorphism::Automorphism, digits::Decomposer, drop_prime::DropPrime, gadget_rows, mod_ring::ModRing,
};
use crate::Level;

/// A parameter set with its tables: the ring of the CPU backend.
pub struct CpuRing {
    context: Arc<RingContext>,
    /// R modulo Q_e.
    pub(super) full: ModRing,
    /// R modulo Q_1.
    pub(super) kept: ModRing,
    /// The levels of the expansion, the first one first.
    pub(super) levels: Vec<ExpandLevel>,
    pub(super) square: GadgetTables,
    pub(super) fold: GadgetTables,
    pub(super) pack: GadgetTables,
    /// `None` if no prime is dropped.
    pub(super) drop: Option<DropPrime>,
}

/// What one gadget needs of one ring.
pub(super) struct GadgetTables {
    pub(super) digits: usize,
    pub(super) decomposer: Decomposer,
    /// [`gadget_rows::digit_offset`].
    pub(super) offset: Vec<u32>,
}

impl GadgetTables {
    fn new(ring: &ModRing, base: &Ring, gadget: Gadget) -> Self {
        Self {
            digits: gadget.digits,
            decomposer: Decomposer::new(base.rns(), gadget),
            offset: gadget_rows::digit_offset(ring, gadget.width),
        }
    }
}

/// A level of the expansion tree.
pub(super) struct ExpandLevel {
    pub(super) gadget: GadgetTables,
    pub(super) automorphism: Automorphism,
    /// X^(-2^level) in evaluation form and Montgomery form, modulo Q_e.
    pub(super) monomial: Vec<u32>,
}

impl ExpandLevel {
    fn new(ring: &ModRing, context: &RingContext, level: usize) -> Self {
        let params = context.params();
        let degree = ring.degree();
        let mut monomial = Vec::with_capacity(ring.words());
        for limb in ring.limbs() {
            // X^(-2^level) = -X^(N - 2^level)
            let mut values = vec![0; degree];
            values[degree - (1 << level)] = limb.montgomery.p() - 1;
            limb.ntt.plan().forward(&mut values);
            monomial.extend(values.into_iter().map(|value| limb.montgomery.form(value)));
        }
        Self {
            gadget: GadgetTables::new(ring, context.full(), params.levels()[level]),
            automorphism: Automorphism::new(ring.level(), degree, params.level_exponent(level)),
            monomial,
        }
    }
}

impl CpuRing {
    pub(super) fn new(level: Level, context: Arc<RingContext>) -> Self {
        let params = context.params();
        let full = ModRing::new(level, context.full());
        let kept = full.first_limbs(context.kept().limbs());
        let kept_gadget = |gadget| GadgetTables::new(&kept, context.kept(), gadget);
        Self {
            levels: (0..params.levels().len()).map(|j| ExpandLevel::new(&full, &context, j)).collect(),
            square: GadgetTables::new(&full, context.full(), params.square_gadget()),
            fold: kept_gadget(params.fold_gadget()),
            pack: kept_gadget(params.pack_gadget()),
            drop: (params.dropped_factor() > 1).then(|| DropPrime::new(&full, &kept)),
            kept,
            full,
            context,
        }
    }

    pub(super) fn context(&self) -> &RingContext {
        &self.context
    }
}
