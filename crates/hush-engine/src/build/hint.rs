//! The hint, computed a few row groups at a time so that progress shows and memory stays small.

use hush_cpu::Cpu;
use hush_he::{codec::pack_rounded, entities::PublicMatrix};
use hush_ops::{OpsError, contract::LweOps, tiling::GROUP_ROWS};
use hush_protocol::table::TableParams;

use crate::Progress;

/// Rows of the hint computed in one step.
const STEP_ROWS: usize = 4 * GROUP_ROWS;

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
pub(super) fn packed(
    cpu: &Cpu,
    db: &<Cpu as LweOps>::Db,
    a: &PublicMatrix,
    params: &TableParams,
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
