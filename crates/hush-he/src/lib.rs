//! LWE entities (one noun a file), algorithms (one verb a file) and parameters (checked, with noise and security).
//!
//! * `entities/`, `algorithms/`: LWE, RLWE and RGSW. `params/`: presets, noise and widths. `codec`: packed words.
//! * `examples/search_ring/` searches sets of primes for rings.

pub mod algorithms;
pub mod codec;
pub mod entities;
mod error;
pub mod params;

pub use error::HeError;
