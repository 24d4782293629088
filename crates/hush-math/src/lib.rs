//! Arithmetic that the schemes rest on: the CSPRNG, samplers, modular arithmetic and the negacyclic NTT.
//!
//! Everything here is scalar, portable and free of I/O, so that it also runs in a browser (WebAssembly).

pub mod csprng;
pub mod modulus;
pub mod ntt;
pub mod samplers;
