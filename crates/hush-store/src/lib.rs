//! Tables on disk: tiled databases and snapshot files.
//!
//! * [`tiles`]: writes slots into a tiled database, from many threads. [`ntt_tiles`]: does so for polynomials.
//! * [`snapshot`]: reads and writes the files of a table. `README.md` of this crate describes every field.
//! * [`durable`]: makes the names of files survive a loss of power. [`whole_file`]: replaces short files.
//! * [`cancel`]: cancels a build.

pub mod cancel;
pub mod durable;
pub mod ntt_tiles;
pub mod snapshot;
pub mod tiles;
pub mod whole_file;
