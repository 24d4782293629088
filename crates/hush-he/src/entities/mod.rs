//! The nouns of the scheme, one a file.

mod column_keys;
mod column_masks;
mod evaluation_keys;
mod lwe_secret;
mod one_time_ring_secret;
mod public_matrix;
mod public_seed;
mod ring_secrets;
mod rlwe_ciphertext;
mod rlwe_secret;
mod tlwe_words;

pub use column_keys::ColumnKeys;
pub use column_masks::ColumnMasks;
pub use evaluation_keys::{EvaluationKeys, RingSwitchKey};
pub use lwe_secret::{LweDecryptionKey, OneTimeLweSecret};
pub use one_time_ring_secret::{OneTimeRingSecret, RingDecryptionKey};
pub use public_matrix::{MatrixDomain, MatrixShape, MatrixStructure, PublicMatrix};
pub use public_seed::PublicSeed;
pub use ring_secrets::RingSecrets;
pub use rlwe_ciphertext::{KeySwitchKey, RgswCiphertext, RlweCiphertext, RlwePair};
pub use rlwe_secret::RlweSecret;
pub use tlwe_words::TlweWords;
