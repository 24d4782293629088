//! The steps that protocols are made of. A backend implements whole steps; a protocol calls nothing else.
//!
//! A step that can refuse its operands is two methods. The method with the step's name is provided: it checks the operands, once
//! and alike for all backends, by the step's file ([`crate::steps`]), and calls the method that a backend implements, named
//! `run_` and the step. That one may rely on the checks, and gets what they counted. Its errors are those that no shape shows: a
//! limit of the backend ([`OpsError::Shape`](crate::OpsError::Shape) too), a device that fails, or what the data turns out to be.
//! Only backends call `run_` methods. What a check has to know of an operand that is opaque here, a small method of the trait
//! says, like [`LweOps::tiling`] and [`RingOps::context`].
//!
//! Operands that have not the shapes of a step's table are refused with [`OpsError::Shape`](crate::OpsError::Shape). A backend that
//! has no room for something, or whose device fails, returns [`OpsError::Backend`](crate::OpsError::Backend).
//!
//! Beneath each trait stands what its steps are by definition ([`ByDefinition`](crate::reference::ByDefinition)).

mod batch_words;
mod column;
mod filter;
mod lwe;
mod memory;
mod pack;
mod ring;
mod sent;
mod tfhe;

pub use batch_words::{BatchWords, LentWords};
pub use column::{
    BALANCED_HALVES, ChainPolys, ChainedHint, ColumnOps, PACK_BYTES, PowerKeys, key_words, lift_words,
};
pub use filter::{BandSystem, FilterOps};
pub use lwe::{LweBatch, LweOps, LweQueries};
pub use memory::{HostMemory, Memory, WordCopy, WordRange, WordStore};
pub use pack::{PackOps, switched_bytes};
pub use ring::{EntryOrder, Expanded, RLWE_POLYS, RingOps, RlweBatch, ciphertext_words, poly_words};
pub use sent::{Rounding, SentPoly, SentRows, pack_polys, round_word_up};
pub use tfhe::TfheOps;

/// All steps: what a backend of every protocol has.
pub trait Steps: PackOps + ColumnOps + TfheOps {}

impl<B: PackOps + ColumnOps + TfheOps> Steps for B {}
