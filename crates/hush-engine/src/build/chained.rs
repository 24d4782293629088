//! The pack columns of a table of column packing: the hint of each plaintext, switched to one ciphertext.

use std::{ops::Range, sync::Arc};

use hush_cpu::Cpu;
use hush_he::params::RingContext;
use hush_ops::{
    contract::{ChainedHint, ColumnOps, LweOps, RingOps},
    tiling::TiledDb,
};
use hush_protocol::{column_packing::ColumnScheme, column_table::ColumnTable};
use hush_store::{
    snapshot::{CHAIN_FILE, COLUMNS_FILE, DB_FILE, FileEntry, MappedFile, MappedOutput, SnapshotWriter},
    tiles::TileWriter,
};
use rayon::prelude::*;

use super::{BuildError, hint::Source};
use crate::Progress;

/// Writes the pack columns of the database that was written before, and the polynomials of the chain: digits of all
/// plaintexts, then masks.
///
/// Memory: some 150 MiB for each thread, which works on a plaintext of its own.
pub(super) fn write(
    table: &ColumnTable,
    writer: &SnapshotWriter,
    cpu: &Cpu,
    progress: &dyn Progress,
    files: &mut Vec<FileEntry>,
) -> Result<(), BuildError> {
    let map = Arc::new(MappedFile::open(&writer.partial_dir().join(DB_FILE))?);
    let db = cpu.open_db(TiledDb::new(table.tiling(), map)?)?;
    let source = Source { cpu, db, matrix: table.matrix(), rows: table.rows() };
    let mut columns = writer.create_mapped(COLUMNS_FILE, table.columns_tiling().bytes())?;
    let chain = writer.create_mapped(CHAIN_FILE, size_of::<u32>() * table.chain_words())?;
    let tiles = TileWriter::new(table.columns_tiling(), columns.bytes());
    let steps = Steps::new(table, cpu);
    progress.start("pack columns", table.rows() as u64, "rows");
    let plaintexts = table.pack_shape().plaintexts();
    for first in (0..plaintexts).step_by(cpu.threads()) {
        let group = first..plaintexts.min(first + cpu.threads());
        for (plaintext, chained) in group.clone().zip(steps.chain(&source, group)?) {
            let rows = table.pack_shape().plaintext_rows(plaintext);
            tiles.write_rows(rows.start, &chained.columns);
            write_polys(&chain, table, plaintext, &chained)?;
            progress.advance(rows.len() as u64);
        }
    }
    let bytes = (columns.as_bytes().len() + chain.as_bytes().len()) as u64;
    progress.start("sync", bytes, "bytes");
    files.push(columns.finish()?);
    files.push(chain.finish()?);
    progress.advance(bytes);
    Ok(())
}

/// The step with what it needs.
struct Steps<'a> {
    table: &'a ColumnTable,
    cpu: &'a Cpu,
    ring: <Cpu as RingOps>::Ring,
    plan: <Cpu as ColumnOps>::ChainPlan,
}

impl<'a> Steps<'a> {
    fn new(table: &'a ColumnTable, cpu: &'a Cpu) -> Self {
        let ring = cpu.open_ring(Arc::new(RingContext::new(*table.params().ring())));
        let plan = cpu.open_masks(&ring, ColumnScheme::new(table.params()).masks());
        Self { table, cpu, ring, plan }
    }

    /// Some plaintexts, each on a thread.
    fn chain(&self, source: &Source<'_>, plaintexts: Range<usize>) -> Result<Vec<ChainedHint>, BuildError> {
        let (shape, n) = (self.table.pack_shape(), self.table.params().lwe().n());
        let rows = shape.rows_of(plaintexts.clone());
        let hint = source.hint(rows.clone(), &crate::Silent)?;
        let chain = |plaintext| {
            let own = shape.plaintext_rows(plaintext);
            let words = &hint[(own.start - rows.start) * n..(own.end - rows.start) * n];
            self.cpu.chain_hint(&self.ring, &self.plan, words)
        };
        Ok(self.cpu.install(|| plaintexts.into_par_iter().map(chain).collect::<Result<_, _>>())?)
    }
}

fn write_polys(
    file: &MappedOutput,
    table: &ColumnTable,
    plaintext: usize,
    chained: &ChainedHint,
) -> Result<(), BuildError> {
    let half = table.chain_words() / 2;
    for (first, words) in [(0, &chained.digit), (half, &chained.mask)] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        file.write_at(size_of::<u32>() * (first + plaintext * words.len()), &bytes)?;
    }
    Ok(())
}
