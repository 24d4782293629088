//! The pack columns of a table of column packing: the hint of each plaintext, switched to one ciphertext.

use std::{ops::Range, sync::Arc};

use hush_cpu::Cpu;
use hush_he::{
    entities::ColumnMasks,
    params::{ColumnParams, RingContext},
};
use hush_ops::{
    contract::{ChainedHint, ColumnOps},
    pack_shape::PackShape,
};
use hush_store::snapshot::{FileEntry, Journal, SegmentWriter};
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
    source: Source<'_, B>,
    (params, shape): (&ColumnParams, &PackShape),
    database: [u8; 32],
    writer: &SegmentWriter<'_>,
    cpu: &Cpu,
    progress: &dyn Progress,
    files: &mut Vec<FileEntry>,
) -> Result<(), BuildError> {
    let (ring, backend) = (params.ring(), source.backend);
    let files_of = PlaintextFiles::sizes(ring, shape);
    let journal = writer.open_journal(&files_of, shape.plaintexts(), database)?;
    let [columns, chain] = files_of.map(|(name, bytes)| writer.open_mapped(name, bytes));
    let (mut columns, chain) = (columns?, chain?);
    let context = Arc::new(RingContext::new(*ring));
    let masks = ColumnMasks::new(&context);
    let opened = backend.open_ring(context)?;
    let plan = backend.open_masks(&opened, &masks)?;
    let stage = Stage {
        params,
        shape,
        cpu,
        ring: opened,
        plan,
        source,
        files: PlaintextFiles::new(ring, shape, &mut columns, &chain),
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
    params: &'a ColumnParams,
    shape: &'a PackShape,
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
        let all = 0..self.shape.plaintexts();
        let done = self.intact()?;
        self.progress.start("pack columns", all.len() as u64, "plaintexts");
        if !done.is_empty() {
            self.progress.resume(done.len() as u64);
        }
        let left: Vec<usize> = all.filter(|plaintext| done.binary_search(plaintext).is_err()).collect();
        // Neighbours go together: their rows are computed together.
        for neighbours in left.chunk_by(|one, next| one + 1 == *next) {
            for group in neighbours.chunks(self.source.backend.chain_batch().max(1)) {
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
        let chained =
            self.source.backend.chain_hint(&self.ring, &self.plan, &hints.iter().collect::<Vec<_>>())?;
        drop(hints);
        let write = |(plaintext, chained)| self.write(plaintext, chained);
        let numbered: Vec<_> = plaintexts.zip(chained).collect();
        self.cpu.install(|| numbered.into_par_iter().with_max_len(1).try_for_each(write))
    }

    /// The hint of each of some plaintexts. Their rows are neighbours, and computed together.
    fn hints(&self, plaintexts: Range<usize>) -> Result<Vec<B::Words>, BuildError> {
        let (shape, n) = (self.shape, self.params.lwe().n());
        let rows = shape.rows_of(plaintexts.clone());
        let all = self.source.hint(rows.clone(), &Quiet(self.progress))?;
        let hint = |plaintext| {
            let own = shape.plaintext_rows(plaintext);
            let words = (own.start - rows.start) * n..(own.end - rows.start) * n;
            Ok(self.source.backend.join(&[(&all, words)])?)
        };
        plaintexts.map(hint).collect()
    }

    /// Writes a plaintext.
    fn write(&self, plaintext: usize, chained: ChainedHint) -> Result<(), BuildError> {
        if !pack_noise::is_bounded(self.params.ring(), &chained.columns) {
            return Err(BuildError::PackColumns { plaintext });
        }
        let content = content(chained);
        self.files.write(plaintext, &content)?;
        self.journal.record(plaintext, &content)?;
        self.progress.advance(1);
        Ok(())
    }
}
