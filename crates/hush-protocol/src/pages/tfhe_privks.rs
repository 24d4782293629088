//! PPIR as in the paper: a query of TLWE words, private key switching, and CMux folds of the whole table. The parameters
//! are sound. The page exists for comparison with [`crate::tfhe`].
//!
//! Source: PPIR section 3, algorithms 1 and 2, and 3 to 6 (STLU 1 to 4: `tournament.rs`);
//! `docs/explanation/protocols/tfhe.md`.

use hush_he::params::{PrivksParams, RingParams, TFHE_PRIVKS};

use crate::{
    ProtocolError, registry::Protocol, ring_page::RingPage, ring_table::RingTable, table::TableShape,
};

/// The page of `tfhe-privks`.
pub struct TfhePrivks;

impl RingPage for TfhePrivks {
    const PROTOCOL: Protocol = Protocol::TfhePrivks;
    const NAME: &'static str = "tfhe-privks";
    const KEY_COLUMNS: usize = 128;
    const HAS_SYMBOLS: bool = true;

    type Set = PrivksParams;

    fn ring(set: &PrivksParams) -> &RingParams {
        set.ring()
    }

    fn default_set(_: usize) -> PrivksParams {
        TFHE_PRIVKS
    }

    /// Returns 1, because CMux folds choose among all plaintexts.
    fn columns(_: &RingParams, _: usize, _: usize) -> usize {
        1
    }

    fn table(ring: RingParams, shape: TableShape) -> Result<RingTable, ProtocolError> {
        RingTable::rotated(ring, shape)
    }
}
