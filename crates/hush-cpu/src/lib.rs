//! The CPU backend: portable code; AVX2, AVX-512 and AMX on x86-64; NEON, dot products and `i8mm` on ARM.
//!
//! [`features`] asks the machine once, and the `kernels` module chooses the kernels of a level. A step is one
//! file or folder, with a file for each level whose inner loop differs. All levels give the same words.
//!
//! * Over LWE: `lwe_fold/`, `lwe_hint/`, `reinterpret_lwe.rs`, `send_words.rs`, `band_solve/`.
//! * Over rings: `rlwe_fold/`, `ring/` (all other steps), `tfhe/` (symbols, rotations), `ntt/` (transforms), `lanes/` (vectors).
//! * From LWE to RLWE: `chain_hint/`, `column/` (by keys of the query), `pack/` (by evaluation keys).

mod band_solve;
mod buffer;
mod buffer_pool;
mod chain_hint;
mod column;
mod cpu;
pub mod features;
mod footprint;
mod kernels;
mod lanes;
mod lwe_fold;
mod lwe_hint;
pub mod ntt;
mod pack;
mod reinterpret_lwe;
mod ring;
mod rlwe_fold;
mod send_words;
mod tfhe;
mod tile_config;
mod workspace;

pub use buffer::{AlignedBuffer, Word};
pub use chain_hint::ChainPlan;
pub use column::CpuChain;
pub use cpu::Cpu;
pub use features::{CpuError, Level};
pub use ring::{CpuKeys, CpuRing};
