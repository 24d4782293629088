//! Two ciphertexts to one mask and two bodies.

use hush_ops::contract::RlweBatch;

use super::{gadget_product, keys::CpuKeys, scratch::Scratch, tables::CpuRing};
use crate::Cpu;

/// As [`hush_ops::contract::RingOps::pack_pair`], for operands that fit together.
///
/// # Panics
/// If the set does not pack pairs.
pub(super) fn pack_pair(cpu: &Cpu, ring: &CpuRing, keys: &CpuKeys, pair: &RlweBatch) -> Vec<u32> {
    let (gadget, rows) = ring.pack.as_ref().zip(keys.pack()).expect("the set packs pairs");
    let (kept, poly) = (&ring.kept, ring.kept.words());
    let [x, y] = [0, 1].map(|index| pair.ciphertext(index).split_at(poly));
    let mut packed = [&vec![0; poly], x.1, y.1].concat();
    cpu.install(|| {
        cpu.with_workspace(|workspace| {
            let (mut scratch, _) = Scratch::new(workspace, kept, 2 * gadget.digits, 0);
            for (index, (a, _)) in [x, y].into_iter().enumerate() {
                scratch.coefficients.copy_from_slice(a);
                gadget_product::decompose(kept, gadget, &mut scratch, index * gadget.digits);
            }
            gadget_product::multiply_add(kept, rows, gadget.half, &mut scratch, &mut packed);
        });
    });
    packed
}
