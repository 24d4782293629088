//! OnionPIRv2, path (5) offline, then (6)(7)...(7). RLWE selectors choose the row, and RGSW bits choose the entry.
//!
//! Plaintexts are kept in evaluation form. An answer has whole polynomials, packed in pairs, and so all slots of a plaintext.
//!
//! Source: OnionPIRv2 section 3, VIPIR section 3.2. Ours: the prime dropped after expansion, truncated queries, the s^2
//! key in place of RGSW(s), packed pairs, whitening, and key look-ups (selectors that encrypt any small vector).

use hush_he::params::RingParams;

use crate::{
    ProtocolError, layout, registry::Protocol, ring_page::RingPage, ring_table::RingTable, table::TableShape,
};

/// The page of `onion`.
pub struct Onion;

impl RingPage for Onion {
    const PROTOCOL: Protocol = Protocol::Onion;
    const NAME: &'static str = "onion";
    const KEY_COLUMNS: usize = 64;
    const HAS_SYMBOLS: bool = false;

    type Set = RingParams;

    fn ring(set: &RingParams) -> &RingParams {
        set
    }

    /// Returns the parameter set with the shorter answers.
    fn default_set(slot_bytes: usize) -> RingParams {
        layout::shorter_answers(slot_bytes)
    }

    fn columns(ring: &RingParams, slots: usize, slot_bytes: usize) -> usize {
        layout::ring_columns(ring, slots, slot_bytes)
    }

    fn table(ring: RingParams, shape: TableShape) -> Result<RingTable, ProtocolError> {
        RingTable::new(ring, shape)
    }
}
