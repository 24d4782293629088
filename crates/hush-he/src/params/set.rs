//! The trait of all parameter sets.

use std::fmt::Debug;

use super::{
    COLUMN_PRESETS, ColumnParams, LatticeProblem, LweParams, PACK_PRESETS, PRESETS, PRIVKS_PRESETS,
    PackParams, PrivksParams, RING_PRESETS, RingParams, TFHE_PRESETS, TfheParams,
};
use crate::HeError;

/// A parameter set. The only way to obtain one is to take a preset, so a set that a peer names is always one that this
/// program knows.
pub trait ParameterSet: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// Returns every preset of this kind.
    fn presets() -> &'static [Self];

    /// Returns the name of the preset.
    fn name(&self) -> &'static str;

    /// Returns the security in bits (lattice-estimator, MATZOV; see SECURITY.md).
    fn security_bits(&self) -> f64;

    /// Returns the lattice problems behind the set's security, which is that of the weakest. Empty without encryption.
    fn problems(&self) -> Vec<LatticeProblem>;

    /// Returns the preset called `name`.
    ///
    /// # Errors
    /// [`HeError::UnknownPreset`], which lists the names that exist.
    fn named(name: &str) -> Result<Self, HeError> {
        let preset = Self::presets().iter().find(|preset| preset.name() == name);
        preset.copied().ok_or_else(|| unknown_preset(name))
    }
}

/// Implements [`ParameterSet`] for a set whose name and security are its own or those of its ring set.
macro_rules! parameter_set {
    ($kind:ty, $presets:ident, $set:ident => $named:expr, $problems:expr) => {
        impl ParameterSet for $kind {
            fn presets() -> &'static [Self] {
                &$presets
            }

            fn name(&self) -> &'static str {
                let $set = self;
                $named.name()
            }

            fn security_bits(&self) -> f64 {
                let $set = self;
                $named.security_bits()
            }

            fn problems(&self) -> Vec<LatticeProblem> {
                let $set = self;
                $problems
            }
        }
    };
}

parameter_set!(LweParams, PRESETS, set => set, set.problem().into_iter().collect());
parameter_set!(RingParams, RING_PRESETS, set => set, set.problems());
parameter_set!(TfheParams, TFHE_PRESETS, set => set.ring(), set.ring().problems());
parameter_set!(PrivksParams, PRIVKS_PRESETS, set => set.ring(), set.ring().problems());
parameter_set!(PackParams, PACK_PRESETS, set => set, of_both(set.lwe(), set.ring()));
parameter_set!(ColumnParams, COLUMN_PRESETS, set => set, of_both(set.lwe(), set.ring()));

/// Returns the lattice problems of an LWE set and an RLWE set together.
fn of_both(lwe: &LweParams, ring: &RingParams) -> Vec<LatticeProblem> {
    lwe.problem().into_iter().chain(ring.problem()).collect()
}

/// Creates the error for an unknown name. It lists the presets except the insecure ones.
pub fn unknown_preset(name: &str) -> HeError {
    let names = PRESETS.iter().map(|p| p.name);
    let names = names.chain(RING_PRESETS.iter().map(RingParams::name));
    let names = names.chain(PACK_PRESETS.iter().map(PackParams::name));
    let names = names.chain(COLUMN_PRESETS.iter().map(ColumnParams::name));
    let known = names.filter(|name| !name.starts_with("INSECURE")).collect::<Vec<_>>().join(", ");
    HeError::UnknownPreset { name: name.to_owned(), known }
}
