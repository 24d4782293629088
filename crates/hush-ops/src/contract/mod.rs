//! The steps of the protocols. A backend implements whole steps; a protocol calls nothing else.
//!
//! A step that can reject its operands is two methods. The one with the step's name is provided: it checks the operands, in the
//! same way for all backends, by the step's file ([`crate::steps`]). Then it calls the method that a backend implements, named
//! `run_` and the step, which may rely on the checks and receives the counts that they computed. Its errors are those that no shape
//! shows: a limit of the backend (an [`OpsError::Shape`](crate::OpsError::Shape) too), a failing device, or unsuitable data.
//! Only backends call `run_` methods. If a check needs to know something of an opaque operand, a small method of the trait returns
//! it, like [`LweOps::tiling`] and [`RingOps::context`].
//!
//! Operands whose shapes differ from those of a step's table are rejected with [`OpsError::Shape`](crate::OpsError::Shape). A
//! backend that cannot allocate memory, or whose device fails, returns [`OpsError::Backend`](crate::OpsError::Backend).
//!
//! The implementation below each trait defines its steps ([`ByDefinition`](crate::reference::ByDefinition)).

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

/// All steps: implemented by a backend that can run every protocol.
pub trait Steps: PackOps + ColumnOps + TfheOps {}

impl<B: PackOps + ColumnOps + TfheOps> Steps for B {}
