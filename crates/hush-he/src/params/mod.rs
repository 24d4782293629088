//! Parameter sets, with their security and their noise.

mod lwe;
pub mod noise;
mod presets;
mod widths;

pub use lwe::{ErrorDistribution, LweParams, MESSAGE_BITS, SecretDistribution};
pub use presets::{
    DEFAULT_LWE, FRODOPIR_N1774_TERNARY, INSECURE_PLAIN, LWE_N1280_STD3_2_PLAIN, PRESETS,
    SIMPLEPIR_N1024_STD6_4_SEC121, preset, preset_names,
};
pub use widths::{Traffic, Widths};
