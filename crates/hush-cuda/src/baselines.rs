//! Folds without tensor cores and without tiles: baselines for `hush-bench gpu-steps`, which no step uses (`kernels/baselines.cu`).

use crate::{
    device::{Arg, Buffer, CudaError, Device, Launch},
    ring::{RingTables, addresses},
};

const THREADS: usize = 256;
/// The rows of a thread of the fold of bytes, and its queries.
const ROWS: usize = 4;
const QUERIES: usize = 8;
/// The queries of a thread of the fold of ring elements.
const RING_QUERIES: usize = 4;

/// Multiplies a database of signed bytes `[column][row]`, packed by four, by `queries`, `[query][column]`: words `[query][row]`
/// modulo 2^32. It is the fold of VIPIR section 4.1 on CUDA cores.
///
/// # Panics
/// If `rows` is not a multiple of 4, or a length does not fit the others.
pub fn lwe_fold(
    device: &Device,
    db: &Buffer<u32>,
    queries: &Buffer<u32>,
    rows: usize,
    columns: usize,
) -> Result<Buffer<u32>, CudaError> {
    assert_eq!((rows % ROWS, db.len() * ROWS), (0, rows * columns));
    let count = queries.len() / columns;
    let out = device.alloc(count * rows)?;
    let blocks = [(rows / ROWS).div_ceil(THREADS) as u32, count.div_ceil(QUERIES) as u32, 1];
    let args = [(&out).into(), db.into(), queries.into(), word(rows), word(columns), word(count)];
    device.launch("baseline_lwe_fold", Launch::grid(blocks, THREADS as u32), &args)?;
    Ok(out)
}

/// Multiplies a database of polynomials `[row][column][limb][slot]` by the selectors of each query, `[row][a, b][limb][slot]`:
/// `[query][column][a, b][limb][slot]`. It is the product of `rlwe_fold` with nothing turned over.
///
/// # Panics
/// If a length does not fit the others.
pub fn rlwe_fold(
    device: &Device,
    ring: &RingTables,
    db: &Buffer<u32>,
    selectors: &[&Buffer<u32>],
    rows: usize,
) -> Result<Buffer<u32>, CudaError> {
    let poly = ring.poly_words();
    let columns = db.len() / (rows * poly);
    assert!(selectors.iter().all(|words| words.len() == 2 * rows * poly));
    let out = device.alloc(selectors.len() * columns * 2 * poly)?;
    let pointers = addresses(device, selectors.iter().map(|words| words.slice(..)))?;
    let blocks = [poly.div_ceil(THREADS), columns, selectors.len().div_ceil(RING_QUERIES)];
    let args = [(&out).into(), db.into(), (&pointers).into(), word(rows), word(selectors.len()), ring.view()];
    device.launch(
        "baseline_rlwe_fold",
        Launch::grid(blocks.map(|blocks| blocks as u32), THREADS as u32),
        &args,
    )?;
    Ok(out)
}

fn word<'a>(count: usize) -> Arg<'a> {
    (count as u32).into()
}
