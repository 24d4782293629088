//! Databases of tables over rings, on the device.
//!
//! [`ntt_tiles`]: databases in evaluation form. [`symbols`]: databases of symbols, which are transformed as they are folded.

pub(super) mod ntt_tiles;
pub(super) mod symbols;
