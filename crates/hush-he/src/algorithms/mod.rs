//! The verbs of the scheme, one a file.

mod decrypt_lwe;
mod encrypt_lwe;
mod ring_mask;

pub use decrypt_lwe::{decrypt_byte, phase};
pub use encrypt_lwe::encrypt_lwe;
