//! The arithmetic that the schemes use: the CSPRNG, samplers, modular arithmetic, the negacyclic NTT, and the rings
//! Z_Q\[X\]/(X^N + 1) over several primes with their gadgets.
//!
//! Everything here is scalar, portable and free of I/O, so that it also runs in a browser (WebAssembly).

pub mod constant_time;
pub mod csprng;
pub mod gadget;
pub mod modulus;
pub mod ntt;
pub mod orbits;
pub mod poly;
pub mod ring;
pub mod rns;
pub mod samplers;
