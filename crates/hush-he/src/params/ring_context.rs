//! An RLWE set with its two rings, built once.

use hush_math::ring::Ring;

use super::RingParams;

/// A parameter set, R modulo Q_e (expansion) and R modulo Q_1 (everything after the drop).
#[derive(Clone, Debug)]
pub struct RingContext {
    params: RingParams,
    full: Ring,
    kept: Ring,
}

impl RingContext {
    /// The rings of `params`.
    pub fn new(params: RingParams) -> Self {
        Self { params, full: params.full_ring(), kept: params.kept_ring() }
    }

    /// The parameters.
    pub fn params(&self) -> &RingParams {
        &self.params
    }

    /// R modulo Q_e.
    pub fn full(&self) -> &Ring {
        &self.full
    }

    /// R modulo Q_1: the first limbs of [`RingContext::full`].
    pub fn kept(&self) -> &Ring {
        &self.kept
    }

    /// Delta = floor(Q_1 / t): what a plaintext symbol is scaled by. Source: VIPIR appendix A.2.
    pub fn delta(&self) -> u128 {
        self.kept.rns().product() >> self.params.plaintext_bits()
    }
}
