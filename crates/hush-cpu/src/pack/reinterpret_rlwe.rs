//! (4) Make RLWE words a new byte database.

use hush_ops::{
    OpsError,
    contract::{LweOps, RingOps, RlweBatch},
    tiling::TiledDb,
};

use crate::{Cpu, CpuRing};

/// As [`hush_ops::contract::PackOps::reinterpret_rlwe`], for whole entries of `items` words.
pub(super) fn reinterpret_rlwe(
    cpu: &Cpu,
    ring: &CpuRing,
    packed: &RlweBatch,
    items: usize,
) -> Result<TiledDb, OpsError> {
    let bits = ring.context().params().response_bits();
    let widths = [bits.a, bits.b].repeat(packed.count());
    let switched = cpu.mod_switch(ring, &[&packed.words], 0..widths.len(), &widths)?.remove(0);
    let (pairs, _) = switched.as_chunks();
    let coefficients = pairs.iter().flat_map(|[a, b]| a.iter().zip(b));
    let mut words = Vec::with_capacity(packed.words.len());
    if bits.a + bits.b == u32::BITS {
        words.extend(coefficients.map(|(a, b)| (a | b << bits.a) as u32));
    } else {
        for (a, b) in coefficients {
            let joined = u128::from(*a) | u128::from(*b) << bits.a;
            words.extend((0..(bits.a + bits.b) / u32::BITS).map(|word| (joined >> (32 * word)) as u32));
        }
    }
    cpu.reinterpret_lwe(&words.into(), items, size_of::<u32>())
}
