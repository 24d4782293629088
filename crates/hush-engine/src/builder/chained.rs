//! The pack columns of a table of column packing: the hint of each plaintext, switched to one ciphertext.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

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
    BuildError, Crew,
    crew::Done,
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
    stage: StageOf<'_>,
    files: &mut Vec<FileEntry>,
) -> Result<(), BuildError> {
    let (ring, writer, progress) = (params.ring(), stage.writer, stage.progress);
    let files_of = PlaintextFiles::sizes(ring, shape);
    let journal = writer.open_journal(&files_of, shape.plaintexts(), database)?;
    let [columns, chain] = files_of.map(|(name, bytes)| writer.open_mapped(name, bytes));
    let (mut columns, chain) = (columns?, chain?);
    let written = PlaintextFiles::new(ring, shape, &mut columns, &chain);
    Stage { shape, of: stage, files: written, journal }.run(source, params)?;
    let bytes = (columns.as_bytes().len() + chain.as_bytes().len()) as u64;
    progress.start("sync", bytes, "bytes");
    files.push(columns.finish()?);
    files.push(chain.finish()?);
    progress.advance(bytes);
    Ok(())
}

/// What a stage is given: where it writes, the threads for what is done on the host, and who else computes.
pub(super) struct StageOf<'a> {
    pub(super) writer: &'a SegmentWriter<'a>,
    pub(super) cpu: &'a Cpu,
    pub(super) crew: Option<&'a dyn Crew>,
    pub(super) progress: &'a dyn Progress,
}

/// All plaintexts.
struct Stage<'a> {
    shape: &'a PackShape,
    of: StageOf<'a>,
    files: PlaintextFiles<'a>,
    journal: Journal,
}

impl Stage<'_> {
    fn run<B: ColumnOps>(&self, source: Source<'_, B>, params: &ColumnParams) -> Result<(), BuildError> {
        let all = 0..self.shape.plaintexts();
        let done = self.intact()?;
        self.of.progress.start("pack columns", all.len() as u64, "plaintexts");
        if !done.is_empty() {
            self.of.progress.resume(done.len() as u64);
        }
        let left: Vec<usize> = all.filter(|plaintext| done.binary_search(plaintext).is_err()).collect();
        // Neighbours go together: their rows are computed together.
        let neighbours = left.chunk_by(|one, next| one + 1 == *next);
        let ranges: Vec<_> = neighbours.map(|group| group[0]..group[0] + group.len()).collect();
        match self.of.crew {
            Some(crew) => self.by(crew, &ranges, left),
            None => self.here(source, params, &ranges),
        }
    }

    fn here<B: ColumnOps>(
        &self,
        source: Source<'_, B>,
        params: &ColumnParams,
        ranges: &[Range<usize>],
    ) -> Result<(), BuildError> {
        let at_once = source.backend.chain_batch().max(1);
        let chainer = Chainer::open(source, params, self.shape)?;
        for range in ranges {
            for start in range.clone().step_by(at_once) {
                let plaintexts = start..range.end.min(start + at_once);
                let contents = chainer.contents(plaintexts.clone(), self.of.cpu, self.of.progress)?;
                let numbered: Vec<_> = plaintexts.zip(contents).collect();
                let write = |(plaintext, content): (usize, Vec<u8>)| self.write(plaintext, &content);
                self.of.cpu.install(|| numbered.into_par_iter().with_max_len(1).try_for_each(write))?;
            }
        }
        Ok(())
    }

    /// By others, of whom each plaintext has to come once, as long as it is.
    fn by(&self, crew: &dyn Crew, ranges: &[Range<usize>], left: Vec<usize>) -> Result<(), BuildError> {
        let mut left: BTreeSet<usize> = left.into_iter().collect();
        let writer = self.of.writer;
        let mut take = |(plaintexts, contents): Done| -> Result<(), BuildError> {
            self.of.progress.check()?;
            if plaintexts.len() != contents.len() {
                return Err(BuildError::Crew(format!("not all of the plaintexts {plaintexts:?} came")));
            }
            for (plaintext, content) in plaintexts.zip(contents) {
                if !left.remove(&plaintext) || content.len() != self.files.content_bytes(plaintext) {
                    return Err(BuildError::Crew(format!("what came is not the plaintext {plaintext}")));
                }
                self.write(plaintext, &content)?;
            }
            Ok(())
        };
        crew.chain(writer.folder(), writer.segment(), ranges, &mut take)?;
        match left.first() {
            None => Ok(()),
            Some(plaintext) => Err(BuildError::Crew(format!("the plaintext {plaintext} did not come"))),
        }
    }

    /// The plaintexts that an earlier build has done, as it left them.
    fn intact(&self) -> Result<Vec<usize>, BuildError> {
        let progress = self.of.progress;
        if self.journal.recorded() > 0 {
            progress.start("check", self.journal.recorded() as u64, "plaintexts");
        }
        let read = |plaintext| {
            progress.advance(1);
            self.files.read(plaintext)
        };
        Ok(self.of.cpu.install(|| self.journal.intact(read))?)
    }

    /// Writes the content of a plaintext.
    fn write(&self, plaintext: usize, content: &[u8]) -> Result<(), BuildError> {
        self.files.write(plaintext, content)?;
        self.journal.record(plaintext, content)?;
        self.of.progress.advance(1);
        Ok(())
    }
}

/// Computes plaintexts of one database on a backend.
pub(super) struct Chainer<'a, B: ColumnOps> {
    params: &'a ColumnParams,
    shape: &'a PackShape,
    source: Source<'a, B>,
    ring: B::Ring,
    plan: B::ChainPlan,
}

impl<'a, B: ColumnOps> Chainer<'a, B> {
    pub(super) fn open(
        source: Source<'a, B>,
        params: &'a ColumnParams,
        shape: &'a PackShape,
    ) -> Result<Self, BuildError> {
        let context = Arc::new(RingContext::new(*params.ring()));
        let masks = ColumnMasks::new(&context);
        let ring = source.backend.open_ring(context)?;
        let plan = source.backend.open_masks(&ring, &masks)?;
        Ok(Self { params, shape, source, ring, plan })
    }

    /// The content of the files of some plaintexts, computed at once.
    pub(super) fn contents(
        &self,
        plaintexts: Range<usize>,
        cpu: &Cpu,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<u8>>, BuildError> {
        let backend = self.source.backend;
        let hints = self.hints(plaintexts.clone(), progress)?;
        let chained = backend.chain_hint(&self.ring, &self.plan, &hints.iter().collect::<Vec<_>>())?;
        let content = |(plaintext, chained): (usize, ChainedHint)| {
            let is_bounded = pack_noise::is_bounded(self.params.ring(), &chained.columns);
            if is_bounded { Ok(content(chained)) } else { Err(BuildError::PackColumns { plaintext }) }
        };
        let numbered: Vec<_> = plaintexts.zip(chained).collect();
        cpu.install(|| numbered.into_par_iter().with_max_len(1).map(content).collect())
    }

    /// The hint of each of some plaintexts. Their rows are neighbours, and computed together.
    fn hints(&self, plaintexts: Range<usize>, progress: &dyn Progress) -> Result<Vec<B::Words>, BuildError> {
        let (shape, n) = (self.shape, self.params.lwe().n());
        let rows = shape.rows_of(plaintexts.clone());
        let all = self.source.hint(rows.clone(), &Quiet(progress))?;
        let hint = |plaintext| {
            let own = shape.plaintext_rows(plaintext);
            let words = (own.start - rows.start) * n..(own.end - rows.start) * n;
            Ok(self.source.backend.join(&[(&all, words)])?)
        };
        plaintexts.map(hint).collect()
    }
}
