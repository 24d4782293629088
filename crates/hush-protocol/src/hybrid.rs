//! hybrid, path (1)(3)(7)...(7): the packed answer of ExpPack(S), folded to the entry that is asked for.
//!
//! One expansion serves both: its leaves are the coefficients of the LWE secret, then the bits of the entry.
//!
//! | message | what                                                                            | size (`PackTable`) |
//! |---------|---------------------------------------------------------------------------------|--------------------|
//! | keys    | Subs keys, s^2 key, pair-packing key; seeded, uploaded once                     | `RingParams::key_words_bytes` |
//! | query   | a vector over the columns; the LWE secret and the bits of the entry under RLWE  | `query_bytes`      |
//! | answer  | the entry's planes, packed in pairs, rounded                                    | `answer_bytes`     |
//!
//! Source: VIPIR section 3.4 (hybrid). Ours: as in `exppack-s`; a key for s^2 in place of RGSW(s).

use hush_he::params::PackParams;
use hush_ops::{
    contract::{EntryOrder, LweBatch, PackOps},
    path::{Step, StepShape},
};
use zeroize::Zeroizing;

use crate::{
    ProtocolError, layout,
    pack_page::{OpenedPack, PackHead, PackHost, PackPage, PackPart, PackPending},
    pack_table::{PackSpec, PackTable, Second},
    page::Partial,
    registry::Protocol,
    ring_keys::RingKeys,
    target::Target,
    tournament::Tournament,
};

/// The page.
pub struct Hybrid;

impl PackPage for Hybrid {
    const NAME: &'static str = "hybrid";
    const SPEC: PackSpec = PackSpec { protocol: Protocol::Hybrid, second: Second::None, folds: true };

    fn columns(params: &PackParams, slots: usize, slot_bytes: usize) -> usize {
        layout::expansion_columns(params, 0.0, slots, slot_bytes)
    }

    fn path_behind(table: &PackTable) -> Vec<Step> {
        let (ring, first) = (*table.params().ring(), table.first_shape());
        let (entries, planes) = (first.entries(), first.planes());
        let steps = [
            StepShape::Pack { ring, hint: table.hint_tiling(), shape: first },
            StepShape::RgswFold { ring, entries, planes, parts: 1 },
            StepShape::Respond { ring, plaintexts: planes },
        ];
        steps.map(Step::of_batch).to_vec()
    }

    fn scan<B: PackOps>(
        host: &PackHost<'_, B>,
        part: &PackPart<B>,
        opened: &OpenedPack<B::Words>,
        folded: LweBatch<B::Words>,
    ) -> Result<Vec<B::Words>, ProtocolError> {
        let packed = host.pack_first(part, &folded, &opened.selectors())?; //       (3)  a ciphertext a plane and entry
        let (entries, order) = (packed.iter().collect::<Vec<_>>(), EntryOrder::EntryMajor);
        Ok(tournament(host).play(&part.units, &entries, order, &opened.bits())?) // (7)  one a plane
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
    let (shape, ciphertext_words) = (host.table.first_shape(), host.ciphertext_words());
    let (entries, planes) = (shape.entries(), shape.planes());
    Tournament { backend: host.backend, ring: &host.scheme.ring, entries, planes, ciphertext_words }
}
