//! The products of a segment's hint: files that the server keeps beside the database, or that clients download. They are
//! computed after the database is written.

use hush_cpu::Cpu;
use hush_he::{
    codec::packed_bytes,
    entities::{PublicMatrix, PublicSeed},
};
use hush_ops::contract::{LweOps, Steps};
use hush_protocol::{
    descriptor::BlobRef,
    facts::{HintPlan, HintProduct, SecondDb},
};
use hush_store::snapshot::{
    DB_FILE, FileEntry, HINT_FILE, Journal, LIFTED_FILE, MappedOutput, SECOND_DB_FILE,
};

use super::{
    chained::ChainedWorker,
    download::{DownloadWorker, HintFile},
    hint::{HintSource, steps},
    lifted::{LiftedFile, LiftedWorker},
    pieces::{Pieces, Stage, StageContext, Worker},
    plaintext_files::PlaintextFiles,
    words::{HintWords, WHOLE},
};
use crate::builder::BuildError;

/// Returns the worker that computes pieces of a product from the database of `source`.
pub(in crate::builder) fn worker<'a, B: Steps>(
    product: &HintProduct,
    source: HintSource<'a, B>,
    seed: PublicSeed,
    cpu: &'a Cpu,
) -> Result<Box<dyn Worker + 'a>, BuildError> {
    Ok(match product {
        HintProduct::Download { bits } => Box::new(DownloadWorker { source, bits: *bits }),
        HintProduct::Lifted { ring, shape } => Box::new(LiftedWorker::open(source, ring, shape)?),
        HintProduct::Chained { params, shape, mask_bits } => {
            Box::new(ChainedWorker::open(source, params, shape, *mask_bits, seed, cpu)?)
        }
    })
}

/// A product of a hint that is about to be computed.
pub(crate) struct HintStage<'a> {
    pub(in crate::builder) plan: &'a HintPlan,
    /// The seed of the table's public values.
    pub(in crate::builder) seed: PublicSeed,
    /// The hash of the segment's database.
    pub(in crate::builder) database: [u8; 32],
    /// The reference to the file that clients download, set when that file is written.
    pub(in crate::builder) hint: &'a mut Option<BlobRef>,
    pub(in crate::builder) context: StageContext<'a>,
    pub(in crate::builder) files: &'a mut Vec<FileEntry>,
}

impl<'a> HintStage<'a> {
    /// Computes the product on `backends`, which share the work, and writes it.
    pub(crate) fn run<'b, B: Steps>(mut self, backends: &[&'b B]) -> Result<(), BuildError>
    where
        'a: 'b,
    {
        let plan = self.plan;
        let seed = self.seed;
        let mut rows = plan.rows;
        let mut shape = plan.matrix;
        let mut name = DB_FILE;
        if let Some(second) = &plan.second {
            self.write_second(second, backends)?;
            (rows, shape, name) = (second.tiling.rows(), second.matrix, SECOND_DB_FILE);
        }
        let matrix = PublicMatrix::new(seed, shape);
        let cpu = self.context.cpu;
        let path = self.context.writer.path(name);
        let workers = |most| {
            backends
                .iter()
                .take(most)
                .map(|backend: &&'b B| {
                    worker(&plan.product, HintSource::open(*backend, matrix, rows, &path)?, seed, cpu)
                })
                .collect()
        };
        match &plan.product {
            HintProduct::Download { bits } => {
                let row_bytes = packed_bytes(matrix.n(), *bits);
                let (journal, files) = self.opened(&[(HINT_FILE, rows * row_bytes)], steps(rows))?;
                let pieces = HintFile { file: &files[0], rows, row_bytes };
                self.stage(("hint", "rows"), &pieces, journal).run(workers)?;
                *self.hint = Some(downloaded(&files[0])?);
                self.finish(files)
            }
            HintProduct::Lifted { ring, shape } => {
                let tiling = LiftedFile::tiling(ring, shape, matrix.n())?;
                let (journal, files) = self.opened(&[(LIFTED_FILE, tiling.bytes())], tiling.tiles())?;
                let pieces = LiftedFile { file: &files[0], tiling, shape: *shape, rows };
                self.stage(("hint", "rows"), &pieces, journal).run(workers)?;
                self.finish(files)
            }
            HintProduct::Chained { params, shape, mask_bits } => {
                let sizes = PlaintextFiles::sizes(params.ring(), shape, *mask_bits);
                let (journal, mut files) = self.opened(&sizes, shape.plaintexts())?;
                let pieces = PlaintextFiles::new(params.ring(), shape, *mask_bits, &mut files);
                self.stage(("pack columns", "plaintexts"), &pieces, journal).run(workers)?;
                if let Some(file) = files.get(2) {
                    *self.hint = Some(downloaded(file)?);
                }
                self.finish(files)
            }
        }
    }

    /// Writes the second database, which is made from the whole hint of the first one. A killed build repeats this.
    fn write_second<'b, B: LweOps>(
        &mut self,
        second: &SecondDb,
        backends: &[&'b B],
    ) -> Result<(), BuildError> {
        let matrix = PublicMatrix::new(self.seed, self.plan.matrix);
        let rows = self.plan.rows;
        let writer = self.context.writer;
        let words = HintWords::new(rows, matrix.n());
        let name = ("hint", "rows");
        let stage = Stage { name, context: self.context, pieces: &words, journal: None, is_first: true };
        stage.run(|most| {
            backends
                .iter()
                .take(most)
                .map(|backend: &&'b B| -> Result<Box<dyn Worker + 'b>, BuildError> {
                    let source = HintSource::open(*backend, matrix, rows, &writer.path(DB_FILE))?;
                    Ok(Box::new(DownloadWorker { source, bits: WHOLE }))
                })
                .collect()
        })?;
        let words = words.into_words().into();
        let db = self.context.cpu.reinterpret_lwe(&words, 1, second.items, second.digits)?;
        let mut file = writer.create_mapped(SECOND_DB_FILE, db.bytes().len())?;
        file.bytes().copy_from_slice(db.bytes());
        self.files.push(file.finish()?);
        Ok(())
    }

    /// Opens files, by name and length in bytes, with the journal of their pieces. Pieces that a killed build has recorded, and
    /// that are intact, are not computed again.
    fn opened(
        &self,
        files: &[(&'static str, usize)],
        pieces: usize,
    ) -> Result<(Journal, Vec<MappedOutput>), BuildError> {
        let writer = self.context.writer;
        let journal = writer.open_journal(files, pieces, self.database)?;
        let opened = files.iter().map(|(name, bytes)| writer.open_mapped(name, *bytes));
        Ok((journal, opened.collect::<Result<_, _>>()?))
    }

    fn stage<'s>(
        &self,
        name: (&'static str, &'static str),
        pieces: &'s dyn Pieces,
        journal: Journal,
    ) -> Stage<'s>
    where
        Self: 's,
    {
        Stage { name, context: self.context, pieces, journal: Some(journal), is_first: false }
    }

    /// Makes the files durable and adds them to the table's files.
    fn finish(self, files: Vec<MappedOutput>) -> Result<(), BuildError> {
        let bytes = files.iter().map(|file| file.as_bytes().len() as u64).sum();
        self.context.progress.start("sync", bytes, "bytes");
        for file in files {
            self.files.push(file.finish()?);
        }
        self.context.progress.advance(bytes);
        Ok(())
    }
}

/// Returns the reference to a file that clients download.
fn downloaded(file: &MappedOutput) -> Result<BlobRef, BuildError> {
    Ok(BlobRef { blake3: file.blob_hash()?, bytes: file.as_bytes().len() as u64 })
}
