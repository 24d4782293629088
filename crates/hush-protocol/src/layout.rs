//! The shape of a table, chosen by what its look-ups cost.

use hush_he::params::LweParams;

use crate::{
    frodo,
    table::{LOOKUPS_PER_EPOCH, Protocol, TableShape},
};

/// Bytes at which a query word, an answer word and a hint word travel, about: what the choice weighs.
const QUERY_WORD: f64 = 3.5;
const ANSWER_WORD: f64 = 1.5;
const HINT_WORD: f64 = 2.0;
/// DoublePIR's second scan reads `n * digits` bytes for every column's worth of the first: more columns than this
/// keep it the smaller one.
const DOUBLE_MIN_COLUMNS: usize = 1 << 14;

/// Columns (D0) that a table of `slots` slots should have.
///
/// `simple`: the minimum of query + answer + hint / [`LOOKUPS_PER_EPOCH`] bytes, that is
/// `sqrt(table bytes * (answer + n * hint / look-ups) / query)`.
pub fn columns(protocol: Protocol, lwe: &LweParams, slots: usize, slot_bytes: usize) -> usize {
    let wanted = match protocol {
        Protocol::Frodo => slots,
        Protocol::Simple => {
            let row_cost = ANSWER_WORD + HINT_WORD * lwe.n() as f64 / LOOKUPS_PER_EPOCH;
            ((slots as f64 * slot_bytes as f64) * row_cost / QUERY_WORD).sqrt() as usize
        }
        Protocol::Double => DOUBLE_MIN_COLUMNS.max((slots as f64).sqrt() as usize),
    };
    wanted.clamp(1, slots.max(1))
}

/// The protocol that `auto` stands for: `frodo` if the cheapest shape has a single block anyway, else `simple`.
pub fn auto_protocol(lwe: &LweParams, slots: usize, slot_bytes: usize) -> Protocol {
    if columns(Protocol::Simple, lwe, slots, slot_bytes) >= slots {
        Protocol::Frodo
    } else {
        Protocol::Simple
    }
}

/// The shape of a table of `records` records that are looked up by index: record `i` is at block
/// `i / columns`, column `i % columns`.
pub fn index_shape(protocol: Protocol, lwe: &LweParams, records: usize, slot_bytes: usize) -> TableShape {
    if protocol == Protocol::Frodo {
        return frodo::layout(records, slot_bytes);
    }
    let columns = columns(protocol, lwe, records, slot_bytes);
    let blocks = records.div_ceil(columns);
    // The same number of blocks with as few columns as they need.
    TableShape { columns: records.div_ceil(blocks), blocks, slot_bytes }
}

/// Block and column of record `index`.
pub fn index_position(shape: &TableShape, index: usize) -> (usize, usize) {
    (index / shape.columns, index % shape.columns)
}
