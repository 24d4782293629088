//! Databases of symbols. A database occupies its stored size, and a fold transforms some columns at a time, for all queries of a
//! batch. The database is on the device or on the host. From the host, columns are copied for every batch, while the columns before
//! them are folded. Source: PPIR algorithm 4, which copies blocks from the host; the first dimension is this project's.

use std::ops::{Range, RangeInclusive};

use hush_ops::{
    OpsError,
    contract::{Memory, RingOps, RlweBatch},
    steps::{RlweFold, SymbolFold, poly_bytes},
    symbol_tiling::{SymbolDb, SymbolTiling},
};

use super::ntt_tiles::MAX_POLY_COLUMNS;
use crate::{
    Cuda,
    device::{Buffer, CudaError, Device, Launch},
    ring::{CudaNttDb, CudaRing, Lift, TILE_ROWS, lift_plaintexts},
};

/// The bounds on the bytes of columns in evaluation form on the device at once, for more than one column. Within the bounds, these
/// bytes are half of the symbols' bytes.
const EVALUATED_BYTES: RangeInclusive<usize> = 1 << 30..=4 << 30;
/// The symbols on the device at once beside their residues, for more than a tile of rows of one column.
const CHUNK_SYMBOLS: usize = 1 << 22;

/// A database of symbols, on the device or on the host.
pub struct CudaSymbols {
    tiling: SymbolTiling,
    symbols: Symbols,
}

enum Symbols {
    /// The bytes on the device, in the order of [`SymbolTiling`].
    Device(Buffer<u8>),
    Host(SymbolDb),
}

impl CudaSymbols {
    /// Uploads a database from the host.
    pub(in crate::ring) fn upload(device: &Device, db: &SymbolDb) -> Result<Self, CudaError> {
        let tiling = db.tiling();
        Ok(Self { tiling, symbols: Symbols::Device(upload_columns(device, db, 0..tiling.columns())?) })
    }

    /// Creates a database that stays on the host.
    pub(in crate::ring) fn on_host(db: SymbolDb) -> Self {
        Self { tiling: db.tiling(), symbols: Symbols::Host(db) }
    }

    /// Returns the shape.
    pub(in crate::ring) fn tiling(&self) -> SymbolTiling {
        self.tiling
    }

    /// Transforms some columns to evaluation form.
    fn evaluated(
        &self,
        device: &Device,
        ring: &CudaRing,
        columns: &Range<usize>,
    ) -> Result<CudaNttDb, OpsError> {
        let kept = ring.kept();
        let tiling = self.tiling;
        let lift = Lift::symbols(ring.context().params().plaintext_bits());
        let evaluated = CudaNttDb::alloc(device, tiling.of_columns(columns.len()).evaluated(kept.limbs())?)?;
        let at_once = rows_at_once(&tiling, columns.len());
        let copied;
        let packed = match &self.symbols {
            Symbols::Device(bytes) => {
                bytes.slice(tiling.offset(0, columns.start)..tiling.offset(0, columns.end))
            }
            Symbols::Host(db) => {
                copied = upload_columns(device, db, columns.clone())?;
                copied.slice(..)
            }
        };
        for first in (0..tiling.rows()).step_by(at_once) {
            let rows = at_once.min(tiling.rows() - first);
            let plaintexts = rows * columns.len();
            let symbols = device.alloc::<u32>(plaintexts * tiling.degree())?;
            let numbers =
                [tiling.plaintext_words(), tiling.bits() as usize, tiling.rows(), first, columns.len()];
            let args = [(&symbols).into(), packed.into()];
            let args: Vec<_> = args.into_iter().chain(numbers.map(|number| (number as u32).into())).collect();
            device.launch("unpack_symbols", Launch::new(plaintexts as u32, 256), &args)?;
            let polys = device.alloc(symbols.len() * kept.limbs())?;
            lift_plaintexts(device, kept, lift, &symbols.slice(..), &polys.slice(..))?;
            evaluated.write_rows(device, &polys, first, rows)?;
        }
        Ok(evaluated)
    }
}

/// Uploads some columns.
fn upload_columns(device: &Device, db: &SymbolDb, columns: Range<usize>) -> Result<Buffer<u8>, CudaError> {
    let column_bytes = db.tiling().offset(0, 1);
    let bytes = device.alloc(columns.len() * column_bytes)?;
    for (index, column) in columns.enumerate().filter(|_| column_bytes > 0) {
        let to = index * column_bytes..(index + 1) * column_bytes;
        device.upload_into(db.column(column), &bytes.slice(to))?;
    }
    Ok(bytes)
}

/// Runs [`hush_ops::contract::TfheOps::symbol_fold`].
pub(in crate::ring) fn symbol_fold(
    cuda: &Cuda,
    ring: &CudaRing,
    db: &CudaSymbols,
    selectors: &[&RlweBatch<Buffer<u32>>],
) -> Result<Vec<RlweBatch<Buffer<u32>>>, OpsError> {
    let columns = db.tiling.columns();
    let ciphertext_words = 2 * ring.kept().poly_words();
    let at_once = columns_at_once(&db.tiling, ring.kept().limbs());
    let mut parts: Vec<Vec<RlweBatch<_>>> = Vec::new();
    for first in (0..columns).step_by(at_once) {
        let evaluated = db.evaluated(cuda.device(), ring, &(first..columns.min(first + at_once)))?;
        parts.push(cuda.run_rlwe_fold(ring, &evaluated, selectors)?);
    }
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    (0..selectors.len())
        .map(|query: usize| {
            let words: Vec<_> =
                parts.iter().map(|part| (&part[query].words, 0..part[query].words.len())).collect();
            Ok(RlweBatch { ciphertext_words, words: cuda.join(&words)? })
        })
        .collect()
}

/// Returns the number of columns that are in evaluation form at once. Each part transposes the selectors of a batch once, so that
/// larger parts are faster. Beyond [`CHUNK_SYMBOLS`], a part has at most an eighth of the columns, so that a small table does not
/// use up the memory that its symbols save.
pub(crate) fn columns_at_once(tiling: &SymbolTiling, limbs: usize) -> usize {
    let column = size_of::<u32>() * limbs * tiling.degree() * tiling.rows().next_multiple_of(TILE_ROWS);
    let fits = (tiling.bytes() / 2).clamp(*EVALUATED_BYTES.start(), *EVALUATED_BYTES.end()) / column.max(1);
    let of_symbols = CHUNK_SYMBOLS / TILE_ROWS / tiling.degree();
    let allowed = fits.min(of_symbols.max(tiling.columns() / 8));
    allowed.clamp(1, MAX_POLY_COLUMNS).min(tiling.columns().max(1))
}

/// Returns the number of rows of `columns` columns whose symbols are in memory at once: whole tiles.
fn rows_at_once(tiling: &SymbolTiling, columns: usize) -> usize {
    let tile = TILE_ROWS * columns.max(1) * tiling.degree();
    (CHUNK_SYMBOLS / tile).max(1) * TILE_ROWS
}

hush_ops::footprint!(Cuda: SymbolFold, |step, batch| {
    let &SymbolFold { ring, db, parts } = step;
    let db = db.part(parts);
    let limbs = ring.kept_limbs();
    let poly = poly_bytes(&ring);
    let at_once = columns_at_once(&db, limbs);
    let symbols =
        rows_at_once(&db, at_once).min(db.rows()) * at_once * (size_of::<u32>() * ring.degree() + poly);
    // Some columns in evaluation form, the symbols from which they are made, and the fold of the columns.
    let fold = db.of_columns(at_once).evaluated(limbs).map_or(0, |db| {
        CudaNttDb::bytes_for(db) + symbols + Self::footprint(&RlweFold { ring, db }, batch)
    });
    // If columns are folded in parts, the results of the parts are joined.
    fold + if at_once < db.columns() { 2 * batch * db.columns() * 2 * poly } else { 0 }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_at_once_is_bounded() {
        // 1 GiB of symbols of 4 bits, N = 2048, 512 rows.
        let tiling = SymbolTiling::new(2048, 4, 512, 2048).unwrap();
        let columns = columns_at_once(&tiling, 2);
        assert_eq!((columns, rows_at_once(&tiling, columns)), (128, 32));
        // A table that is eight times as large: half of the symbols' bytes, and the rows of one tile.
        let large = SymbolTiling::new(2048, 4, 1024, 8192).unwrap();
        let columns = columns_at_once(&large, 2);
        assert_eq!((columns, rows_at_once(&large, columns)), (256, 32));
        // A column that is longer than the bound is transformed alone.
        let long = SymbolTiling::new(4096, 16, 1 << 18, 3).unwrap();
        assert_eq!((columns_at_once(&long, 2), rows_at_once(&long, 1)), (1, 1024));
        let few = SymbolTiling::new(64, 4, 5, 3).unwrap();
        assert_eq!(columns_at_once(&few, 2), 3);
    }
}
