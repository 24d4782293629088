//! The steps, one in each file: the shape of the operands, the inputs that it rejects, its work, its definition on the host, and
//! operands for timing it. The methods that run the steps are in the [contract](crate::contract).
//!
//! The registry at the end is the only list of steps. A step that is in no path (it belongs to builds) has a file but no entry. The
//! folder is flat with more than fifteen files, because a step is found by its name. Imports that the files share are here.

use std::ops::{Deref, Range};

use hush_he::{
    algorithms::{
        decompose, drop_primes, encrypt_ring_query, encrypt_tlwe_query, external_product, key_switch,
        open_ring_query, open_tlwe_query, private_key_switch, substitute, switch_to_power_of_two,
    },
    entities::{
        EvaluationKeys, MatrixShape, PublicMatrix, PublicSeed, RgswCiphertext, RlweCiphertext, TlweWords,
    },
    params::{RingContext, RingParams},
};
use hush_math::{
    csprng::Csprng,
    modulus::Modulus,
    poly::{Coeff, Eval, Poly},
    ring::Ring,
};

use crate::{
    OpsError,
    contract::{
        BatchWords, ChainPolys, EntryOrder, Expanded, LweBatch, LweQueries, PACK_BYTES, PowerKeys,
        RLWE_POLYS, RlweBatch, Rounding, SentPoly, SentRows, Steps, WordStore, ciphertext_words, lift_words,
        pack_polys, poly_words, round_word_up,
    },
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
    reference::ciphertexts::{add, batch, ciphertext, sub},
    symbol_tiling::{SymbolDb, SymbolTiling},
    tiling::{GROUP_ROWS, TiledDb, Tiling},
};

pub(crate) mod add_rlwe;
pub(crate) mod band_solve;
pub mod chain_hint;
pub mod expand;
pub(crate) mod lift_hint;
pub(crate) mod lwe_fold;
pub(crate) mod lwe_hint;
pub(crate) mod mod_switch;
pub(crate) mod ntt_db;
pub(crate) mod pack;
pub(crate) mod pack_columns;
pub(crate) mod pack_pairs;
pub(crate) mod private_key_switch;
pub(crate) mod reinterpret_lwe;
pub(crate) mod reinterpret_rlwe;
pub(crate) mod respond;
pub(crate) mod rgsw_fold;
pub(crate) mod rgsw_power_fold;
pub(crate) mod ring_switch;
pub mod rlwe_fold;
pub(crate) mod rotate;
pub mod sample;
pub(crate) mod send_words;
pub(crate) mod symbol_fold;
mod work;

use mod_switch::switched;
use pack_columns::check_rows;
use rgsw_fold::check_bits;
use sample::{Made, Maker, random_queries, random_words, residues};
pub use work::{Work, poly_bytes};
use work::{ciphertext_bytes, external_products, fold, selected, switch_transforms, switches};

/// The properties of a step that follow from its shape.
pub trait StepKind {
    /// Returns whether the step opens queries. It then runs once for a query, however many segments the query asks.
    fn opens_queries(&self) -> bool {
        false
    }

    /// Returns whether a batch reads a database once, so that a query costs less in a larger batch.
    fn scans(&self) -> bool {
        false
    }

    /// Returns the work of the step for `batch` queries.
    fn work(&self, batch: usize) -> Work;

    /// Creates the step with operands of its shape.
    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b>
    where
        Self: Sized;
}

/// The memory that a backend needs for a step: upper bounds, stated beside the code that allocates.
pub trait StepFootprint<S> {
    /// The largest number of queries in one pass of the step, if the step limits it.
    const LARGEST_BATCH: usize = usize::MAX;

    /// Returns the bytes that a step allocates for `batch` queries, results included: at least what the backend allocates.
    /// Databases and keys, which are in memory anyway, are not counted.
    fn footprint(step: &S, batch: usize) -> usize;
}

/// States the memory that a backend needs for a step: `footprint!(Cpu: SendWords, |step, batch| 2 * batch * step.bytes);`.
/// `up to QUERIES,` before the closure limits the queries in one pass.
#[macro_export]
macro_rules! footprint {
    ($Backend:ident: $Step:ident, $(up to $most:expr,)? |$step:pat_param, $batch:pat_param| $bytes:expr) => {
        impl $crate::steps::StepFootprint<$crate::steps::$Step> for $Backend {
            $(const LARGEST_BATCH: usize = $most;)?

            fn footprint($step: &$crate::steps::$Step, $batch: usize) -> usize {
                $bytes
            }
        }
    };
}

/// Declares the shapes of all steps, and forwards the methods of a shape to its step. A shape with an RLWE set names that field.
macro_rules! registry {
    ($($module:ident: $($Step:ident $(($ring:ident))?),+;)+) => {
        $($(pub use $module::$Step;)+)+

        /// A step of the contract with the shapes of its operands, for one query; a batch has as many of each.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each is the step of its name")]
        pub enum StepShape { $($($Step($Step),)+)+ }

        $($(impl From<$Step> for StepShape {
            fn from(step: $Step) -> Self {
                Self::$Step(step)
            }
        })+)+

        impl Deref for StepShape {
            type Target = dyn StepKind;

            fn deref(&self) -> &Self::Target {
                match self { $($(Self::$Step(step) => step,)+)+ }
            }
        }

        impl StepShape {
            /// Returns the step's name in the contract.
            pub fn name(&self) -> &'static str {
                match self { $($(Self::$Step(_) => stringify!($module),)+)+ }
            }

            /// Returns the RLWE set; `None` for steps over LWE.
            pub fn ring(&self) -> Option<&RingParams> {
                match self { $($(Self::$Step(_step) => None$(.or(Some(&_step.$ring)))?,)+)+ }
            }

            /// Calls [`StepKind::sample`] of the step.
            pub fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
                match self { $($(Self::$Step(step) => step.sample(make),)+)+ }
            }

            /// Returns [`StepFootprint::footprint`] of the step.
            pub fn footprint<B: StepFootprints>(&self, batch: usize) -> usize {
                match self { $($(Self::$Step(step) => B::footprint(step, batch),)+)+ }
            }

            /// Returns [`StepFootprint::LARGEST_BATCH`] of the step.
            pub fn largest_batch<B: StepFootprints>(&self) -> usize {
                match self { $($(Self::$Step(_) => <B as StepFootprint<$Step>>::LARGEST_BATCH,)+)+ }
            }
        }

        /// The footprints of all steps.
        pub trait StepFootprints: $($(StepFootprint<$Step> +)+)+ {}

        impl<B: $($(StepFootprint<$Step> +)+)+> StepFootprints for B {}
    };
}

registry! {
    add_rlwe: AddRlwe(ring);
    expand: Expand(ring);
    lift_hint: LiftHint(ring);
    lwe_fold: LweFold, FoldOnline;
    lwe_hint: LweHint;
    pack: Pack(ring), PackOnline(ring);
    pack_columns: PackColumns(ring);
    private_key_switch: PrivateKeySwitch(ring);
    reinterpret_lwe: ReinterpretLwe;
    reinterpret_rlwe: ReinterpretRlwe(ring);
    respond: Respond(ring);
    rgsw_fold: RgswFold(ring);
    rgsw_power_fold: RgswPowerFold(ring);
    ring_switch: RingSwitch(ring);
    rlwe_fold: RlweFold(ring);
    rotate: Rotate(ring);
    send_words: SendWords;
    symbol_fold: SymbolFold(ring);
}
