//! What all parameter sets have in common.

use std::fmt::Debug;

use super::{
    COLUMN_PRESETS, ColumnParams, LatticeProblem, LweParams, PACK_PRESETS, PRESETS, PRIVKS_PRESETS,
    PackParams, PrivksParams, RING_PRESETS, RingParams, TFHE_PRESETS, TfheParams, unknown_preset,
};
use crate::HeError;

/// A parameter set. There is no way to make one but to take a preset, so a set that a peer names is always one that this program
/// knows.
pub trait ParameterSet: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// Every preset of this kind.
    fn presets() -> &'static [Self];

    /// Name of the preset.
    fn name(&self) -> &'static str;

    /// Security in bits (lattice-estimator, MATZOV; see SECURITY.md).
    fn security_bits(&self) -> f64;

    /// The lattice problems that its security rests on: it has that of the weakest. None without encryption.
    fn problems(&self) -> Vec<LatticeProblem>;

    /// The preset called `name`.
    ///
    /// # Errors
    /// [`HeError::UnknownPreset`] with the names that exist.
    fn named(name: &str) -> Result<Self, HeError> {
        let preset = Self::presets().iter().find(|preset| preset.name() == name);
        preset.copied().ok_or_else(|| unknown_preset(name))
    }
}

impl ParameterSet for LweParams {
    fn presets() -> &'static [Self] {
        &PRESETS
    }

    fn name(&self) -> &'static str {
        LweParams::name(self)
    }

    fn security_bits(&self) -> f64 {
        LweParams::security_bits(self)
    }

    fn problems(&self) -> Vec<LatticeProblem> {
        self.problem().into_iter().collect()
    }
}

impl ParameterSet for RingParams {
    fn presets() -> &'static [Self] {
        &RING_PRESETS
    }

    fn name(&self) -> &'static str {
        RingParams::name(self)
    }

    fn security_bits(&self) -> f64 {
        RingParams::security_bits(self)
    }

    fn problems(&self) -> Vec<LatticeProblem> {
        RingParams::problems(self)
    }
}

impl ParameterSet for TfheParams {
    fn presets() -> &'static [Self] {
        &TFHE_PRESETS
    }

    fn name(&self) -> &'static str {
        self.ring().name()
    }

    fn security_bits(&self) -> f64 {
        self.ring().security_bits()
    }

    fn problems(&self) -> Vec<LatticeProblem> {
        self.ring().problems()
    }
}

impl ParameterSet for PrivksParams {
    fn presets() -> &'static [Self] {
        &PRIVKS_PRESETS
    }

    fn name(&self) -> &'static str {
        self.ring().name()
    }

    fn security_bits(&self) -> f64 {
        self.ring().security_bits()
    }

    fn problems(&self) -> Vec<LatticeProblem> {
        self.ring().problems()
    }
}

impl ParameterSet for PackParams {
    fn presets() -> &'static [Self] {
        &PACK_PRESETS
    }

    fn name(&self) -> &'static str {
        PackParams::name(self)
    }

    fn security_bits(&self) -> f64 {
        PackParams::security_bits(self)
    }

    fn problems(&self) -> Vec<LatticeProblem> {
        self.lwe().problem().into_iter().chain(self.ring().problem()).collect()
    }
}

impl ParameterSet for ColumnParams {
    fn presets() -> &'static [Self] {
        &COLUMN_PRESETS
    }

    fn name(&self) -> &'static str {
        ColumnParams::name(self)
    }

    fn security_bits(&self) -> f64 {
        ColumnParams::security_bits(self)
    }

    fn problems(&self) -> Vec<LatticeProblem> {
        self.lwe().problem().into_iter().chain(self.ring().problem()).collect()
    }
}
