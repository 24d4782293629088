//! Tables on disk: reading the input, laying slots out, snapshot files.
//!
//! * `ingest` (a feature): rows of a file become records, kept in a spool for the several passes of a build.
//! * [`tiles`]: slots into a tiled database, from many threads; [`ntt_tiles`]: polynomials into one of ring elements.
//! * `remote` (of the same feature): object stores and web servers.
//! * [`snapshot`]: the files of a table; `README.md` of this crate has every field.
//! * [`key_list`]: lists of keys, a key a line.
//! * [`cancel`]: giving a build up.

pub mod cancel;
#[cfg(feature = "ingest")]
pub mod ingest;
pub mod key_list;
pub mod ntt_tiles;
#[cfg(feature = "ingest")]
pub mod remote;
pub mod snapshot;
pub mod tiles;
