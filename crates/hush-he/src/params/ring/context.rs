//! An RLWE set with its rings, built once.

use hush_math::ring::Ring;

use crate::params::RingParams;

/// An RLWE set with R modulo Q_e (expansion), R modulo Q_1 (everything after the drop), and the small ring of short answers.
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

    /// Returns R modulo Q_e.
    pub fn full(&self) -> &Ring {
        &self.full
    }

    /// Returns R modulo Q_1, whose limbs are the first ones of [`RingContext::full`].
    pub fn kept(&self) -> &Ring {
        &self.kept
    }

    /// Returns the small ring modulo Q_s to which answers of short records are switched; `None` if the set has none.
    pub fn switched(&self) -> Option<&Ring> {
        self.switched.as_ref()
    }

    /// Returns Delta = floor(Q_1 / t), the factor that scales a plaintext symbol. Source: VIPIR appendix A.2.
    pub fn delta(&self) -> u128 {
        self.kept.rns().product() >> self.params.plaintext_bits()
    }
}
