//! External products of a batch.

use std::mem::offset_of;

use hush_ops::OpsError;
use zerocopy::{Immutable, IntoBytes};

use super::{CudaRing, stages::Stage};
use crate::{
    Cuda,
    device::{Arg, MAX_GRID, Slice},
};

/// The bytes of digits on the device at once, for more than one query.
pub(super) const DIGIT_BYTES: usize = 1 << 30;

/// The kernels that compute a whole round.
const WHOLE: [&str; 4] = ["external_stage_6", "external_stage_8", "external_stage_11", "external_stage_12"];

/// The ciphertexts of a batch of queries: item i of plane j of query q is at `bases[q] + first + i * step + j * plane` (in words).
/// Items from `count` on are zero. `CiphertextsView` in `kernels/external_product.cuh` has the same fields.
#[derive(Clone, Copy)]
pub struct Ciphertexts<'a> {
    /// The address of each query's ciphertexts.
    pub bases: Slice<'a, u64>,
    /// The words before the first item.
    pub first: usize,
    /// The words from one item to the next.
    pub step: usize,
    /// The words from one plane to the next.
    pub plane: usize,
    /// The number of items of a plane.
    pub count: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
struct CiphertextsView {
    bases: u64,
    first: u64,
    step: u64,
    plane: u64,
    count: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<CiphertextsView>() == 40 && offset_of!(CiphertextsView, count) == 32);

impl Ciphertexts<'_> {
    /// Returns the view of the ciphertexts of the queries from `query` on.
    fn view(&self, query: usize) -> CiphertextsView {
        CiphertextsView {
            bases: self.bases.slice(query..).address(),
            first: self.first as u64,
            step: self.step as u64,
            plane: self.plane as u64,
            count: self.count as u32,
            reserved: 0,
        }
    }
}

/// The operands of [`external_products`], which computes `out = C [x] (y - x) + z` for `items` items of `planes`
/// planes of `queries` queries, modulo Q_1. `out` may share memory with `y` or `x`, but not with `z`.
pub struct ExternalProducts<'a> {
    /// The round of the fold to which the products belong.
    pub round: usize,
    /// The number of queries.
    pub queries: usize,
    /// The number of planes.
    pub planes: usize,
    /// The number of items of a plane.
    pub items: usize,
    /// The results, for all items.
    pub out: Ciphertexts<'a>,
    /// The address of the RGSW ciphertext of each query: the rows for the digits of half a, then the rows for half b.
    pub rgsw: Slice<'a, u64>,
    /// The ciphertexts y, which are multiplied.
    pub y: Ciphertexts<'a>,
    /// The ciphertexts x, which are subtracted from y first; `None` for zeros.
    pub x: Option<Ciphertexts<'a>>,
    /// The ciphertexts z, which are added.
    pub z: Ciphertexts<'a>,
}

/// Computes external products by the fold gadget of a set: [`hush_he::algorithms::external_product`] of each item and the RGSW
/// ciphertext of its query. Launches one kernel if it computes the whole stage, and else two for every group of queries whose
/// digits fit into a bounded workspace.
///
/// # Errors
/// [`OpsError::Shape`] if there are more planes than a grid has rows, [`OpsError::Backend`] if the device fails.
///
/// # Panics
/// If there are fewer addresses than queries.
pub fn external_products(
    cuda: &Cuda,
    ring: &CudaRing,
    products: &ExternalProducts<'_>,
) -> Result<(), OpsError> {
    let device = cuda.device();
    let kept = ring.kept();
    let gadget = &ring.expansion().fold;
    let planes = products.planes;
    OpsError::check_shape("external product", "planes", planes.min(MAX_GRID[1]), planes)?;
    let query_words = planes * products.items * 2 * gadget.digits() * kept.degree().words();
    if query_words == 0 {
        return Ok(());
    }
    let ciphertexts = products.queries * planes * products.items;
    let stage = Stage {
        step: "rgsw_fold",
        depth: products.round,
        ciphertexts,
        // Two ciphertexts are read and one is written; each query has an RGSW ciphertext.
        words: products.queries * query_words
            + (3 * ciphertexts + products.queries * 2 * gadget.digits()) * 2 * kept.poly_words(),
        degree: kept.degree(),
        polys: gadget.stage_polys(2, kept.limbs()),
    };
    let is_whole = stage.is_whole(device.info(), cuda.stages());
    let at_once = if is_whole { MAX_GRID[2] } else { queries_at_once(query_words) };
    for first in (0..products.queries).step_by(at_once) {
        let queries = at_once.min(products.queries - first);
        let view = |ciphertexts: Ciphertexts<'_>| ciphertexts.view(first);
        let out = view(products.out);
        let y = view(products.y);
        let z = view(products.z);
        let x = products.x.map_or(CiphertextsView { count: 0, ..y }, view);
        let grid = |x: usize| [x as u32, planes as u32, queries as u32];
        let rgsw = products.rgsw.slice(first..);
        if is_whole {
            let launch = stage.launch(grid(products.items));
            let args = [
                Arg::of(&out),
                Arg::of(&y),
                Arg::of(&x),
                rgsw.into(),
                Arg::of(&z),
                kept.view(),
                gadget.view(),
            ];
            device.launch(kept.pick(WHOLE, "external_stage_11_wide"), launch, &args)?;
            continue;
        }
        let digits = device.alloc::<u32>(queries * query_words)?;
        let launch = kept.degree().launch(grid(2 * products.items), kept.limbs());
        let args = [(&digits).into(), Arg::of(&y), Arg::of(&x), kept.view(), gadget.view()];
        device.launch(kept.pick(["external_decompose"; 4], "external_decompose_wide"), launch, &args)?;

        let launch = kept.degree().launch(grid(kept.limbs() * products.items), 1);
        let args = [Arg::of(&out), (&digits).into(), rgsw.into(), Arg::of(&z), kept.view(), gadget.view()];
        device.launch(kept.pick(["external_product"; 4], "external_product_wide"), launch, &args)?;
    }
    Ok(())
}

/// Returns the number of queries that are multiplied at once, at least one. Their digits fit [`DIGIT_BYTES`], and their number
/// the third dimension of a grid.
fn queries_at_once(query_words: usize) -> usize {
    (DIGIT_BYTES / size_of::<u32>() / query_words).clamp(1, MAX_GRID[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_at_once_fit_memory_and_grids() {
        assert_eq!(queries_at_once(1 << 20), 256);
        assert_eq!(queries_at_once(1 << 30), 1);
        assert_eq!(queries_at_once(128), 65_535);
    }
}
