//! The part of `pack` (3) without secrets: the folded words are added to the folded hint.

use std::ops::Range;

use hush_ops::{OpsError, pack_shape::PackShape};
use zerocopy::{Immutable, IntoBytes};

use super::columns::PackColumns;
use crate::{
    device::{Arg, Buffer, Device},
    ring::{CudaRing, Lift, MAX_LIMBS, MAX_PASS, QueryPointers, montgomery_form},
};

/// The struct `Delta` of `kernels/pack.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Immutable, IntoBytes)]
struct Delta([u32; MAX_LIMBS]);

const _: () = assert!(size_of::<Delta>() == 16);

impl Delta {
    fn new(ring: &CudaRing) -> Self {
        let kept = ring.context().kept();
        let delta = ring.context().delta();
        let mut limbs = [0; MAX_LIMBS];
        for (limb, (to, &modulus)) in limbs.iter_mut().zip(kept.moduli()).enumerate() {
            *to = montgomery_form(modulus, kept.rns().reduce(delta, limb));
        }
        Self(limbs)
    }
}

/// Adds `(0, Delta G)` to the ciphertexts of all queries and columns, where G has a column's rounded words of `folded`
/// (`[query][row]`) as coefficients.
///
/// # Errors
/// [`OpsError::Shape`] if kernels cannot count the rows with 32 bits, [`OpsError::Backend`] if there are no kernels for
/// a prime of the ring, or the device fails.
pub(super) fn add_folded(
    device: &Device,
    ring: &CudaRing,
    folded: &Buffer<u32>,
    shape: &PackShape,
    columns: Range<usize>,
    packed: &[&Buffer<u32>],
) -> Result<(), OpsError> {
    let kept = ring.kept();
    kept.check_narrow()?;
    let view = PackColumns::new("pack", shape, &columns)?;
    let delta = Delta::new(ring);
    let lift = Lift::words(ring.context().params().plaintext_bits());
    let kernels = ["pack_add_folded_6", "pack_add_folded_8", "pack_add_folded_11", "pack_add_folded_12"];
    for (pass, packed) in packed.chunks(MAX_PASS).enumerate() {
        let out = QueryPointers::new(device, packed.iter().map(|words| words.slice(..)))?;
        let words = folded.slice(pass * MAX_PASS * shape.rows()..);
        let grid = [columns.len() as u32, kept.limbs() as u32, packed.len() as u32];
        let delta = Arg::of(&delta);
        let args = [Arg::of(&out), words.into(), kept.view(), Arg::of(&view), delta, Arg::of(&lift)];
        device.launch(kept.degree().pick(kernels), kept.degree().launch(grid, 1), &args)?;
    }
    Ok(())
}
