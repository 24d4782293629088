//! Every kernel runs in a small test, which the sanitizers run: each of these tests answers for some kernels, and together they
//! answer for all.

use std::{collections::BTreeSet, env};

use hush_cuda::device::{Device, emulated_kernels, emulated_sanitizer};

/// Kernels of the steps over LWE, as the beginnings of their names.
pub(crate) const LWE: &[&str] = &["lwe_fold_", "split_", "retile", "reinterpret_lwe", "send_words"];
/// Transforms of all degrees, the lift of plaintexts, the rounding.
pub(crate) const TRANSFORMS: &[&str] = &["ntt_forward_", "ntt_inverse_", "ntt_db_", "mod_switch_"];
/// Steps over rings that decompose.
pub(crate) const GADGET: &[&str] =
    &["expand_", "drop_prime", "external_", "pack_pairs_", "unpack_symbols", "turn", "private_key_switch"];
/// The fold of a database in evaluation form.
pub(crate) const RLWE_FOLD: &[&str] = &["rlwe_fold_", "ntt_tiles_from_host", "ntt_tiles_to_host"];
/// Packing by evaluation keys.
pub(crate) const PACK: &[&str] =
    &["pack_add_folded_", "lift_hint", "add_rlwe", "reinterpret_rlwe", "ntt_tiles_from_polys"];
/// Column packing.
pub(crate) const COLUMN: &[&str] = &["chain_", "column_product_", "power_"];
/// Memory.
pub(crate) const MEMORY: &[&str] = &["fill_random"];
/// Baselines of measurements.
pub(crate) const BASELINES: &[&str] = &["baseline_"];
/// Kernels of no step: primitives, which the emulator's own tests run under the sanitizers, and measurements.
const ELSEWHERE: &[&str] = &["conform_", "floor_"];
/// Under a sanitizer, chains and expansions of sets in use take minutes, and so do folds of as many points as a large ring has,
/// which come before `pack_add_folded`. They are kernels of smaller rings with other numbers; other tests run them.
const TOO_LONG: &[&str] = &[
    "chain_switch_11",
    "chain_end_11",
    "pack_add_folded_11",
    "pack_add_folded_12",
    "expand_stage_11",
    "expand_stage_12",
    "expand_leaves_11",
    "expand_leaves_12",
    "external_stage_11",
    "external_stage_12",
];

/// Kernels whose names begin as `family` says.
fn kernels(family: &[&str]) -> BTreeSet<&'static str> {
    let all = emulated_kernels().into_iter();
    all.filter(|name| family.iter().any(|beginning| name.starts_with(beginning))).collect()
}

/// Checks that each kernel of a family was launched on one of the devices.
#[track_caller]
pub(crate) fn assert_launched<'a>(devices: impl IntoIterator<Item = &'a Device>, family: &[&str]) {
    let launched: BTreeSet<_> = devices.into_iter().flat_map(Device::launched_kernels).collect();
    let wanted = kernels(family).into_iter().filter(|name| !TOO_LONG.contains(name));
    let missed: Vec<_> = wanted.filter(|name| !launched.contains(name)).collect();
    assert!(missed.is_empty(), "these never ran: {missed:?}");
}

/// Checks that the build has the sanitizers that scripts/sanitize.sh asked for.
#[test]
fn small_tests_run_under_the_sanitizer() {
    let asked = env::var("HUSH_SANITIZERS").unwrap_or_default();
    assert_eq!(asked.split(',').next(), Some(emulated_sanitizer()));
}

#[test]
fn families_have_every_kernel_once() {
    let families = [LWE, TRANSFORMS, GADGET, RLWE_FOLD, PACK, COLUMN, MEMORY, BASELINES, ELSEWHERE];
    let all = families.iter().flat_map(|family| kernels(family));
    let mut sorted: Vec<_> = all.collect();
    sorted.sort_unstable();
    assert_eq!(sorted, emulated_kernels());
}
