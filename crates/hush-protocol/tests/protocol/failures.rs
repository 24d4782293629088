//! How often an answer decodes wrongly, by formulas that `noise` measures: within the limit whatever is offered, and as documented.

use std::{fmt::Write, fs};

use hush_he::params::{MAX_LOG2_FAILURE, ONION_M31, ONION_S, ONIONPIRV2_N4096_4X27_SEC126};
use hush_protocol::{
    Protocol, ProtocolError,
    any_page::{Slots, TableParams},
    presets::{Preset, presets},
    table::SegmentShape,
};

use crate::support::{shape, table};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explanation/notes/widths-and-shapes.md");
/// Tables of 1 MiB to 256 GiB.
const LOG2_BYTES: [u32; 7] = [20, 23, 26, 29, 32, 35, 38];
const SLOT_BYTES: [usize; 6] = [1, 40, 256, 1024, 4096, 1 << 16];
/// Look-ups of a client, as log2, after which one of them has failed with the probability in the last column.
const LOG2_LOOKUPS: f64 = 20.0;

/// Returns the tables of a set with their default shapes, and why there is none.
fn defaults(protocol: Protocol, set: &str) -> impl Iterator<Item = Result<TableParams, ProtocolError>> {
    let page = protocol.page();
    let slots = LOG2_BYTES.into_iter().flat_map(|log2_bytes| {
        SLOT_BYTES.into_iter().flat_map(move |slot_bytes| {
            let count = (1usize << log2_bytes).div_ceil(slot_bytes);
            [false, true].map(|by_key| Slots { count, slot_bytes, by_key })
        })
    });
    slots.map(move |slots| page.table(set, page.shape(set, slots, None)?))
}

/// Returns the rows of the table in [`PAGE`]: the default table of every set that fails most often.
fn rows() -> String {
    let mut rows = String::new();
    let sets = presets().into_iter().filter(|preset| !preset.name.starts_with("INSECURE"));
    for Preset { name, protocols, .. } in sets {
        let tables = protocols.iter().flat_map(|&protocol| defaults(protocol, name)).flatten();
        let worst = tables.max_by(|a, b| a.facts().log2_failure.total_cmp(&b.facts().log2_failure));
        let Some(worst) = worst else {
            writeln!(rows, "| `{name}` | none with the default shape |  |  |  |").unwrap();
            continue;
        };
        let (facts, shape) = (worst.facts(), worst.facts().shape);
        let log2 = facts.log2_failure;
        assert!(log2 <= MAX_LOG2_FAILURE, "{name}: 2^{log2}");
        let slots = format!("{} x {} of {} bytes", shape.columns, shape.blocks, shape.slot_bytes);
        let [answer, all] = [log2, log2 + LOG2_LOOKUPS].map(f64::ceil);
        writeln!(
            rows,
            "| `{name}` | `{}`, {slots} | {:.1} | 2^{answer} | 2^{all} |",
            facts.protocol, facts.sigmas
        )
        .unwrap();
    }
    rows
}

#[test]
fn answers_fail_as_seldom_as_documented() {
    let (rows, page) = (rows(), fs::read_to_string(PAGE).unwrap());
    assert!(page.contains(&rows), "{PAGE} has other rows than\n{rows}");
}

/// The default shape of a large table is one that decodes.
#[test]
fn sets_for_long_records_serve_large_tables() {
    for set in [ONION_M31, ONION_S, ONIONPIRV2_N4096_4X27_SEC126] {
        for made in defaults(Protocol::Onion, set.name()) {
            assert!(!matches!(made, Err(ProtocolError::TooNoisy { .. })), "{made:?}");
        }
    }
    // 128 GiB of plaintexts and more have fewer rows.
    let rows = |log2_count: u32| {
        let slots = Slots { count: 1 << log2_count, slot_bytes: 4096, by_key: false };
        Protocol::Onion.page().shape(ONION_S.name(), slots, None).unwrap().columns
    };
    assert_eq!([rows(20), rows(25), rows(26)], [256, 256, 128]);
}

/// Segments count together: two that are within the limit alone are not so together.
#[test]
fn segments_count_together() {
    let base = table(Protocol::Onion, ONION_S.name(), shape(256, 1 << 17, 4096));
    let beside = |entries| SegmentShape { shape: shape(256, entries, 4096), entries };
    let alone = base.segment(beside(1 << 17)).unwrap();
    assert!(alone.facts().log2_failure <= MAX_LOG2_FAILURE);
    let refused = base.clone().with_segment(beside(1 << 17)).map(|table| table.facts().log2_failure);
    assert!(matches!(refused, Err(ProtocolError::TooNoisy { .. })), "{refused:?}");
    let both = base.clone().with_segment(beside(1)).unwrap();
    assert!(both.facts().log2_failure > base.facts().log2_failure);
}
