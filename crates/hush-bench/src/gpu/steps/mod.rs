//! The steps, each by itself, on random operands, at the shapes of a table of 4-KiB records.

use std::error::Error;

use hush_cuda::{
    device::{Buffer, CudaError, Device},
    fill_random,
    ring::CudaRing,
};
use hush_math::{csprng::Csprng, poly::Eval, ring::Ring};
use hush_protocol::table::TableShape;

use super::{Bench, RECORD_BYTES};
use crate::row::Row;

mod column;
mod lwe;
mod onion;
mod pack;
mod ring;

/// Steps at the shapes of a table.
type Group = fn(&mut Bench<'_>, TableShape) -> Result<(), Box<dyn Error>>;

/// Fewest blocks of a table.
const LEAST_BLOCKS: usize = 4;

/// The main steps, for a table of `size` bytes, or half of the device's memory.
pub(super) fn run(bench: &mut Bench<'_>, size: usize) -> Result<(), Box<dyn Error>> {
    let size = size.min(bench.cuda.device().free_bytes()? / 2);
    let shape = table_shape(size, bench.scale.columns);
    let groups: [(&str, Group); 4] =
        [("lwe", lwe::run), ("column", column::run), ("pack", pack::run), ("onion", onion::run)];
    for (name, group) in groups {
        bench.attempt(Row::named(format!("steps of {name}")), |bench| group(bench, shape));
        bench.cuda.release_unused();
    }
    Ok(())
}

/// A table of about `size` bytes, with `columns` columns unless there are too few records for a few blocks of them.
pub(super) fn table_shape(size: usize, columns: usize) -> TableShape {
    let records = size / RECORD_BYTES;
    let columns = columns.min(records.div_ceil(LEAST_BLOCKS)).max(1);
    TableShape { columns, blocks: records.div_ceil(columns).max(1), slot_bytes: RECORD_BYTES }
}

/// Random polynomials `[..][limb][slot]` on the host.
pub(super) fn residues(ring: &Ring, polys: usize, seed: u64) -> Vec<u32> {
    let mut rng = Csprng::insecure_from_seed(seed);
    (0..polys).flat_map(|_| ring.expand_uniform::<Eval>(&mut rng).into_words()).collect()
}

/// Random polynomials modulo Q_e or Q_1 on the device: residues below the least of the primes.
fn device_residues(
    device: &Device,
    ring: &CudaRing,
    words: usize,
    seed: u64,
) -> Result<Buffer<u32>, CudaError> {
    let residues = device.alloc(words)?;
    let least = ring.context().full().moduli().iter().map(|p| p.value()).min().unwrap_or(1);
    fill_random(device, &residues.slice(..), seed, least)?;
    Ok(residues)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_few_blocks() {
        for (size, columns, expected) in [
            (64 << 30, 1 << 16, (1 << 16, 256)),
            (1 << 30, 1 << 15, (1 << 15, 8)),
            (1 << 20, 1 << 15, (64, 4)),
            (1 << 20, 64, (64, 4)),
            (3 << 20, 100, (100, 8)),
            (0, 10, (1, 1)),
        ] {
            let shape = table_shape(size, columns);
            assert_eq!((shape.columns, shape.blocks), expected, "{size}");
            assert!(size <= RECORD_BYTES * shape.columns * shape.blocks);
        }
    }
}
