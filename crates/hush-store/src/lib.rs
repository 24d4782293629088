//! Tables on disk: laying slots out, snapshot files.
//!
//! * [`tiles`]: slots into a tiled database, from many threads; [`ntt_tiles`]: polynomials into one of ring elements.
//! * [`snapshot`]: the files of a table; `README.md` of this crate has every field.
//! * [`cancel`]: giving a build up.

pub mod cancel;
pub mod ntt_tiles;
pub mod snapshot;
pub mod tiles;
