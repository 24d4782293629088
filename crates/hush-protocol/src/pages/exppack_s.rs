//! ExpPack(S), path (1)(3): SimplePIR whose answer is packed, so that no client needs the hint.
//!
//! | message | content                                                               | size (`PackTable`) |
//! |---------|-----------------------------------------------------------------------|--------------------|
//! | keys    | Subs keys, seeded, uploaded once                                      | `RingParams::key_words_bytes` |
//! | query   | a vector over the columns; the LWE secret under RLWE                  | `query_bytes`      |
//! | answer  | a ciphertext for every plane of every entry, packed in pairs, rounded | `answer_bytes`     |
//!
//! The answer holds every block, so it grows with the table. The page `hybrid` folds it to one entry instead.
//!
//! Source: VIPIR section 3.5. Ours: a prime dropped after the expansion, truncated queries, packed pairs, decoding directly
//! to bytes, and key look-ups.

use std::ops::Range;

use hush_he::params::PackParams;
use hush_ops::{contract::PackOps, path::Step, steps::Respond};
use zeroize::Zeroizing;

use crate::{
    ProtocolError, layout,
    pack_page::{OpenedPack, PackHead, PackHost, PackPage, PackPending},
    pack_table::{PackSpec, PackTable, Second},
    page::Partial,
    parts::joined_ciphertexts,
    registry::Protocol,
    response::response_bytes,
    ring_keys::RingKeys,
    target::Target,
};

/// The page of `exppack-s`.
pub struct ExppackS;

impl PackPage for ExppackS {
    const NAME: &'static str = "exppack-s";
    const SPEC: PackSpec = PackSpec { protocol: Protocol::ExppackS, second: Second::None, folds: false };

    /// Returns the number of columns with the least cost. The cost of a plane includes sending a ciphertext.
    fn columns(params: &PackParams, slots: usize, slot_bytes: usize) -> usize {
        let sent = response_bytes(params.ring(), 2) as f64 / 2.0;
        layout::expansion_columns(params, sent, slots, slot_bytes)
    }

    fn path_behind(table: &PackTable, _: &[Range<usize>]) -> Vec<Step> {
        let ring = *table.params().ring();
        let plaintexts = table.first_shape().plaintexts();
        vec![Step::of_batch(Respond { ring, plaintexts })]
    }

    fn finish<B: PackOps>(
        host: &PackHost<'_, B>,
        _: &PackHead<B>,
        opened: &OpenedPack<B::Words>,
        keys: &[&B::Keys],
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let queries = opened.expanded.all().len();
        let packed = joined_ciphertexts(host.backend, queries, host.ciphertext_words(), partials)?;
        host.respond(keys, &packed)
    }

    fn recover(
        table: &PackTable,
        _: &RingKeys,
        _: &PackPending,
        target: &Target,
        bytes: &[u32],
    ) -> Zeroizing<Vec<u8>> {
        let (entry, lane) = table.place(target.block);
        let chosen = table.entry_layout().choose_entry(bytes, entry);
        table.entry_layout().slot_of_lane(&chosen, lane)
    }
}
