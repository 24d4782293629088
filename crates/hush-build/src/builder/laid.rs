//! A table laid out: what is known before anything is computed from its database.

use hush_engine::Progress;
use hush_ingest::SpooledRecords;
use hush_protocol::{
    any_page::TableParams,
    descriptor::{DESCRIPTOR_VERSION, Descriptor, Lookup, Segment, WhiteningSeed},
    slot::SlotFormat,
};
use hush_store::snapshot::{FileEntry, Identity, MappedOutput, State};

use super::BuildError;

/// A table laid out, before the hint.
pub(super) struct Laid {
    pub(super) params: TableParams,
    pub(super) slot: SlotFormat,
    pub(super) lookup: Lookup,
    pub(super) base: Written,
    /// The segments beside the base, with their databases to come.
    pub(super) beside: Vec<(Segment, Written)>,
}

/// The database of a segment.
pub(super) struct Written {
    pub(super) db: MappedOutput,
    /// Over rings.
    pub(super) whitening: Option<WhiteningSeed>,
}

impl Written {
    /// Makes the database of a segment beside the base durable.
    pub(super) fn finish(self, segment: Segment) -> Result<(Segment, FileEntry), BuildError> {
        let database = self.db.finish()?;
        let segment = Segment { whitening: self.whitening, database: database.digest(), ..segment };
        Ok((segment, database))
    }
}

impl Laid {
    /// Makes the databases durable, and a state of it all.
    pub(super) fn finish(
        self,
        identity: Identity,
        records: &SpooledRecords,
        progress: &dyn Progress,
    ) -> Result<State, BuildError> {
        let facts = self.params.facts().clone();
        progress.start("sync", facts.encoded_bytes, "bytes");
        let whitening = self.base.whitening;
        let database = self.base.db.finish()?;
        let (mut databases, mut segments) = (vec![database.clone()], Vec::new());
        for (segment, written) in self.beside {
            let (segment, database) = written.finish(segment)?;
            segments.push(segment);
            databases.push(database);
        }
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
            form: self.params.database().form(),
            slot: self.slot,
            schema: records.columns().cloned(),
            compression: None,
            lookup: self.lookup,
            hint: None,
            whitening,
            database: database.digest(),
            segments,
            signature: None,
        };
        Ok(State { identity, descriptor, choice: None, changes: None, files: databases })
    }
}
