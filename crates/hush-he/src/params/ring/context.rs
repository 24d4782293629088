//! An RLWE set with its rings, built once.

use hush_math::ring::Ring;

use crate::params::RingParams;

/// A parameter set, R modulo Q_e (expansion), R modulo Q_1 (everything after the drop), and the small ring of short answers.
#[derive(Clone, Debug)]
pub struct RingContext {
    params: RingParams,
    full: Ring,
    kept: Ring,
    switched: Option<Ring>,
}

impl RingContext {
    /// Creates the rings of `params`.
    pub fn new(params: RingParams) -> Self {
        let switched = params.switch().map(|switch| switch.ring());
        Self { params, full: params.full_ring(), kept: params.kept_ring(), switched }
    }

    /// Returns the parameters.
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

    /// Returns the ring that answers of short records are switched to, modulo Q_s; `None` if there is none.
    pub fn switched(&self) -> Option<&Ring> {
        self.switched.as_ref()
    }

    /// Delta = floor(Q_1 / t): what a plaintext symbol is scaled by. Source: VIPIR appendix A.2.
    pub fn delta(&self) -> u128 {
        self.kept.rns().product() >> self.params.plaintext_bits()
    }
}
