//! A laid-out table: its state before anything is computed from its databases.

use hush_engine::Progress;
use hush_ingest::SpooledRecords;
use hush_protocol::{
    any_page::TableParams,
    descriptor::{DESCRIPTOR_VERSION, Descriptor, Lookup, Segment, WhiteningSeed},
    slot::SlotFormat,
};
use hush_store::snapshot::{FileEntry, Identity, MappedOutput, State};

use crate::builder::BuildError;

/// A laid-out table, before its hint is computed.
pub(in crate::builder) struct LaidTable {
    pub(in crate::builder) params: TableParams,
    pub(in crate::builder) slot: SlotFormat,
    pub(in crate::builder) lookup: Lookup,
    pub(in crate::builder) base: Written,
    /// The segments beside the base. The hash of each database is set when the database is finished.
    pub(in crate::builder) beside: Vec<(Segment, Written)>,
}

/// The written database of a segment.
pub(in crate::builder) struct Written {
    pub(in crate::builder) db: MappedOutput,
    /// The whitening seed of a database over rings; `None` for other databases.
    pub(in crate::builder) whitening: Option<WhiteningSeed>,
}

impl Written {
    /// Makes the database of a segment beside the base durable. Returns the segment with the hash of the database, and the file.
    pub(in crate::builder) fn finish(self, segment: Segment) -> Result<(Segment, FileEntry), BuildError> {
        let database = self.db.finish()?;
        let segment = Segment { whitening: self.whitening, database: database.digest(), ..segment };
        Ok((segment, database))
    }
}

impl LaidTable {
    /// Makes the databases durable, and returns the state that a killed build resumes from.
    pub(in crate::builder) fn finish(
        self,
        identity: Identity,
        records: &SpooledRecords,
        progress: &dyn Progress,
    ) -> Result<State, BuildError> {
        let facts = self.params.facts().clone();
        progress.start("sync", facts.encoded_bytes, "bytes");
        let whitening = self.base.whitening;
        let database = self.base.db.finish()?;
        let mut databases = vec![database.clone()];
        let mut segments = Vec::new();
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
            sorted: None,
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
