//! The files that derive from a hint. They are computed in pieces, by devices of this process or by a crew elsewhere.

pub(super) mod chained;
pub(super) mod computers;
pub(super) mod crew;
pub(super) mod download;
pub(super) mod hint;
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(super) mod hint_memory;
pub(super) mod lifted;
pub(super) mod pack_noise;
pub(super) mod pieces;
pub(super) mod plaintext_files;
pub(super) mod product;
pub(super) mod task;
pub(super) mod words;
pub(super) mod work;
