//! The contract between protocols and backends: the steps, their shapes, and a slow backend.
//!
//! * [`contract`]: the traits, with one method for each step.
//! * [`steps`]: the rest of each step, in one file: its shape, the inputs that it rejects, its work, its definition.
//! * [`symbol`]: bytes and words, the elements of a key filter's slots.
//! * [`path`]: the steps of a protocol as data, and the memory that they need.
//! * [`tiling`]: the layout of a byte database that every backend reads.
//! * [`ntt_tiling`], [`symbol_tiling`]: the layouts of a database of ring elements, in evaluation form and as symbols.
//! * [`mod@reference`]: the slow and obvious backend, which fast backends must equal bit for bit.

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
