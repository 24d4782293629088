//! A table laid out: what is known before anything is computed from its database.

use hush_protocol::{
    descriptor::{DESCRIPTOR_VERSION, Descriptor, Lookup, WhiteningSeed},
    slot::SlotFormat,
    table::TableParams,
};
use hush_store::snapshot::{Identity, MappedOutput, State};

use super::BuildError;
use crate::Progress;

/// A table laid out, before the hint.
pub(super) struct Laid {
    pub(super) params: TableParams,
    pub(super) slot: SlotFormat,
    pub(super) lookup: Lookup,
    pub(super) db: MappedOutput,
    /// Over rings.
    pub(super) whitening: Option<WhiteningSeed>,
}

impl Laid {
    /// Makes the database durable, and a state of it all.
    pub(super) fn finish(
        self,
        identity: Identity,
        records: usize,
        progress: &dyn Progress,
    ) -> Result<State, BuildError> {
        let encoded = self.params.encoded_bytes() as u64;
        progress.start("sync", encoded, "bytes");
        let (word_bits, shape) = (word_bits(&self.params), self.params.shape());
        let descriptor = Descriptor {
            version: DESCRIPTOR_VERSION,
            epoch: [0; 32],
            protocol: self.params.protocol(),
            preset: self.params.preset().into(),
            records: records as u64,
            columns: shape.columns,
            blocks: shape.blocks,
            word_bits,
            slot: self.slot,
            lookup: self.lookup,
            hint: None,
            whitening: self.whitening,
            database: self.db.blob_hash()?,
        };
        let database = self.db.finish()?;
        progress.advance(encoded);
        Ok(State { identity, descriptor, database })
    }
}

/// Bits of the words of a query, a hint and an answer, as a descriptor has them.
fn word_bits(params: &TableParams) -> Option<[u32; 3]> {
    match params {
        TableParams::Lwe(table) => {
            let widths = table.widths();
            Some([widths.query, widths.hint, widths.answer])
        }
        TableParams::Ring(_) => None,
        TableParams::Pack(table) => {
            let packed_bits = table.params().ring().plaintext_bits();
            Some([table.query_bits(), packed_bits, packed_bits])
        }
        TableParams::Column(table) => Some([table.query_bits(), u32::BITS, u32::BITS]),
    }
}
