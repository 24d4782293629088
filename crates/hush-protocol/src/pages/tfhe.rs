//! PPIR's table look-up, path (6)(7)...(7) and rotations. Its queries and answers are the smallest of all pages.
//!
//! Three parts of a record's index choose its place: the row by selectors of some bits each, the entry by CMux folds, and
//! the lane of its plaintext by a rotation. The answer of a short record is switched to a small ring. Plaintexts are kept
//! in evaluation form, or as symbols, which take as many bytes as the records and are transformed for every batch. Folds
//! are modulo one short prime.
//!
//! Source: PPIR sections 3 and 4 (TFHE-style look-ups over blocks, map server and database servers: `tournament.rs`). Ours:
//! truncated RLWE queries and the s^2 key in place of TLWE queries and PrivKS (0.6 MiB of keys instead of 160), the first dimension
//! by plaintext products, ring switching, whitening, key look-ups; `docs/explanation/protocols/tfhe.md`.

use hush_he::params::{RingParams, TFHE_COMPACT, TFHE_FAST, TfheParams};

use crate::{
    ProtocolError, layout, registry::Protocol, ring_page::RingPage, ring_table::RingTable, table::TableShape,
};

/// The page of `tfhe`.
pub struct Tfhe;

impl RingPage for Tfhe {
    const PROTOCOL: Protocol = Protocol::Tfhe;
    const NAME: &'static str = "tfhe";
    // A filter needs many columns, and each costs only 16 bits of a query.
    const KEY_COLUMNS: usize = 128;
    const HAS_SYMBOLS: bool = true;

    type Set = TfheParams;

    fn ring(set: &TfheParams) -> &RingParams {
        set.ring()
    }

    /// Returns the compact set unless a record takes more than two of its plaintexts, each of which needs its own mask.
    fn default_set(slot_bytes: usize) -> TfheParams {
        if slot_bytes <= 2 * TFHE_COMPACT.ring().plaintext_bytes() { TFHE_COMPACT } else { TFHE_FAST }
    }

    fn columns(ring: &RingParams, slots: usize, slot_bytes: usize) -> usize {
        layout::rotated_columns(ring, slots, slot_bytes)
    }

    fn table(ring: RingParams, shape: TableShape) -> Result<RingTable, ProtocolError> {
        RingTable::rotated(ring, shape)
    }
}
