//! The shape of a table, chosen by what its look-ups cost.

use hush_he::params::{LweParams, ONION_M31, ONION_S, RingParams};

use crate::{
    frodo,
    ring_table::{lanes, response_bytes},
    symbols::symbol_count,
    table::{LOOKUPS_PER_EPOCH, Protocol, Scheme, TableShape},
};

/// Bytes at which a query word, an answer word and a hint word travel, about: what the choice weighs.
const QUERY_WORD: f64 = 3.5;
const ANSWER_WORD: f64 = 1.5;
const HINT_WORD: f64 = 2.0;
/// DoublePIR's second scan reads `n * digits` bytes for every column's worth of the first: more columns than this
/// keep it the smaller one.
const DOUBLE_MIN_COLUMNS: usize = 1 << 14;

/// Rows of the first dimension (D0) of a table over rings: more make queries longer to expand, fewer leave more to fold.
const RING_COLUMNS: usize = 256;
/// Fewest rows of a table over rings by key.
const RING_MIN_KEY_COLUMNS: usize = 64;
/// Entries that a table over rings should have before it gets more rows: the tiles of its database are as wide.
const RING_ENTRIES: usize = 16;

/// Columns (D0) that a table of `slots` slots should have.
///
/// `simple`: the minimum of query + answer + hint / [`LOOKUPS_PER_EPOCH`] bytes, that is
/// `sqrt(table bytes * (answer + n * hint / look-ups) / query)`. `onion`: 256, if there are enough slots.
pub fn columns(scheme: &Scheme, slots: usize, slot_bytes: usize) -> usize {
    let wanted = match scheme {
        Scheme::Lwe(Protocol::Frodo, _) => slots,
        Scheme::Lwe(Protocol::Double, _) => DOUBLE_MIN_COLUMNS.max((slots as f64).sqrt() as usize),
        Scheme::Lwe(_, lwe) => {
            let row_cost = ANSWER_WORD + HINT_WORD * lwe.n() as f64 / LOOKUPS_PER_EPOCH;
            ((slots as f64 * slot_bytes as f64) * row_cost / QUERY_WORD).sqrt() as usize
        }
        Scheme::Ring(ring) => slots.div_ceil(lanes(ring, slot_bytes) * RING_ENTRIES).min(RING_COLUMNS),
    };
    wanted.clamp(1, slots.max(1))
}

/// As [`columns`] for a table by key, whose filters are poor below some tens of slots.
pub fn key_columns(scheme: &Scheme, slots: usize, slot_bytes: usize) -> usize {
    match scheme {
        Scheme::Lwe(..) => columns(scheme, slots, slot_bytes),
        Scheme::Ring(_) => columns(scheme, slots, slot_bytes).max(RING_MIN_KEY_COLUMNS).min(slots.max(1)),
    }
}

/// The protocol that `auto` stands for: `frodo` if the cheapest shape has a single block anyway, else `simple`.
pub fn auto_protocol(lwe: &LweParams, slots: usize, slot_bytes: usize) -> Protocol {
    if columns(&Scheme::Lwe(Protocol::Simple, *lwe), slots, slot_bytes) >= slots {
        Protocol::Frodo
    } else {
        Protocol::Simple
    }
}

/// The parameter set that `onion` takes for slots of `slot_bytes` bytes: the one whose answers are shorter, which is
/// [`ONION_S`] up to some 10 KiB.
pub fn auto_ring(slot_bytes: usize) -> RingParams {
    let answer_bytes = |ring: &RingParams| {
        let planes = symbol_count(slot_bytes, ring.plaintext_bits()).div_ceil(ring.degree());
        response_bytes(ring, planes)
    };
    if answer_bytes(&ONION_S) <= answer_bytes(&ONION_M31) { ONION_S } else { ONION_M31 }
}

/// The shape of a table of `records` records that are looked up by index, with about `columns` columns: record `i` is
/// at block `i / columns`, column `i % columns`.
pub fn index_shape(scheme: &Scheme, records: usize, slot_bytes: usize, columns: usize) -> TableShape {
    if scheme.protocol() == Protocol::Frodo {
        return frodo::layout(records, slot_bytes);
    }
    let blocks = records.div_ceil(columns.clamp(1, records));
    // The same number of blocks with as few columns as they need.
    TableShape { columns: records.div_ceil(blocks), blocks, slot_bytes }
}

/// Block and column of record `index`.
pub fn index_position(shape: &TableShape, index: usize) -> (usize, usize) {
    (index / shape.columns, index % shape.columns)
}
