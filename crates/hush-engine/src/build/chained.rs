//! The pack columns of a table of column packing: the hint of each plaintext, switched to one ciphertext.

use std::{ops::Range, sync::Arc};

use hush_cpu::Cpu;
use hush_he::params::RingContext;
use hush_ops::{
    contract::{ColumnOps, LweOps, RingOps},
    tiling::TiledDb,
};
use hush_protocol::{column_packing::ColumnScheme, column_table::ColumnTable};
use hush_store::snapshot::{
    CHAIN_FILE, COLUMNS_FILE, DB_FILE, FileEntry, Journal, MappedFile, SnapshotWriter,
};
use rayon::prelude::*;

use super::{
    BuildError,
    hint::Source,
    pack_noise,
    plaintext_files::{PlaintextFiles, content},
};
use crate::Progress;

/// Writes the pack columns of the database that was written before, and the polynomials of the chain. Plaintexts that are in the
/// journal of a killed build, as they were written, are not done again. `database` is the database's hash.
///
/// Memory: some 150 MiB for each thread, which works on a plaintext of its own.
pub(super) fn write(
    table: &ColumnTable,
    database: [u8; 32],
    writer: &SnapshotWriter,
    cpu: &Cpu,
    progress: &dyn Progress,
    files: &mut Vec<FileEntry>,
) -> Result<(), BuildError> {
    let map = Arc::new(MappedFile::open(&writer.partial_dir().join(DB_FILE))?);
    let db = cpu.open_db(TiledDb::new(table.tiling(), map)?)?;
    let sizes = [
        (COLUMNS_FILE, table.columns_tiling().bytes()),
        (CHAIN_FILE, size_of::<u32>() * table.chain_words()),
    ];
    let journal = writer.open_journal(&sizes, table.pack_shape().plaintexts(), database)?;
    let [columns, chain] = sizes.map(|(name, bytes)| writer.open_mapped(name, bytes));
    let (mut columns, chain) = (columns?, chain?);
    let ring = cpu.open_ring(Arc::new(RingContext::new(*table.params().ring())));
    let plan = cpu.open_masks(&ring, ColumnScheme::new(table.params()).masks());
    let stage = Stage {
        table,
        cpu,
        source: Source { cpu, db, matrix: table.matrix(), rows: table.rows() },
        ring,
        plan,
        files: PlaintextFiles::new(table, &mut columns, &chain),
        journal,
        progress,
    };
    stage.run()?;
    let bytes = (columns.as_bytes().len() + chain.as_bytes().len()) as u64;
    progress.start("sync", bytes, "bytes");
    files.push(columns.finish()?);
    files.push(chain.finish()?);
    progress.advance(bytes);
    Ok(())
}

/// All plaintexts.
struct Stage<'a> {
    table: &'a ColumnTable,
    cpu: &'a Cpu,
    source: Source<'a>,
    ring: <Cpu as RingOps>::Ring,
    plan: <Cpu as ColumnOps>::ChainPlan,
    files: PlaintextFiles<'a>,
    journal: Journal,
    progress: &'a dyn Progress,
}

impl Stage<'_> {
    fn run(&self) -> Result<(), BuildError> {
        let all = 0..self.table.pack_shape().plaintexts();
        let done = self.intact();
        self.progress.start("pack columns", all.len() as u64, "plaintexts");
        if !done.is_empty() {
            self.progress.resume(done.len() as u64);
        }
        let left: Vec<usize> = all.filter(|plaintext| done.binary_search(plaintext).is_err()).collect();
        // Neighbours go together: their rows are computed together.
        for neighbours in left.chunk_by(|one, next| one + 1 == *next) {
            for group in neighbours.chunks(self.cpu.threads()) {
                self.chain(group[0]..group[0] + group.len())?;
            }
        }
        Ok(())
    }

    /// The plaintexts that an earlier build has done, as it left them.
    fn intact(&self) -> Vec<usize> {
        if self.journal.recorded() > 0 {
            self.progress.start("check", self.journal.recorded() as u64, "plaintexts");
        }
        let read = |plaintext| {
            self.progress.advance(1);
            self.files.read(plaintext)
        };
        self.cpu.install(|| self.journal.intact(read))
    }

    /// Computes and writes some plaintexts, each on a thread.
    fn chain(&self, plaintexts: Range<usize>) -> Result<(), BuildError> {
        let (shape, n) = (self.table.pack_shape(), self.table.params().lwe().n());
        let rows = shape.rows_of(plaintexts.clone());
        let hint = self.source.hint(rows.clone(), &crate::Silent)?;
        let chain = |plaintext| {
            let own = shape.plaintext_rows(plaintext);
            let words = &hint[(own.start - rows.start) * n..(own.end - rows.start) * n];
            let chained = self.cpu.chain_hint(&self.ring, &self.plan, words)?;
            if !pack_noise::is_bounded(self.table, &chained.columns) {
                return Err(BuildError::PackColumns { plaintext });
            }
            let content = content(chained);
            self.files.write(plaintext, &content)?;
            self.journal.record(plaintext, &content)?;
            self.progress.advance(1);
            Ok(())
        };
        self.cpu.install(|| plaintexts.into_par_iter().try_for_each(chain))
    }
}
