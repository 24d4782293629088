//! What the steps refuse: one place, so that all backends refuse alike.
//!
//! There is a file for each trait of the [contract](crate::contract), and a function for each step, which the step's provided
//! method calls before a backend sees the operands. All of them give [`OpsError::Shape`](crate::OpsError::Shape). Those that are
//! public are for code that has words or databases before there is a step.

pub(crate) mod column;
pub(crate) mod filter;
pub(crate) mod lwe;
pub(crate) mod memory;
pub(crate) mod pack;
pub(crate) mod ring;
pub(crate) mod tfhe;

pub use column::residues;
pub use ring::{open_ntt_db, rlwe_fold_words};
