//! The nouns of the scheme, one a file.

mod lwe_secret;
mod public_matrix;

pub use lwe_secret::{LweDecryptionKey, OneTimeLweSecret};
pub use public_matrix::{MatrixDomain, MatrixStructure, PublicMatrix};
