//! (4) Make RLWE words a new byte database.

use hush_ops::{
    OpsError,
    contract::{LweOps, RingOps, RlweBatch},
    tiling::TiledDb,
};

use crate::{Cpu, CpuRing};

/// As [`hush_ops::contract::PackOps::reinterpret_rlwe`], for whole entries whose switched halves fill a word.
pub(super) fn reinterpret_rlwe(
    cpu: &Cpu,
    ring: &CpuRing,
    packed: &RlweBatch,
    planes: usize,
) -> Result<TiledDb, OpsError> {
    let params = ring.context().params();
    let bits = params.response_bits();
    let switched = cpu.mod_switch(ring, &packed.words, &[bits.a, bits.b].repeat(packed.count()))?;
    let (pairs, _) = switched.as_chunks();
    let joined = pairs.iter().flat_map(|[a, b]| a.iter().zip(b).map(|(a, b)| (a | b << bits.a) as u32));
    let words: Vec<u32> = joined.collect();
    cpu.reinterpret_lwe(&words, planes * params.degree(), size_of::<u32>())
}
