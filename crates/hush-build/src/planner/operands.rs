//! Random operands of the CPU, on which the steps of a path are timed.

use std::{cell::RefCell, error::Error, sync::Arc};

use hush_cpu::{AlignedBuffer, Cpu, CpuRing};
use hush_he::params::RingParams;
use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{BatchWords, LweOps, RingOps, TfheOps},
    ntt_tiling::{NttTiledDb, NttTiling},
    steps::sample::{Operands, residues},
    symbol_tiling::{SymbolDb, SymbolTiling},
    tiling::{TiledDb, Tiling},
};

/// Random operands that are made on the host. It keeps the last database, of which several batches are timed.
#[derive(Default)]
pub struct Random {
    bytes: RefCell<Option<TiledDb>>,
    evaluated: RefCell<Option<(String, NttTiledDb)>>,
    symbols: RefCell<Option<SymbolDb>>,
}

impl Operands<Cpu> for Random {
    fn db(&self, cpu: &Cpu, tiling: Tiling) -> Result<TiledDb, Box<dyn Error>> {
        let mut kept = self.bytes.borrow_mut();
        let db = match kept.take().filter(|db| db.tiling() == tiling) {
            Some(db) => db,
            None => random_db(tiling)?,
        };
        *kept = Some(db.clone());
        Ok(cpu.open_db(db)?)
    }

    fn ntt_db(&self, cpu: &Cpu, ring: &CpuRing, tiling: NttTiling) -> Result<NttTiledDb, Box<dyn Error>> {
        let context = cpu.context(ring);
        let mut kept = self.evaluated.borrow_mut();
        let known = kept.take().filter(|(set, db)| set == context.params().name() && db.tiling() == tiling);
        let db = match known {
            Some((_, db)) => db,
            None => {
                let polys = residues(context, tiling.rows() * tiling.columns());
                NttTiledDb::from_polys(tiling, &polys)
            }
        };
        *kept = Some((context.params().name().to_owned(), db.clone()));
        Ok(cpu.open_ntt_db(ring, db)?)
    }

    fn symbols(
        &self,
        cpu: &Cpu,
        ring: &CpuRing,
        _: RingParams,
        tiling: SymbolTiling,
    ) -> Result<SymbolDb, Box<dyn Error>> {
        let mut kept = self.symbols.borrow_mut();
        let db = match kept.take().filter(|db| db.tiling() == tiling) {
            Some(db) => db,
            None => random_symbols(tiling)?,
        };
        *kept = Some(db.clone());
        Ok(cpu.open_symbols(ring, db)?)
    }

    fn polys(&self, cpu: &Cpu, ring: &CpuRing, count: usize) -> Result<BatchWords, Box<dyn Error>> {
        Ok(residues(cpu.context(ring), count).into())
    }
}

/// Bytes that are random; all others repeat them, which no step notices.
const STRETCH: usize = 4 << 20;

/// Fills `out` with bytes that are the same each time.
fn fill(out: &mut [u8]) {
    let (first, rest) = out.split_at_mut(STRETCH.min(out.len()));
    Csprng::insecure_from_seed(1).fill_bytes(first);
    rest.chunks_mut(STRETCH).for_each(|chunk| chunk.copy_from_slice(&first[..chunk.len()]));
}

/// A random database.
pub fn random_db(tiling: Tiling) -> Result<TiledDb, OpsError> {
    let mut bytes = AlignedBuffer::<u8>::zeroed(tiling.bytes());
    fill(&mut bytes);
    TiledDb::new(tiling, Arc::new(bytes))
}

/// A random database of symbols.
pub fn random_symbols(tiling: SymbolTiling) -> Result<SymbolDb, OpsError> {
    let mut bytes = AlignedBuffer::<u8>::zeroed(tiling.bytes());
    fill(&mut bytes);
    SymbolDb::new(tiling, Arc::new(bytes))
}
