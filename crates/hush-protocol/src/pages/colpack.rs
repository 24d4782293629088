//! Column packing, path (1)(3c)(7h): SimplePIR whose answer is packed with keys that are part of the query, and folded to
//! the wanted entry. The client downloads and uploads nothing beforehand, and neither side keeps state.
//!
//! | message | content                                                                    | size (`ColumnTable`) |
//! |---------|----------------------------------------------------------------------------|----------------------|
//! | query   | a vector over the columns; rotation key, conjugation key, an RGSW ciphertext of a power of X | `query_bytes` |
//! | answer  | a ciphertext for every plane of the entry, rounded                         | `answer_bytes`       |
//!
//! All parts of a query are under one secret, drawn for that query ([`crate::column_page`]). Source: InsPIRe (ePrint
//! 2025/1352), for packing and for the fold by one power of X. ReinsPIRe (ePrint 2026/1934) also has packing as one matrix
//! product. Here the matrix is bytes beside those of the table, so the fold keeps its modulus of 2^32. Ours: a fold of
//! ciphertexts, not of the table; key look-ups.

use hush_he::{entities::RlweSecret, params::ResponseBits};
use hush_ops::{
    contract::{ColumnOps, LweBatch, PowerKeys, SentPoly},
    path::Step,
    steps::{Respond, RgswPowerFold},
};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    column_page::{ColumnClient, ColumnHead, ColumnHost, ColumnPage, OpenedColumn},
    column_table::{ColumnSpec, ColumnTable},
    registry::Protocol,
    response::decrypt_plaintexts,
    target::Target,
};

/// The page of `colpack`.
pub struct Colpack;

impl ColumnPage for Colpack {
    const NAME: &'static str = "colpack";
    const SPEC: ColumnSpec = ColumnSpec { protocol: Protocol::Colpack, folds: true };

    fn path_behind(table: &ColumnTable) -> Vec<Step> {
        let ring = *table.params().ring();
        let shape = table.pack_shape();
        let respond = Respond { ring, plaintexts: table.answer_plaintexts() };
        vec![Step::of_batch(RgswPowerFold { ring, shape }), Step::of_batch(respond)]
    }

    fn finish<B: ColumnOps>(
        host: &ColumnHost<'_, B>,
        head: &ColumnHead<B>,
        opened: &OpenedColumn,
        packed: LweBatch<B::Words>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let backend = host.backend;
        let table = host.table;
        let ring = &host.scheme.ring;
        let chain = head.as_ref().expect("entries are folded");
        // A segment of one entry needs no fold, even if the query has a power for other segments.
        let bodies: Vec<_> =
            opened.keys.iter().map(|keys| keys.power.as_ref().filter(|_| table.folds())).collect();
        let powers = PowerKeys { masks: host.scheme.public.masks().power(), bodies: &bodies };
        let chosen = backend.rgsw_power_fold(ring, chain, &packed, powers)?; //   (7h)  a ciphertext a plane
        let degree = table.params().ring().degree();
        let ResponseBits { a, b } = table.response_bits();
        let sent = [a, b].map(|bits| SentPoly::whole(degree, bits)).repeat(chosen.count());
        // The ciphertexts of all queries are one batch. A polynomial is a whole number of bytes, and so is an answer.
        let answers = backend.mod_switch(ring, &[&chosen.words], 0, &sent)?.remove(0);
        Ok(answers.chunks(table.answer_bytes()).map(<[u8]>::to_vec).collect())
    }

    fn recover(
        table: &ColumnTable,
        client: &ColumnClient,
        secret: &RlweSecret,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let (secrets, bits, plaintexts) = ([secret; 2], table.response_bits(), table.answer_plaintexts());
        let context = client.ring.context();
        let bytes = decrypt_plaintexts(context, secrets, answer, bits, plaintexts, u8::BITS)?;
        let (_, lane) = table.place(target.block);
        Ok(table.entry_layout().slot_of_lane(&bytes, lane))
    }
}
