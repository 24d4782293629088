//! Databases of tables over rings, on the device.
//!
//! [`ntt_tiles`]: databases in evaluation form. [`symbols`]: databases of symbols, which a fold transforms.

pub(super) mod ntt_tiles;
pub(super) mod symbols;
