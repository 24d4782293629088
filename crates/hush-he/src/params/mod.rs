//! Parameter sets, with their security and their noise. `ring/` has what all sets over rings share.

mod column;
mod distributions;
mod lwe;
pub mod noise;
mod pack;
mod presets;
mod problem;
mod ring;
mod set;
mod tfhe;
mod tlwe;

/// The security in bits that every default set has at least.
pub const MIN_SECURITY_BITS: f64 = 128.0;

pub use column::{
    COLPACK_N2048_Q52, COLUMN_PRESETS, ColumnNoise, ColumnParams, INSECURE_COLPACK_N256,
    INSECURE_COLPACK_PLAIN,
};
pub use distributions::{ErrorDistribution, SecretDistribution};
pub use lwe::{LweParams, MESSAGE_BITS};
pub use noise::{LweNoise, MAX_LOG2_FAILURE, Traffic, Widths};
pub use pack::{
    INSECURE_PACK_N256, INSECURE_PACK_PLAIN, PACK_M31, PACK_PRESETS, PackNoise, PackParams, VIPIR_N4096_3X29,
};
pub use presets::{
    DEFAULT_LWE, FRODOPIR_N1774_TERNARY, INSECURE_LWE_N64, INSECURE_PLAIN, LWE_N1280_STD3_2_PLAIN, PRESETS,
    SIMPLEPIR_N1024_STD6_4_SEC121,
};
pub use problem::LatticeProblem;
pub use ring::{
    QUERY_SEED_BYTES, RING_SEED_BYTES, RLWE_ERROR_STD, ResponseBits, RingParams,
    context::RingContext,
    noise::{RingNoise, RingNoiseInputs},
    presets::{
        INSECURE_RING_N256, INSECURE_RING_PLAIN, ONION_M31, ONION_S, ONIONPIRV2_N2048_2X30_SEC113,
        ONIONPIRV2_N4096_4X27_SEC126, RING_PRESETS,
    },
    switch::RingSwitch,
};
pub use set::{ParameterSet, unknown_preset};
pub use tfhe::{
    INSECURE_PPIR_N256, INSECURE_PRIVKS_N256, INSECURE_PRIVKS_PLAIN, INSECURE_TFHE_N256, INSECURE_TFHE_PLAIN,
    PPIR_N1024_SEC110, PRIVKS_PRESETS, PrivksParams, TFHE_COMPACT, TFHE_FAST, TFHE_PRESETS, TFHE_PRIVKS,
    TFHE_TINY, TfheParams,
};
pub use tlwe::Tlwe;
