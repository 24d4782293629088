//! Random operands of the CPU, with which the steps of a path are timed.

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

/// Random operands, made on the host. The last database of each kind is kept, because several batches are timed with it.
#[derive(Default)]
pub struct Random {
    bytes: RefCell<Option<TiledDb>>,
    evaluated: RefCell<Option<(&'static str, NttTiledDb)>>,
    symbols: RefCell<Option<SymbolDb>>,
}

/// Returns the kept value if it `fits`; otherwise makes a value and keeps it.
fn kept<T: Clone>(
    kept: &RefCell<Option<T>>,
    fits: impl Fn(&T) -> bool,
    make: impl FnOnce() -> Result<T, OpsError>,
) -> Result<T, OpsError> {
    let known = kept.take().filter(fits);
    let made = known.map_or_else(make, Ok)?;
    Ok(kept.borrow_mut().insert(made).clone())
}

impl Operands<Cpu> for Random {
    fn db(&self, cpu: &Cpu, tiling: Tiling) -> Result<TiledDb, Box<dyn Error>> {
        Ok(cpu.open_db(kept(&self.bytes, |db| db.tiling() == tiling, || random_db(tiling))?)?)
    }

    fn ntt_db(&self, cpu: &Cpu, ring: &CpuRing, tiling: NttTiling) -> Result<NttTiledDb, Box<dyn Error>> {
        let context = cpu.context(ring);
        let set = cpu.context(ring).params().name();
        let (_, db) = kept(
            &self.evaluated,
            |(of, db): &(&str, NttTiledDb)| *of == set && db.tiling() == tiling,
            || {
                let polys = residues(context, tiling.rows() * tiling.columns());
                Ok((set, NttTiledDb::from_polys(tiling, &polys)))
            },
        )?;
        Ok(cpu.open_ntt_db(ring, db)?)
    }

    fn symbols(
        &self,
        cpu: &Cpu,
        ring: &CpuRing,
        _: RingParams,
        tiling: SymbolTiling,
    ) -> Result<SymbolDb, Box<dyn Error>> {
        let db = kept(&self.symbols, |db| db.tiling() == tiling, || random_symbols(tiling))?;
        Ok(cpu.open_symbols(ring, db)?)
    }

    fn polys(&self, cpu: &Cpu, ring: &CpuRing, count: usize) -> Result<BatchWords, Box<dyn Error>> {
        Ok(residues(cpu.context(ring), count).into())
    }
}

/// The bytes that are random. All others repeat them, which does not change the time of any step.
const STRETCH: usize = 4 << 20;

/// Fills `out` with pseudo-random bytes, which are the same in each call.
fn fill(out: &mut [u8]) {
    let (first, rest) = out.split_at_mut(STRETCH.min(out.len()));
    Csprng::insecure_from_seed(1).fill_bytes(first);
    rest.chunks_mut(STRETCH).for_each(|chunk| chunk.copy_from_slice(&first[..chunk.len()]));
}

/// Returns a byte database with random content. Its only error, [`OpsError::Shape`], cannot occur: the content has the length of
/// `tiling`.
pub fn random_db(tiling: Tiling) -> Result<TiledDb, OpsError> {
    let mut bytes = AlignedBuffer::<u8>::zeroed(tiling.bytes());
    fill(&mut bytes);
    TiledDb::new(tiling, Arc::new(bytes))
}

/// Returns a database of symbols with random content. Its only error, [`OpsError::Shape`], cannot occur: the content has the
/// length of `tiling`.
pub fn random_symbols(tiling: SymbolTiling) -> Result<SymbolDb, OpsError> {
    let mut bytes = AlignedBuffer::<u8>::zeroed(tiling.bytes());
    fill(&mut bytes);
    SymbolDb::new(tiling, Arc::new(bytes))
}
