//! A table laid out: what is known before anything is computed from its database.

use hush_protocol::{
    any_page::TableParams,
    descriptor::{DESCRIPTOR_VERSION, Descriptor, Lookup, WhiteningSeed},
    slot::SlotFormat,
};
use hush_store::{
    ingest::SpooledRecords,
    snapshot::{Identity, MappedOutput, State},
};

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
        records: &SpooledRecords,
        progress: &dyn Progress,
    ) -> Result<State, BuildError> {
        let facts = self.params.facts();
        progress.start("sync", facts.encoded_bytes, "bytes");
        let database = self.db.finish()?;
        progress.advance(facts.encoded_bytes);
        let descriptor = Descriptor {
            version: DESCRIPTOR_VERSION,
            epoch: [0; 32],
            protocol: facts.protocol,
            preset: facts.preset.into(),
            records: records.len() as u64,
            columns: facts.shape.columns,
            blocks: facts.shape.blocks,
            word_bits: facts.word_bits,
            slot: self.slot,
            fields: records.fields().cloned(),
            lookup: self.lookup,
            hint: None,
            whitening: self.whitening,
            database: database.digest(),
            signature: None,
        };
        Ok(State { identity, descriptor, database })
    }
}
