//! The protocol hybrid, path (1)(3)(7)...(7): the packed answer of ExpPack(S), folded to the wanted entry.
//!
//! The server expands a query once, for packing and for folding. The leaves of the expansion are the coefficients of the LWE
//! secret, then the bits of the entry.
//!
//! | message | content                                                                         | size (`PackTable`) |
//! |---------|---------------------------------------------------------------------------------|--------------------|
//! | keys    | Subs keys, s^2 key, pair-packing key; seeded, uploaded once                     | `RingParams::key_words_bytes` |
//! | query   | a vector over the columns; the LWE secret and the bits of the entry under RLWE  | `query_bytes`      |
//! | answer  | the entry's planes, packed in pairs, rounded                                    | `answer_bytes`     |
//!
//! Source: VIPIR section 3.4 (hybrid). Ours: as in `exppack-s`; a key for s^2 in place of RGSW(s).

use std::ops::Range;

use hush_he::params::PackParams;
use hush_ops::{
    contract::{EntryOrder, LweBatch, PackOps},
    path::Step,
    steps::{Pack, Respond},
};
use zeroize::Zeroizing;

use crate::{
    ProtocolError, layout,
    pack_page::{OpenedPack, PackHead, PackHost, PackPage, PackPending, PackedRows},
    pack_table::{PackSpec, PackTable, Second},
    page::Partial,
    registry::Protocol,
    response::ciphertext_words,
    ring_keys::RingKeys,
    target::Target,
    tournament::{self, Tournament},
};

/// The page of `hybrid`.
pub struct Hybrid;

impl PackPage for Hybrid {
    const NAME: &'static str = "hybrid";
    const SPEC: PackSpec = PackSpec { protocol: Protocol::Hybrid, second: Second::None, folds: true };

    fn columns(params: &PackParams, slots: usize, slot_bytes: usize) -> usize {
        layout::expansion_columns(params, 0.0, slots, slot_bytes)
    }

    fn part_behind(table: &PackTable, units: &Range<usize>) -> (Vec<Step>, usize) {
        let ring = *table.params().ring();
        let shape = table.part_shape(units);
        let hint = table.lifted_tiling(shape.plaintexts());
        let pack = Step::of_batch(Pack { ring, hint, shape });
        let folds = tournament::folds(ring, shape.entries(), shape.planes(), 1);
        let roots = tournament::roots(table.first_shape().entries(), units);
        (vec![pack, folds], roots * shape.planes() * ciphertext_words(&ring))
    }

    fn path_behind(table: &PackTable, parts: &[Range<usize>]) -> Vec<Step> {
        let ring = *table.params().ring();
        let first = table.first_shape();
        let folds = tournament::last_folds(ring, first.entries(), first.planes(), parts);
        let respond = Step::of_batch(Respond { ring, plaintexts: first.planes() });
        folds.into_iter().chain([respond]).collect()
    }

    fn pack_rows<B: PackOps>(
        host: &PackHost<'_, B>,
        rows: &PackedRows<B>,
        opened: &OpenedPack<B::Words>,
        folded: LweBatch<B::Words>,
    ) -> Result<Vec<B::Words>, ProtocolError> {
        let packed = host.pack_first(rows, &folded, &opened.selectors())?; //       (3)  a ciphertext a plane and entry
        let (entries, order) = (packed.iter().collect::<Vec<_>>(), EntryOrder::EntryMajor);
        Ok(tournament(host).play(&rows.units, &entries, order, &opened.bits())?) // (7)  one a plane
    }

    fn finish<B: PackOps>(
        host: &PackHost<'_, B>,
        _: &PackHead<B>,
        opened: &OpenedPack<B::Words>,
        keys: &[&B::Keys],
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        host.respond(keys, &tournament(host).finish(&opened.bits(), partials)?)
    }

    fn recover(
        table: &PackTable,
        _: &RingKeys,
        _: &PackPending,
        target: &Target,
        bytes: &[u32],
    ) -> Zeroizing<Vec<u8>> {
        let (_, lane) = table.place(target.block);
        table.entry_layout().slot_of_lane(bytes, lane)
    }
}

fn tournament<'a, B: PackOps>(host: &PackHost<'a, B>) -> Tournament<'a, B> {
    let shape = host.table.first_shape();
    let ciphertext_words = host.ciphertext_words();
    let entries = shape.entries();
    let planes = shape.planes();
    Tournament { backend: host.backend, ring: &host.scheme.ring, entries, planes, ciphertext_words }
}
