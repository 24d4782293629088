//! Tests of what the conformance tests leave open: those compare every level with the reference, bit for bit.

use std::sync::Arc;

use hush_he::{
    entities::{ColumnMasks, PublicSeed},
    params::{INSECURE_COLPACK_PLAIN, RingContext},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{BatchWords, ColumnOps, RingOps},
    reference::Reference,
};

use crate::{Cpu, Level};

/// Threads take turns with the buffers, which still hold other hints.
#[test]
fn hints_are_chained_side_by_side() {
    let cpu = Cpu::with_level(Level::detect(), 2).expect("the machine has its level");
    let context = Arc::new(RingContext::new(*INSECURE_COLPACK_PLAIN.ring()));
    let ring = cpu.open_ring(context.clone()).expect("there is room");
    let masks = ColumnMasks::new(&context, &PublicSeed([1; 32]));
    let plan = cpu.open_masks(&ring, &masks).expect("there is room");
    let degree = context.kept().degree();
    let mut rng = Csprng::insecure_from_seed(1);
    let hints: Vec<BatchWords> = (1..=degree / 2)
        .map(|half| (0..(degree + 2 - 2 * half) * degree).map(|_| rng.next_u32()).collect())
        .collect();
    let hints: Vec<_> = hints.iter().collect();
    let chained = cpu.chain_hint(&ring, &plan, &hints);
    assert!(chained == Reference.chain_hint(&context, &masks, &hints));
}
