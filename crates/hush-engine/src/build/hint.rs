//! The hint, computed a few row groups at a time so that progress shows and memory stays small.

use std::sync::Arc;

use hush_cpu::Cpu;
use hush_he::{codec::pack_rounded, entities::PublicMatrix};
use hush_ops::{
    OpsError,
    contract::LweOps,
    reference::Reference,
    tiling::{GROUP_ROWS, TiledDb},
};
use hush_protocol::{descriptor::BlobRef, double, lwe_table::LweTable, table::Protocol};
use hush_store::snapshot::{DB_FILE, FileEntry, HINT_FILE, MappedFile, SECOND_DB_FILE, SnapshotWriter};

use super::BuildError;
use crate::Progress;

/// Rows of the hint computed in one step.
pub(super) const STEP_ROWS: usize = 4 * GROUP_ROWS;

/// Writes the hint of the database that was written before, and with DoublePIR the second database.
pub(super) fn write(
    table: &LweTable,
    writer: &SnapshotWriter,
    cpu: &Cpu,
    progress: &dyn Progress,
    files: &mut Vec<FileEntry>,
) -> Result<BlobRef, BuildError> {
    let map = Arc::new(MappedFile::open(&writer.partial_dir().join(DB_FILE))?);
    let db = cpu.open_db(TiledDb::new(table.tiling(), map)?)?;
    let mut hint = writer.create_mapped(HINT_FILE, table.hint_bytes())?;
    let matrix = table.first_matrix();
    if table.protocol() == Protocol::Double {
        let words = whole(cpu, &db, &matrix, table.rows(), progress)?;
        let second = double::second_db(&Reference, table, &words)?;
        let mut file = writer.create_mapped(SECOND_DB_FILE, second.bytes().len())?;
        file.bytes().copy_from_slice(second.bytes());
        files.push(file.finish()?);
        packed(cpu, &cpu.open_db(second)?, &table.second_matrix(), table, hint.bytes(), progress)?;
    } else {
        packed(cpu, &db, &matrix, table, hint.bytes(), progress)?;
    }
    let reference = BlobRef { blake3: hint.blob_hash(), bytes: table.hint_bytes() as u64 };
    files.push(hint.finish()?);
    Ok(reference)
}

/// The whole hint as words (DoublePIR's first one, which never travels).
pub(super) fn whole(
    cpu: &Cpu,
    db: &<Cpu as LweOps>::Db,
    a: &PublicMatrix,
    rows: usize,
    progress: &dyn Progress,
) -> Result<Vec<u32>, OpsError> {
    let mut words = Vec::with_capacity(rows * a.n());
    each_step(cpu, db, a, rows, progress, |step| words.extend(step))?;
    Ok(words)
}

/// The hint as it travels, written to `out`.
fn packed(
    cpu: &Cpu,
    db: &<Cpu as LweOps>::Db,
    a: &PublicMatrix,
    params: &LweTable,
    out: &mut [u8],
    progress: &dyn Progress,
) -> Result<(), OpsError> {
    let mut rest = out;
    each_step(cpu, db, a, params.hint_rows(), progress, |step| {
        let bytes = pack_rounded(&step, params.widths().hint);
        let (head, tail) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        head.copy_from_slice(&bytes);
        rest = tail;
    })
}

fn each_step(
    cpu: &Cpu,
    db: &<Cpu as LweOps>::Db,
    a: &PublicMatrix,
    rows: usize,
    progress: &dyn Progress,
    mut take: impl FnMut(Vec<u32>),
) -> Result<(), OpsError> {
    progress.start("hint", rows as u64, "rows");
    for start in (0..rows).step_by(STEP_ROWS) {
        let end = rows.min(start + STEP_ROWS);
        take(cpu.lwe_hint(db, a, start..end)?);
        progress.advance((end - start) as u64);
    }
    Ok(())
}
