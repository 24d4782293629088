//! The pack columns of a table of column packing: the hint of each plaintext, switched to one ciphertext.

use std::{ops::Range, sync::Arc};

use hush_cpu::Cpu;
use hush_he::params::RingContext;
use hush_ops::{
    contract::{ChainedHint, ColumnOps},
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
use crate::{Progress, progress::Quiet};

/// Writes the pack columns of the database that was written before, and the polynomials of the chain. Plaintexts that are in the
/// journal of a killed build, as they were written, are not done again. `database` is the database's hash.
///
/// Memory: some 150 MiB for each plaintext that the backend takes at once; on the CPU that is one for each thread.
pub(super) fn write<B: ColumnOps>(
    table: &ColumnTable,
    database: [u8; 32],
    writer: &SnapshotWriter,
    (backend, cpu): (&B, &Cpu),
    progress: &dyn Progress,
    files: &mut Vec<FileEntry>,
) -> Result<(), BuildError> {
    let map = Arc::new(MappedFile::open(&writer.partial_dir().join(DB_FILE))?);
    let db = backend.open_db(TiledDb::new(table.tiling(), map)?)?;
    let sizes = [
        (COLUMNS_FILE, table.columns_tiling().bytes()),
        (CHAIN_FILE, size_of::<u32>() * table.chain_words()),
    ];
    let journal = writer.open_journal(&sizes, table.pack_shape().plaintexts(), database)?;
    let [columns, chain] = sizes.map(|(name, bytes)| writer.open_mapped(name, bytes));
    let (mut columns, chain) = (columns?, chain?);
    let ring = backend.open_ring(Arc::new(RingContext::new(*table.params().ring())))?;
    let plan = backend.open_masks(&ring, ColumnScheme::new(table.params()).masks())?;
    let stage = Stage {
        table,
        backend,
        cpu,
        source: Source { backend, db, matrix: table.matrix(), rows: table.rows() },
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
struct Stage<'a, B: ColumnOps> {
    table: &'a ColumnTable,
    backend: &'a B,
    /// For what is done on the host.
    cpu: &'a Cpu,
    source: Source<'a, B>,
    ring: B::Ring,
    plan: B::ChainPlan,
    files: PlaintextFiles<'a>,
    journal: Journal,
    progress: &'a dyn Progress,
}

impl<B: ColumnOps> Stage<'_, B> {
    fn run(&self) -> Result<(), BuildError> {
        let all = 0..self.table.pack_shape().plaintexts();
        let done = self.intact()?;
        self.progress.start("pack columns", all.len() as u64, "plaintexts");
        if !done.is_empty() {
            self.progress.resume(done.len() as u64);
        }
        let left: Vec<usize> = all.filter(|plaintext| done.binary_search(plaintext).is_err()).collect();
        // Neighbours go together: their rows are computed together.
        for neighbours in left.chunk_by(|one, next| one + 1 == *next) {
            for group in neighbours.chunks(self.backend.chain_batch().max(1)) {
                self.chain(group[0]..group[0] + group.len())?;
            }
        }
        Ok(())
    }

    /// The plaintexts that an earlier build has done, as it left them.
    fn intact(&self) -> Result<Vec<usize>, BuildError> {
        if self.journal.recorded() > 0 {
            self.progress.start("check", self.journal.recorded() as u64, "plaintexts");
        }
        let read = |plaintext| {
            self.progress.advance(1);
            self.files.read(plaintext)
        };
        Ok(self.cpu.install(|| self.journal.intact(read))?)
    }

    /// Computes some plaintexts at once, and writes them.
    fn chain(&self, plaintexts: Range<usize>) -> Result<(), BuildError> {
        let hints = self.hints(plaintexts.clone())?;
        let chained = self.backend.chain_hint(&self.ring, &self.plan, &hints.iter().collect::<Vec<_>>())?;
        drop(hints);
        let write = |(plaintext, chained)| self.write(plaintext, chained);
        let numbered: Vec<_> = plaintexts.zip(chained).collect();
        self.cpu.install(|| numbered.into_par_iter().with_max_len(1).try_for_each(write))
    }

    /// The hint of each of some plaintexts. Their rows are neighbours, and computed together.
    fn hints(&self, plaintexts: Range<usize>) -> Result<Vec<B::Words>, BuildError> {
        let (shape, n) = (self.table.pack_shape(), self.table.params().lwe().n());
        let rows = shape.rows_of(plaintexts.clone());
        let all = self.source.hint(rows.clone(), &Quiet(self.progress))?;
        let hint = |plaintext| {
            let own = shape.plaintext_rows(plaintext);
            let words = (own.start - rows.start) * n..(own.end - rows.start) * n;
            Ok(self.backend.join(&[(&all, words)])?)
        };
        plaintexts.map(hint).collect()
    }

    /// Writes a plaintext.
    fn write(&self, plaintext: usize, chained: ChainedHint) -> Result<(), BuildError> {
        if !pack_noise::is_bounded(self.table, &chained.columns) {
            return Err(BuildError::PackColumns { plaintext });
        }
        let content = content(chained);
        self.files.write(plaintext, &content)?;
        self.journal.record(plaintext, &content)?;
        self.progress.advance(1);
        Ok(())
    }
}
