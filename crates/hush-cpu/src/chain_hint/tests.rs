//! Every level against the reference, bit for bit.

use std::sync::Arc;

use hush_he::{
    entities::ColumnMasks,
    params::{COLPACK_N2048_Q52, ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN, RingContext},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{ColumnOps, RingOps},
    reference::Reference,
};
use rayon::prelude::*;

use super::{ChainPlan, chain_hint};
use crate::{Cpu, CpuRing, Level};

/// A parameter set on the reference and on backends.
struct Case {
    context: Arc<RingContext>,
    masks: ColumnMasks,
    backends: Vec<(Cpu, CpuRing, ChainPlan)>,
}

impl Case {
    fn new(params: ColumnParams, levels: impl IntoIterator<Item = Level>) -> Self {
        let context = Arc::new(RingContext::new(*params.ring()));
        let masks = ColumnMasks::new(&context);
        let backends = levels.into_iter().filter_map(|level| Cpu::with_level(level, 1).ok()).map(|cpu| {
            let ring = cpu.open_ring(context.clone());
            let plan = ChainPlan::new(&ring, &masks);
            (cpu, ring, plan)
        });
        Self { backends: backends.collect(), context, masks }
    }

    fn check(&self, hint: &[u32], name: &str) {
        let expected = Reference.chain_hint(&self.context, &self.masks, hint);
        for (cpu, ring, plan) in &self.backends {
            // The second time with what the first one left in the buffers.
            for _ in 0..2 {
                assert!(chain_hint(cpu, ring, plan, hint) == expected, "{} {name}", cpu.level());
            }
        }
    }
}

fn random(words: usize, seed: u64) -> Vec<u32> {
    let mut hint = vec![0; words];
    Csprng::insecure_from_seed(seed).fill_u32(&mut hint);
    hint
}

#[test]
fn every_level_is_the_reference() {
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        let (case, n) = (Case::new(params, Level::ALL), params.ring().degree());
        for rows in [n, 1, 15, 16, 17, n - 1] {
            case.check(&random(rows * n, rows as u64), &format!("N = {n}, {rows} random rows"));
        }
        let row = random(n, 7);
        case.check(&row.repeat(n), &format!("N = {n}, equal rows"));
        for word in [0, 1, u32::MAX, 1 << 31, (1 << 31) - 1] {
            case.check(&vec![word; n * n], &format!("N = {n}, all words {word}"));
        }
    }
}

#[test]
fn the_default_set_at_the_best_level() {
    let case = Case::new(COLPACK_N2048_Q52, [Level::detect()]);
    case.check(&random(2048 * 2048, 1), "N = 2048");
}

#[test]
fn hints_are_chained_side_by_side() {
    let case = Case::new(INSECURE_COLPACK_PLAIN, []);
    let cpu = Cpu::with_level(Level::detect(), 2).expect("the machine has its level");
    let ring = cpu.open_ring(case.context.clone());
    let plan = ChainPlan::new(&ring, &case.masks);
    let hints: Vec<Vec<u32>> = (1..=8).map(|rows| random(rows * 64, rows as u64)).collect();
    let chained: Vec<_> =
        cpu.install(|| hints.par_iter().map(|hint| chain_hint(&cpu, &ring, &plan, hint)).collect());
    for (hint, chained) in hints.iter().zip(chained) {
        assert!(chained == Reference.chain_hint(&case.context, &case.masks, hint));
    }
}

#[test]
fn wrong_shapes_are_refused() {
    let case = Case::new(INSECURE_COLPACK_PLAIN, [Level::Scalar]);
    let (cpu, ring, plan) = &case.backends[0];
    for words in [0, 1, 63, 65, 64 * 64 + 1, 65 * 64] {
        let refused = chain_hint(cpu, ring, plan, &vec![0; words]);
        assert!(matches!(refused, Err(OpsError::Shape { .. })), "{words} words");
    }
}
