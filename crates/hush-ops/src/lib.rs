//! The contract between protocols and backends: the steps, their shapes, and a slow backend.
//!
//! * [`contract`]: the traits, one method a step.
//! * [`steps`]: all else that there is to a step, a file each: its shape, what it refuses, its work, its definition.
//! * [`symbol`]: bytes and words, of which the slots of a key filter are made.
//! * [`path`]: the steps of a protocol as data, and what memory they take.
//! * [`tiling`]: the one layout of a byte database that every backend reads.
//! * [`ntt_tiling`], [`symbol_tiling`]: the layouts of a database of ring elements, in evaluation form and as symbols.
//! * [`mod@reference`]: slow and obvious: the oracle that fast backends equal bit for bit.

pub mod contract;
mod error;
pub mod ntt_tiling;
pub mod pack_shape;
pub mod path;
pub mod reference;
pub mod steps;
pub mod symbol;
pub mod symbol_tiling;
pub mod tiling;

pub use error::OpsError;
